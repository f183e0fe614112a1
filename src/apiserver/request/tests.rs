//! What bodies and queries mean; the texts are recorded from Kubernetes 1.20.2.
