//! Thousands of reloads leave nothing behind.
