//! What the functions of libraries know of the script that calls them.

use std::{collections::BTreeMap, sync::Arc};

use crate::logic::grants::Access;
use crate::scripting::Terms;
use crate::settings::Sandbox;

/// Where one script is, and what it may do.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// What it is granted.
    pub(super) access: Access,
    /// The variables of this process; at least what is granted.
    pub(super) environment: Arc<BTreeMap<String, String>>,
    /// How much it may use up.
    pub(super) limits: Sandbox,
}

impl Surroundings {
    /// Of the script that is called so.
    pub(crate) fn of(terms: &Terms, script: &str) -> Arc<Self> {
        Arc::new(Surroundings {
            access: terms.grants.of(script),
            environment: Arc::clone(&terms.environment),
            limits: terms.limits.clone(),
        })
    }
}
