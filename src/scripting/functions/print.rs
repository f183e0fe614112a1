//! Where `print` of the scripts goes: plain lines on the standard output, as a script author expects of `print`. If the log consists of
//! JSON lines, it goes there: both end up in the log of one container.
//!
//! Everything else a script says goes through `ctx.logger`.

use std::io::Write as _;

/// Where the lines of one script go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    /// The file of the script, if its lines go to the log.
    logged: Option<String>,
}

impl Printer {
    /// Prints the lines of a script.
    pub(crate) fn of(script: &str, is_logged: bool) -> Self {
        Printer { logged: is_logged.then(|| script.to_owned()) }
    }

    /// Writes one line. A closed or full output is no reason for a handler to fail, so errors are dropped.
    pub(crate) fn print(&self, text: &str) {
        if let Some(script) = self.logged.as_deref() {
            tracing::event!(target: "kopf.print", tracing::Level::INFO, call.script = script, message = text);
            return;
        }
        let mut output = std::io::stdout().lock();
        // One write per line keeps the lines of threads apart; the lock is held for nothing else.
        drop(output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush()));
    }
}
