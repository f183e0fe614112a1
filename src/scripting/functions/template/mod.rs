//! `template`: Jinja's language, implemented by the crate `minijinja`.
//!
//! The crate limits instructions and strings, but not the size of shared lists, nor the time of one comparison. So no template runs
//! as it is written: `sources.rs` reads it with the files that it includes, `tree.rs` wraps everything that computes in a check,
//! and `values.rs` implements the checks: size, depth, time and memory.

#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod blocks;
#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod engine;
#[expect(
    clippy::needless_pass_by_value,
    clippy::wildcard_enum_match_arm,
    reason = "filters of the crate take values; its enums grow"
)]
mod filters;
#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod sources;
#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod statements;
#[cfg(test)]
mod tests;
#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod tree;
#[expect(clippy::wildcard_enum_match_arm, reason = "enums of the crate, which grow")]
mod values;

use serde_json::{Value, json};

use self::engine::Rendered;
use super::Call;
use crate::scripting::functions::{
    outcome::Outcome,
    types::{Body, Function, Library, Parameter, Type, optional, required, script},
};

/// Maximum number of filters of one script.
pub(crate) const FILTERS_MAX: usize = 100;

const STRICT: Parameter = optional(
    "strict",
    Type::Boolean,
    "Whether a missing value is an error; otherwise it is empty, as in Jinja. Default: true.",
);
const TEMPLATE: Parameter = required(
    "template",
    Type::Text,
    "The template, at most 1 MiB with everything that it includes, and 1000000 steps in total; more is an error.",
);
const VALUES: Parameter = required("values", Type::Map, "The values that the template can use.");

pub(super) const LIBRARY: Library = Library {
    name: "template",
    doc: "Renders templates in Jinja's language, such as configuration files.",
    functions: &[
        script(
            "render",
            "Renders a Jinja template: `template.render(\"Hello {{ user.name | upper }}\", {user = {name = \"Ann\"}})`. Expressions, `if`, `for`, `set`, `with`, `macro`, `call`, `filter` and `raw` are those of Jinja; `{% include \"NAME\" %}`, `{% import \"NAME\" as x %}` and `{% from \"NAME\" import x %}` load files next to the script, as modules; `{% extends \"NAME\" %}` at the top level starts from another file, whose blocks it can replace with `{% block name %}`, where `{{ super() }}` is the original content. Lists, maps, true and false are written as JSON. Filters: those of Jinja, and b64encode, b64decode, to_json, from_json, to_yaml, from_yaml, quote, ternary, dict2items, and those of `template.filter`. A missing value is an error, unless `default` follows.",
            &[TEMPLATE, VALUES],
            Type::Text,
        )
        .with(&[STRICT]),
        script(
            "filter",
            "Adds a filter for the templates of this script: `template.filter(\"slug\", f)` for `{{ name | slug }}`. A template may call such filters up to 200 times.",
            &[
                required(
                    "name",
                    Type::Name,
                    "The name of the filter; existing filters cannot be replaced.",
                ),
                required(
                    "apply",
                    Type::Function,
                    "Called with the value and the arguments of the filter, returns the new value.",
                ),
            ],
            Type::Nothing,
        ),
    ],
};

/// Renders until a filter of the script is needed: the script calls it and renders again with its result.
pub(super) const RENDERING: Function = Function {
    name: "render",
    doc: "",
    parameters: &[
        TEMPLATE,
        VALUES,
        required("filters", Type::List, ""),
        required("results", Type::List, ""),
    ],
    options: &[STRICT],
    returns: Type::Map,
    body: Body::Immediate(render),
};

/// Checks the name of a filter.
pub(super) const NAMING: Function = Function {
    name: "filter",
    doc: "",
    parameters: &[required("name", Type::Name, ""), required("count", Type::Integer, "")],
    options: &[],
    returns: Type::Nothing,
    body: Body::Immediate(name_filter),
};

fn render(call: &Call) -> Outcome {
    let names = call.list("filters").iter().filter_map(Value::as_str).collect();
    let task = engine::Task {
        text: call.text("template"),
        values: call.value("values"),
        is_strict: !call.has("strict") || call.flag("strict"),
        size_max: call.surroundings.limits.string_size,
        filters: names,
        results: call.list("results"),
        files: &call.surroundings.files,
    };
    Ok(match engine::render(&task)? {
        Rendered::Whole(text) => json!({ "text": text }),
        Rendered::Asks { filter, arguments } => json!({ "filter": filter, "arguments": arguments }),
    }
    .into())
}

fn name_filter(call: &Call) -> Outcome {
    let name = call.text("name");
    let is_name = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        && !name.starts_with(|it: char| it.is_ascii_digit());
    if !is_name {
        return Err(format!("`name`: expected letters, digits and `_`, got \"{name}\"").into());
    }
    if filters::is_known(name) {
        return Err(
            format!("`name`: there is already a filter `{name}`; choose another name").into()
        );
    }
    if call.count("count", 0)? >= FILTERS_MAX {
        return Err(format!("a script may have at most {FILTERS_MAX} filters").into());
    }
    Ok(Value::Null.into())
}
