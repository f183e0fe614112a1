//! Request scripts: the format of `tests/exchanges/*.yaml`.
//!
//! A script is a list of steps; a step is one request, or an action on an open watch. Strings may contain variables: `$run` (a word
//! of this run), `$ns` (the namespace of the script), those under `vars`, and those that earlier steps have saved.

use std::{fs, path::PathBuf};

use indexmap::IndexMap;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A file of requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestScript {
    /// The name of the file, without its extension.
    #[serde(skip)]
    pub(crate) name: String,
    #[expect(dead_code, reason = "it is for readers of the file, and must not be missing")]
    about: String,
    /// Files in `setup/` whose variables and steps come first.
    #[serde(default, rename = "use")]
    uses: Vec<String>,
    #[serde(default)]
    pub(crate) vars: Vars,
    /// Steps that must succeed; not part of the transcript.
    #[serde(default)]
    pub(crate) setup: Vec<RequestStep>,
    pub(crate) steps: Vec<RequestStep>,
}

/// Variables and their values.
pub(crate) type Vars = IndexMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    #[serde(default)]
    vars: Vars,
    steps: Vec<RequestStep>,
}

/// One request or action.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestStep {
    /// The behavior that the step shows, if the request is not clear by itself.
    #[serde(default)]
    pub(crate) claim: Option<String>,
    /// `METHOD /path?query`; the methods `MERGE`, `JSON`, `STRATEGIC` and `APPLY` are kinds of PATCH.
    #[serde(default, rename = "do")]
    pub(crate) request: Option<String>,
    /// The impersonated user of the request; without it, the administrator.
    #[serde(default, rename = "as")]
    pub(crate) user: Option<String>,
    /// A bearer token instead of the administrator's credentials.
    #[serde(default)]
    pub(crate) token: Option<String>,
    #[serde(default)]
    pub(crate) headers: IndexMap<String, String>,
    /// A body that is sent as JSON.
    #[serde(default)]
    pub(crate) body: Option<Value>,
    /// A body that is sent as it is.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// A long body, sent as it is.
    #[serde(default)]
    pub(crate) fill: Option<Fill>,
    /// Variables to set from the response, by JSON pointer.
    #[serde(default)]
    pub(crate) save: IndexMap<String, String>,
    /// Repeats the request until the response has these values, by JSON pointer; `status` is that of HTTP.
    #[serde(default)]
    pub(crate) until: IndexMap<String, Value>,
    /// Parts that the response of any server must have, by JSON pointer, whatever was recorded. `status` is that of HTTP.
    #[serde(default)]
    pub(crate) expect: IndexMap<String, Value>,
    /// Keeps only these items (by their `name`) of lists in the response, by JSON pointer.
    #[serde(default)]
    pub(crate) pick: IndexMap<String, Vec<String>>,
    /// Keeps only this part of the response.
    #[serde(default)]
    pub(crate) only: Option<String>,
    /// Keeps the response open under this name: a watch.
    #[serde(default)]
    pub(crate) open: Option<String>,
    /// Reads events of an open watch.
    #[serde(default)]
    pub(crate) read: Option<String>,
    /// The number of events; without it, all until the end.
    #[serde(default)]
    pub(crate) lines: Option<usize>,
}

/// `before`, then `unit` repeated, then `after`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fill {
    #[serde(default)]
    pub(crate) before: String,
    pub(crate) unit: String,
    pub(crate) times: usize,
    #[serde(default)]
    pub(crate) after: String,
}

pub(crate) fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exchanges"))
}

/// Reads a YAML file.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(file: &str) -> T {
    let path = directory().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    // As in YAML 1.2: `n` and `on` are strings.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .unwrap_or_else(|it| panic!("{}: {it}", path.display()))
}

/// Returns all scripts by name; `only` selects those whose name contains it.
pub(crate) fn all(only: &str) -> Vec<RequestScript> {
    let entries = fs::read_dir(directory()).expect("a directory").flatten();
    let files = entries.filter_map(|it| it.file_name().into_string().ok());
    let names = files.filter_map(|it| Some(it.strip_suffix(".yaml")?.to_owned()));
    let mut names: Vec<String> =
        names.filter(|it| it.contains(only) && it != "known-differences").collect();
    names.sort();
    names.iter().map(|it| load(it)).collect()
}

/// Repeats the steps for each row of `each`. There, `$name` is the value in the row's column of this name. A map with `base` is
/// replaced by that value with the other fields merged into it.
fn expand(script: &mut Value) {
    let fields = script.as_object_mut().expect("a map");
    let Some(Value::Array(rows)) = fields.shift_remove("each") else { return };
    let steps = fields["steps"].as_array().expect("a list").clone();
    let rows = rows.iter().map(|it| it.as_object().expect("a map"));
    fields["steps"] = rows.flat_map(|row| steps.iter().map(|it| for_row(it, row))).collect();
}

fn for_row(value: &Value, row: &Map<String, Value>) -> Value {
    let texts = || row.iter().filter_map(|(key, it)| Some((key.clone(), it.as_str()?.into())));
    match value {
        Value::String(text) => match text.strip_prefix('$').and_then(|it| row.get(it)) {
            Some(whole) => whole.clone(),
            None => fill_in(text, &texts().collect()).into(),
        },
        Value::Array(items) => items.iter().map(|it| for_row(it, row)).collect(),
        Value::Object(fields) => {
            let filled =
                fields.iter().map(|(key, it)| (fill_in(key, &texts().collect()), for_row(it, row)));
            let mut filled: Map<String, Value> = filled.collect();
            let Some(mut base) = filled.shift_remove("base") else { return filled.into() };
            json_patch::merge(&mut base, &filled.into());
            base
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn load(name: &str) -> RequestScript {
    let mut script: Value = read(&format!("{name}.yaml"));
    expand(&mut script);
    let mut script: RequestScript =
        serde_json::from_value(script).unwrap_or_else(|it| panic!("{name}.yaml: {it}"));
    name.clone_into(&mut script.name);
    let mut vars = Vars::new();
    let mut steps = Vec::new();
    for it in &script.uses {
        let setup: Setup = read(&format!("setup/{it}.yaml"));
        vars.extend(setup.vars);
        steps.extend(setup.steps);
    }
    vars.append(&mut script.vars);
    steps.append(&mut script.setup);
    RequestScript { vars, setup: steps, ..script }
}

impl RequestStep {
    /// Describes the step, before variables are replaced.
    pub(crate) fn title(&self) -> String {
        match (&self.request, &self.read) {
            (Some(request), _) => request.clone(),
            (None, Some(watch)) => format!("read {watch}"),
            (None, None) => "nothing".into(),
        }
    }
}

/// Replaces variables such as `$name`; unknown ones stay.
pub(crate) fn fill_in(text: &str, vars: &Vars) -> String {
    let name = Regex::new(r"\$([a-z][a-z0-9]*)").expect("a valid pattern");
    let mut text = text.to_owned();
    // Values of variables may contain other variables.
    for _ in 0..4 {
        let known = |it: &Captures<'_>| vars.get(&it[1]).cloned().unwrap_or_else(|| it[0].into());
        let next = name.replace_all(&text, known).into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Replaces variables in all strings of a value, including the keys of maps.
pub(crate) fn fill_in_all(value: &Value, vars: &Vars) -> Value {
    match value {
        Value::String(text) => fill_in(text, vars).into(),
        Value::Array(items) => items.iter().map(|it| fill_in_all(it, vars)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| (fill_in(key, vars), fill_in_all(it, vars))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
