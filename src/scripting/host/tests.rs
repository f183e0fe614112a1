//! Generations of scripts, one after the other.
