//! The boundary between the host and the languages, for a seeded test and for the fuzz target `seam`: a value of the host that passes
//! through a script returns unchanged, or both languages reject it with the same message.

use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Number, Value, json};
use tokio::{runtime, task::LocalSet};

use super::creation_of;
use crate::call::{Scripts as _, SharedPatch};
use crate::logic::{
    handlers::{handler::Handler, outcome::CallEnd},
    object::Object,
};
use crate::scripting::{Placement, ScriptHost, Source, Terms};
use crate::settings::Settings;

/// The ways through a script, each in a separate handler.
const WAYS: [&str; 5] = ["returned", "copied", "patched", "remembered", "encoded"];

const LUA: &str = r#"
    local function declare(id, f) kopf.on_create("kopfexamples", { id = id }, f) end
    declare("returned", function(ctx) return ctx.spec.v end)
    declare("copied", function(ctx) return kopf.copy(ctx.spec.v) end)
    declare("patched", function(ctx) ctx.patch.status.v = ctx.spec.v end)
    declare("remembered", function(ctx) ctx.memo.v = ctx.spec.v return ctx.memo.v end)
    declare("encoded", function(ctx) return json.decode(json.encode(ctx.spec.v)) end)
"#;

const RHAI: &str = r#"
    fn declare(id, f) { kopf::on_create("kopfexamples", #{ id: id }, f); }
    declare("returned", |ctx| ctx.spec.v);
    declare("copied", |ctx| kopf.copy(ctx.spec.v));
    declare("patched", |ctx| { ctx.patch.status.v = ctx.spec.v; });
    declare("remembered", |ctx| { ctx.memo.v = ctx.spec.v; ctx.memo.v });
    declare("encoded", |ctx| json.decode(json.encode(ctx.spec.v)));
"#;

/// The limit of the values that scripts keep, small enough for values to reach it. The limit of strings also exists in Rhai itself, but not
/// in Lua.
const RESULT_SIZE: usize = 8 << 10;

/// The maximum size of an object as JSON: API servers take no larger requests. Of a larger one, a tree and a tape may differ too much in
/// memory for the same limit to be reached first.
const OBJECT_MAX: usize = 3 << 20;

/// The form of the object that scripts read.
#[derive(Clone, Copy)]
enum Form {
    Tree,
    Tape,
}

/// Both languages, each with a loaded script.
pub struct Seam {
    runtime: runtime::Runtime,
    tasks: LocalSet,
    host: ScriptHost,
    /// The handlers of Lua, then those of Rhai, in the order of the ways.
    handlers: Vec<Arc<Handler>>,
}

impl Default for Seam {
    /// Loads the scripts of both languages.
    fn default() -> Self {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        let tasks = LocalSet::new();
        let mut settings = Settings::default();
        settings.sandbox.result_size = RESULT_SIZE;
        let terms = Terms::of(Placement::CurrentRuntime, &settings);
        let sources = vec![Source::alone("seam.lua", LUA), Source::alone("seam.rhai", RHAI)];
        let loaded = tasks.block_on(&runtime, ScriptHost::load(sources, terms));
        let (host, handlers) = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
        let handlers = handlers.into_iter().map(Arc::new).collect();
        Seam { runtime, tasks, host, handlers }
    }
}

impl Seam {
    /// Sends a value through both languages.
    ///
    /// # Errors
    /// The result differs from the value, or the languages do not agree.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        for (index, way) in WAYS.into_iter().enumerate() {
            let [lua, rhai] = [index, index + WAYS.len()].map(|handler| {
                let [tree, tape] =
                    [Form::Tree, Form::Tape].map(|it| self.through(handler, value, it));
                if tree == tape {
                    Ok(tree)
                } else {
                    Err(format!("{way}: on a tape {tape:?}, not {tree:?}"))
                }
            });
            let (lua, rhai) = (lua?, rhai?);
            let [lua, rhai] = [lua, rhai].map(|it| it.map(|it| without_points(&it)));
            if lua != rhai {
                let [lua, rhai] = [lua, rhai].map(|it| cut(&format!("{it:?}")));
                return Err(format!(
                    "{way}: {}\nin Lua: {lua}\nin Rhai: {rhai}",
                    cut(&value.to_string())
                ));
            }
            if let Ok(back) = lua
                && back != without_points(value)
            {
                let [value, back] = [value, &back].map(|it| cut(&it.to_string()));
                return Err(format!("{way}: {value}\ncame back as {back}"));
            }
        }
        Ok(())
    }

    /// Returns the result for a value in an object of this form, or the error of its rejection.
    fn through(&self, handler: usize, value: &Value, form: Form) -> Result<Value, String> {
        let handler = self.handlers.get(handler).expect("a handler");
        let patch = SharedPatch::default();
        let body = json!({ "metadata": { "name": "x", "namespace": "y" }, "spec": { "v": value } });
        let object = match form {
            Form::Tree => Object::from_value(body),
            Form::Tape => Object::parse_as_tape(body.to_string().into()).expect("JSON"),
        };
        let call = self.host.call(Arc::new(creation_of(handler, object, Arc::clone(&patch))));
        match self.tasks.block_on(&self.runtime, call) {
            CallEnd::Returned(Some(back)) => Ok(back),
            CallEnd::Returned(None) => {
                let merge = &patch.lock().merge;
                Ok(merge.get("status").and_then(|it| it.get("v")).cloned().unwrap_or_default())
            }
            CallEnd::Keyed(entries) => Err(format!("{entries:?}")),
            CallEnd::Raised(raised) => {
                // Maps of the languages have no order: the limit may be reached at another field.
                let message = PLACE_OF_SIZE.replace(&raised.message, "");
                Err(counted_from_0(&message, &handler.location))
            }
        }
    }
}

/// Returns the value with integers in place of floats without a fraction: Lua does not distinguish `1.0` from `1`.
fn without_points(value: &Value) -> Value {
    match value {
        Value::Number(it) => {
            let whole = it.as_f64().filter(|float| it.is_f64() && float.fract() == 0.0);
            let whole = whole.and_then(|it| format!("{it:.0}").parse::<i64>().ok());
            whole.map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(without_points).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| (key.clone(), without_points(it))).collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

static PLACE_OF_SIZE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?s): [0-9.]+( bytes| KiB| MiB)? up to .*").expect("valid"));

/// Returns a message in which the items of lists count from 0: Lua counts them from 1.
fn counted_from_0(message: &str, location: &str) -> String {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([0-9]+)\]").expect("valid"));
    if !location.starts_with("seam.lua") {
        return message.to_owned();
    }
    let earlier = |it: &Captures<'_>| {
        let place = it.get(1).and_then(|it| it.as_str().parse::<usize>().ok());
        format!("[{}]", place.unwrap_or_default().saturating_sub(1))
    };
    PLACE.replace_all(message, earlier).into_owned()
}

/// Cuts a string to a readable length.
fn cut(text: &str) -> String {
    text.chars().take(500).collect()
}

/// Creates a value from bytes. Every sequence of bytes creates one.
pub fn value_of(bytes: &[u8]) -> Value {
    let mut left = bytes.iter().copied();
    let mut items = 4_000;
    let value = value(&mut left, (0, &mut items));
    let size = value.to_string().len();
    if size > OBJECT_MAX { size.into() } else { value }
}

fn value(left: &mut impl Iterator<Item = u8>, (depth, items): (usize, &mut usize)) -> Value {
    /// Deeper than scripts may go, but not deeper than objects that can be read.
    const DEPTH_MAX: usize = 200;
    *items = items.saturating_sub(1);
    let Some(kind) = left.next().filter(|_| *items > 0 && depth < DEPTH_MAX) else {
        return true.into();
    };
    let size = left.next().unwrap_or_default();
    match kind % 12 {
        0 => size.is_multiple_of(2).into(),
        1 => i64::from(size).into(),
        2 => (i64::from(size) << 44).into(),
        3 => (-i64::from(size) << 20).into(),
        4 => Number::from_f64(f64::from(size) / 8.0 + 0.0625).map_or(Value::Null, Value::Number),
        5 => text(left, usize::from(size) % 8).into(),
        6 => text(left, 4).repeat(usize::from(size) * 16).into(),
        7 => list(left, usize::from(size) % 8, (depth, items)),
        8 | 9 => map(left, usize::from(size) % 8, (depth, items)),
        10 => {
            let before = *items;
            let inner = value(left, (depth + 1, items));
            let each = before - *items + 1;
            let copies = (usize::from(size) % 32).min(*items / each);
            *items -= copies * each;
            vec![inner; copies].into()
        }
        _ => {
            let inner = value(left, (depth + usize::from(size), items));
            // Levels count as items: copies of a deep value would take all memory of the script, in one form of the object earlier than in
            // the other.
            let levels = usize::from(size % 140).min(*items);
            *items -= levels;
            (0..levels).fold(inner, |inner, level| {
                if level.is_multiple_of(2) { json!([inner]) } else { json!({ "x": inner }) }
            })
        }
    }
}

fn text(left: &mut impl Iterator<Item = u8>, chars: usize) -> String {
    /// Characters with several encodings, or with a special meaning.
    const CHARS: [char; 16] =
        ['a', 'b', '0', '1', '.', '/', '"', '\\', '\n', '\0', 'é', '€', '𝄞', ' ', '-', '['];
    let char = |it: u8| CHARS.get(usize::from(it) % CHARS.len()).copied().unwrap_or_default();
    left.take(chars).map(char).collect()
}

fn list(
    left: &mut impl Iterator<Item = u8>,
    count: usize,
    (depth, items): (usize, &mut usize),
) -> Value {
    (0..count).map(|_| value(left, (depth + 1, items))).collect()
}

/// Creates a map with sorted keys, as maps of the languages have them: so both reach the same field first.
fn map(
    left: &mut impl Iterator<Item = u8>,
    count: usize,
    (depth, items): (usize, &mut usize),
) -> Value {
    let mut fields = Map::new();
    for _ in 0..count {
        let key = text(left, 2);
        fields.insert(key, value(left, (depth + 1, items)));
    }
    fields.sort_keys();
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number from the environment, for experiments: `KOPF_SEAM_SEED=5 KOPF_SEAM_COUNT=10000`.
    fn number(name: &str, usual: u64) -> u64 {
        let set = std::env::vars().find(|(it, _)| it == name);
        set.map_or(usual, |(_, it)| it.parse().expect("a number"))
    }

    #[test]
    fn values_come_back_equal_or_are_refused_in_the_same_words() {
        let seam = Seam::default();
        let mut random = fastrand::Rng::with_seed(number("KOPF_SEAM_SEED", 1));
        let (mut refused, count) = (0, number("KOPF_SEAM_COUNT", 400));
        for _ in 0..count {
            let bytes: Vec<u8> = (0..random.usize(1..120)).map(|_| random.u8(..)).collect();
            let value = value_of(&bytes);
            seam.check(&value).unwrap_or_else(|problem| panic!("{problem}"));
            refused += usize::from(seam.through(0, &value, Form::Tape).is_err());
        }
        assert!(refused > 20 && refused < 300, "{refused} of {count} were refused");
    }

    #[test]
    fn every_kind_of_value_comes_back() {
        let seam = Seam::default();
        for value in [
            json!({}),
            json!([]),
            json!([[], {}, [{}]]),
            json!(""),
            json!([null, 1, null]),
            json!({ "a": { "b": null } }),
            json!(1.0),
            json!(1e300),
            // The largest integer that a number of Lua holds exactly.
            json!(9_007_199_254_740_992_i64),
            json!(-9_007_199_254_740_992_i64),
            json!({ "": { "1": 1, "2": 2 } }),
            json!([9_007_199_254_740_993_i64, { "a": i64::MIN, "b": i64::MAX }]),
        ] {
            seam.check(&value).unwrap_or_else(|problem| panic!("{problem}"));
        }
    }
}
