//! What the analyses of scripts need to know of `kopf`, of `ctx` and of the libraries.

use std::collections::{BTreeMap, BTreeSet};

use kopf_rhai::{
    Fallible,
    replaced::{self, ReplacedCall},
    short::{self, Rules, ShortFunctions},
};
use rhai::{AST, Dynamic, EvalAltResult};

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
    Err(EvalAltResult::ErrorRuntime(Dynamic::from(refused), position).into())
}

#[cfg(test)]
mod tests {
    use rhai::Engine;

    use super::{BTreeMap, BTreeSet, Short};

    #[test]
    fn what_the_host_offers_is_known_to_be_short_or_not() {
        let find = |body: &str| {
            let ast = Engine::new().compile(format!("fn f(ctx) {{ {body} }}")).unwrap();
            let found = Short::find(&ast, &BTreeSet::from(["f".to_owned()]), &BTreeMap::new()).0;
            (found.straight.contains("f"), found.repeatable.contains("f"))
        };
        for body in [
            "ctx.spec?.items[0].name ?? ctx.status.x",
            "ctx.patch.metadata.labels.app = ctx.labels.get(`app`, `x`).to_upper()",
            "ctx.logger.info(`done`, #{ n: 1 }); ctx.logger.warn(`done`)",
            "if ctx.spec.size < 0 { kopf.fail(`no`) } else { throw kopf::TemporaryError(`later`, 10) }",
        ] {
            assert_eq!(find(body), (true, false), "{body}");
        }
        assert_eq!(find("for it in ctx.spec.items { kopf.fail(it.len()) }"), (false, true));
        for body in [
            "kopf.sleep(1)",
            "kopf::copy(ctx.spec)",
            "http.get(ctx.name)",
            "ctx.stopped.wait()",
            "ctx[`memo`].x",
            "ctx.patch.status.x",
            "ctx.diff",
            "ctx.old.spec",
            "ctx.children.pods",
            "ctx.settings.x",
            "for i in 0..3 { ctx.logger.error(`x`) }",
        ] {
            assert_eq!(find(body), (false, false), "{body}");
        }
    }
}
