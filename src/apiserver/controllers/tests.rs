//! Controllers on virtual time.
