//! Where `print` of the scripts goes: plain lines on the standard output, as a script author expects of `print`.
//!
//! Everything else a script says goes through `ctx.logger`.

use std::io::Write as _;

/// Writes one line. A closed or full output is no reason for a handler to fail, so errors are dropped.
pub(crate) fn print_line(text: &str) {
    let mut output = std::io::stdout().lock();
    // One write per line keeps the lines of threads apart; the lock is held for nothing else.
    drop(output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush()));
}
