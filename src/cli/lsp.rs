//! `kopf lsp`: the language server on stdin and stdout.

use crate::cli::{
    check::{definition, kinds_beside},
    report::{Exit, Report},
};
use crate::lsp::{LspEnd, Schemas, serve};

/// Serves an editor until it ends.
pub(super) fn run() -> Result<Exit, Report> {
    let schemas = Schemas { kinds: kinds_beside, definitions: definition };
    match serve(std::io::stdin(), std::io::stdout(), schemas) {
        Ok(LspEnd::Orderly) => Ok(Exit::Success),
        // The editor has disconnected: no client reads an error.
        Ok(LspEnd::Abrupt) => Ok(Exit::Failure),
        Err(error) => Err(Report::failure(format!("cannot write to the editor: {error}"))),
    }
}
