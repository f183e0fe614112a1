//! `template`: texts with places for values.
//!
//! Of our own, because the engines there are let a template make a text of any size in a few steps; here each step is counted,
//! and nothing computes. `parse.rs` reads a template, `render.rs` fills it in.

mod parse;
mod render;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::Call;
use crate::scripting::functions::types::{Library, Outcome, Type, immediate, required};

pub(super) const LIBRARY: Library = Library {
    name: "template",
    doc: "Renders templates, such as configuration files.",
    functions: &[immediate(
        "render",
        "Renders a template: `template.render(\"Hello {{ user.name | upper }}\", {user = {name = \"Ann\"}})`. `{{ path }}` and `{{ path | filter }}`; `{% if path %}…{% elif not path %}…{% else %}…{% endif %}`, also with `path == \"text\"` and `!=`; `{% for item in path %}…{% endfor %}` and `{% for key, item in path %}` with `loop.index`, `loop.first`, `loop.last`; `{# comment #}`; `{%-` and `-%}` remove white space. Filters: default(x), upper, lower, trim, quote, json, yaml, indent(n), join(\", \"), length, base64. A path without a value is an error, unless `default` follows.",
        &[
            required(
                "template",
                Type::Text,
                "The template: blocks at most 32 levels deep, at most 100 filters of one value, 1000000 steps in total; more is an error.",
            ),
            required("values", Type::Map, "The values that the template can use."),
        ],
        Type::Text,
        render,
    )],
};

fn render(call: &Call) -> Outcome {
    let parts = parse::parse(call.text("template"))?;
    let size_max = call.surroundings.limits.string_size;
    Ok(Value::from(render::render(&parts, call.value("values"), size_max)?).into())
}
