//! The metadata of objects: what names, labels and the like may be, and what of them the server sets.

pub(crate) mod names;
