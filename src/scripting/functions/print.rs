//! The output of `print` in scripts: plain lines on the standard output, as a script author expects. If the log consists of JSON
//! lines, it goes there: both end up in the log of one container.
//!
//! All other output of scripts goes through `ctx.logger`.

use std::io::Write as _;

/// The output of one script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    /// The file of the script, if its lines go to the log, which never waits for a reader.
    pub(crate) logged: Option<String>,
}

impl Printer {
    /// Returns the printer of a script.
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
        // One write per line keeps the lines of threads apart; the lock protects nothing else.
        drop(output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush()));
    }
}
