//! What the analyses of scripts need to know of `kopf`, of `ctx` and of the libraries.

use std::collections::{BTreeMap, BTreeSet};

use kopf_rhai::{
    Fallible,
    replaced::{self, ReplacedCall},
    short::{self, Rules, ShortFunctions},
};
use rhai::{AST, Dynamic};

use super::errors::raise;
use crate::call::Invocation;
use crate::logic::handlers::declare::DeclareError;
use crate::scripting::{
    functions::{LIBRARIES, names::LOG_METHODS},
    inline,
    surface::KWARGS,
};

/// Parts of `ctx` that are small: scalars, and parts of the object that copy nothing.
const PARTS: &str = "annotations body dry dryrun labels logger meta name namespace operation reason resource retry runtime spec \
                     started status type uid";
/// Methods of strings, lists, maps and views that take one pass.
const METHODS: &str = "contains ends_with get is_empty keys len starts_with sub_string to_lower to_string to_upper values";
/// Functions of `kopf` that only raise or create an error.
const RAISING: &str = "AdmissionError PermanentError TemporaryError fail retry";

/// The declared functions of a script that are short: their calls need neither a thread nor a watchdog, see `blocking/inline.rs`.
pub(super) struct Short(pub(super) ShortFunctions);

impl Short {
    /// Finds those of these functions that are short. `globals` are the variables of the script.
    pub(super) fn find(
        ast: &AST,
        names: &BTreeSet<String>,
        globals: &BTreeMap<String, Dynamic>,
    ) -> Self {
        Short(short::find(ast, names, globals, &rules()))
    }

    /// Returns whether they are short for this call: the object is small, and none of them reads an index, which is a part of `ctx`.
    pub(super) fn is_for(&self, call: &Invocation) -> bool {
        inline::is_about_small_object(call)
            && !call.services.indexes.all().any(|it| self.0.fields.contains(&**it.id()))
    }
}

fn rules() -> Rules {
    let parts = words(PARTS);
    // The patch may hold what other handlers have written.
    let large = KWARGS.iter().map(|it| it.name).chain(["patch"]);
    Rules {
        host: "kopf",
        raising: words(RAISING),
        methods: words(METHODS),
        acting: LOG_METHODS.iter().map(|it| it.0).collect(),
        large: large.filter(|it| !parts.contains(it)).collect(),
        written: "patch",
    }
}

fn words(text: &'static str) -> BTreeSet<&'static str> {
    text.split(' ').collect()
}

/// Refuses a script with a function that Rhai would call instead of one of `kopf` or of a library.
pub(super) fn check_calls(ast: &AST) -> Fallible<()> {
    let libraries: Vec<_> = LIBRARIES.iter().map(|it| it.name).collect();
    let Some(ReplacedCall { owner, name, position }) = replaced::find(ast, "kopf", &libraries)
    else {
        return Ok(());
    };
    let refused = DeclareError::new(
        format!("`{owner}.{name}(…)` would call the function `{name}` of this script"),
        format!("write `{owner}::{name}(…)`, or rename the function"),
    );
    let mut error = raise(refused.into());
    error.set_position(position);
    Err(error)
}
