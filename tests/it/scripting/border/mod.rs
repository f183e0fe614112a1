//! The values that scripts pass to the host, and the errors when they are refused: `tests/border/LANGUAGE/ROW_name.EXTENSION`.
//!
//! Each script runs in a whole operator on virtual time, next to a script that must still be served. A file begins with comments,
//! and may mark one line with `HERE`:
//!
//! ```text
//! -- says: a pattern of the log: of a message with its trace; several lines have several patterns
//! -- holds: 8 MiB, how much more memory the operator may hold afterwards; default: 4 MiB
//! -- limit: cpu, if a call reaches the limit on CPU time
//! -- at: load, if it must not be loaded: the pattern is that of the error then
//! ctx.patch.status.x = value -- HERE: the error names this line
//! ```
//!
//! `@@3:text@@` is `texttexttext`. The lines after `-- module: name.lua` are a module.

mod parsed;
mod suite;
