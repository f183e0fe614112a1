//! The check of loaded scripts, before they become a generation.

use std::collections::BTreeSet;

use crate::scripting::{LoadError, Source, Terms, script::index_names::Ids};
use crate::settings::Strict;

/// Checks loaded scripts. Returns the errors that reject them, and logs warnings.
pub type Inspect = fn(&Inspection) -> Result<(), Vec<LoadError>>;

/// Loaded scripts, and how they are checked.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The new and changed scripts.
    pub sources: Vec<Source>,
    /// The ids of the indexes of all scripts.
    pub indexes: BTreeSet<String>,
    /// Which errors reject a script.
    pub strict: Strict,
}

/// Checks the new and changed scripts. Those that run already are not checked again.
pub(super) async fn inspect(
    inspect: Option<Inspect>,
    terms: &Terms,
    sources: Vec<Source>,
    indexes: &Ids,
) -> Result<(), Vec<LoadError>> {
    let Some(inspect) = inspect.filter(|_| !sources.is_empty()) else { return Ok(()) };
    let indexes = indexes.iter().map(ToString::to_string).collect();
    let inspection = Inspection { sources, indexes, strict: terms.strict };
    let done = terms.placement.run_blocking(move || inspect(&inspection)).await;
    // A checker that fails is no reason to reject a script.
    done.unwrap_or(Ok(()))
}
