//! What makes objects come alive: garbage collection, namespaces, workloads and Pods.
