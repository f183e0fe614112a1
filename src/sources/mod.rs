//! Finds and reads the scripts on the command line, and watches them.
//!
//! A directory contributes the scripts directly in it, ordered by name; anything that cannot be used is an error, never skipped
//! silently. Next: `scripting/`, which compiles the sources.
//!
//! [`Sources`] combines them: files (`files`, with the pure `watch_targets`, `settling` and `mounts`), and `ConfigMap`s of the API
//! (`maps`). `reload/` waits for their changes.

mod attempt;
mod error;
mod files;
mod fingerprint;
mod fs_events;
mod live;
mod maps;
mod mounts;
mod paths;
mod problem;
pub mod reload;
mod settling;
#[cfg(test)]
mod tests;
mod watch_targets;
mod watches;

pub use self::{
    attempt::LoadAttempt,
    error::Error,
    files::ScriptFiles,
    fingerprint::{Difference, Fingerprint},
    live::{Snapshot, Sources},
    maps::{MapGuard, MapOption, Maps},
    paths::{DEFAULT_PATHS, read_all},
    problem::{Notice, SourceProblem},
};
