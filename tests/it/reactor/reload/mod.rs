//! Edits of a running operator, on the paused clock: generations of closures take over from each other.
//!
//! `edited.rs` has the operator. A handler logs its calls as `id.code@generation object`: the code changes when a handler is
//! edited; the generation, when its script was loaded again without an edit of the handler.

mod activities;
mod background;
mod edited;
mod failed;
mod indexes;
mod load;
mod once;
mod random;
mod retries;
mod selectors;
mod streams;
mod unsent;
