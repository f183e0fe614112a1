//! Hostile scripts: `tests/sandbox/LANGUAGE/NN_name.EXTENSION`.
//!
//! Each is stopped by the limit that it names, in time and with a clear error; its VM or a new one serves the next call, and a
//! script next to it keeps running meanwhile. A file begins with comments:
//!
//! ```text
//! -- expect: a pattern of the error, or "ok" if it succeeds
//! -- limit: cpu, memory, depth, string, coroutines, result, or none
//! ```
//!
//! and declares the handler `hostile`, which is called once. If it fails while it is loaded, there is a line `-- at: load`.

mod border;
mod counting;
mod logging;
mod lua;
mod neighbours;
mod rhai;
mod suite;
