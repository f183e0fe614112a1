//! `semver`: versions by the rules of semver.org; ranges are those of Cargo.

use ::semver::{Version, VersionReq};
use serde_json::{Value, json};

use super::{Call, quantity::sign};
use crate::scripting::functions::{
    outcome::Failure,
    types::{Library, Parameter, Type, immediate, required},
};

const VERSION: Parameter = required(
    "version",
    Type::Name,
    "A string such as \"1.2.3\", \"v1.2.3-rc.1\"; `1.2` means 1.2.0.",
);

pub(super) const LIBRARY: Library = Library {
    name: "semver",
    doc: "Semantic versions such as `1.2.3-rc.1`, and ranges of them.",
    functions: &[
        immediate(
            "parse",
            "Returns the parts of a version: `major, minor, patch, pre, build`, the last two as strings.",
            &[VERSION],
            Type::Map,
            |call| {
                let it = version(call, "version")?;
                let (pre, build) = (it.pre.as_str(), it.build.as_str());
                let (major, minor, patch) = (it.major, it.minor, it.patch);
                Ok(json!({ "major": major, "minor": minor, "patch": patch, "pre": pre, "build": build }).into())
            },
        ),
        immediate(
            "is_valid",
            "Returns whether a string is a version.",
            &[required("version", Type::Text, "The string.")],
            Type::Boolean,
            |call| Ok(Value::from(version(call, "version").is_ok()).into()),
        ),
        immediate(
            "compare",
            "Compares two versions: returns -1, 0 or 1 if the first one is older than, equal to, or newer than the second one.",
            &[
                required("a", Type::Name, "A version."),
                required("b", Type::Name, "Another version."),
            ],
            Type::Integer,
            |call| {
                let order = version(call, "a")?.cmp_precedence(&version(call, "b")?);
                Ok(Value::from(sign(order)).into())
            },
        ),
        immediate(
            "matches",
            "Returns whether a version is in a range: `semver.matches(\"1.27.3\", \">=1.25, <2\")`. Also `^1.2`, `~1.2`, `1.*`.",
            &[VERSION, required("range", Type::Name, "Conditions, separated by commas.")],
            Type::Boolean,
            |call| {
                let range = call.text("range");
                let range: VersionReq = range.parse().map_err(|problem| {
                    Failure::Plain(format!(
                        "`range`: \"{range}\" is not a version range: {problem}"
                    ))
                })?;
                Ok(Value::from(range.matches(&version(call, "version")?)).into())
            },
        ),
    ],
};

/// Reads a version, with an optional `v` in front; missing parts are 0.
fn version(call: &Call, name: &str) -> Result<Version, Failure> {
    let text = call.text(name).trim();
    let bare = text.strip_prefix('v').unwrap_or(text);
    let end = bare.find(['-', '+']).unwrap_or(bare.len());
    let (numbers, rest) = bare.split_at_checked(end).unwrap_or((bare, ""));
    let full = match numbers.split('.').count() {
        1 => format!("{numbers}.0.0{rest}"),
        2 => format!("{numbers}.0{rest}"),
        _ => bare.to_owned(),
    };
    full.parse().map_err(|problem| {
        Failure::Plain(format!(
            "`{name}`: \"{text}\" is not a version such as \"1.2.3\": {problem}"
        ))
    })
}
