//! An operator and an embedded API server on one virtual clock.

mod scripts;

pub use scripts::NativeScripts;
