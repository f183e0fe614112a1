//! Objects as rows and columns, as `kubectl get` shows them.
