//! Strings for users and for stored state: durations, sizes, suggestions, and values as Python and JSON write them.

pub mod duration;
pub mod listed;
pub mod nanos;
pub mod nearest;
pub mod printable;
pub mod python_text;
pub mod size;
pub mod uid;
