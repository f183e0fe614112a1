//! Runs a template: from its source to the result, or to the next filter of the script that must be called.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior,
    machinery::{CodeGenerator, eval, make_string_output, parse},
    value::{Rest, Value, ValueKind},
};
use parking_lot::Mutex;
use serde_json::Value as Json;

use super::{
    filters,
    sources::{TemplateSources, syntax},
    statements::Builder,
    tree::{CHECKED, ITEMS, NEEDED, PAIRS},
    values::{check, of_json, problem, shown, step, to_json, written},
};
use crate::scripting::values::{files::FileReader, limits};

/// Maximum number of steps of one rendering; a step also pays for 64 bytes of a string.
const STEPS_MAX: u64 = 1_000_000;
/// Maximum nesting of loops, macros and the like; a macro counts as four.
const DEPTH_MAX: usize = 100;
/// Maximum number of calls of filters of the script.
const CALLS_MAX: usize = 200;
/// Macros and blocks that collect output write it again: up to this many times the maximum size of the result.
const WRITTEN_MAX: usize = 4;

/// A template to render.
pub(super) struct Task<'t> {
    pub(super) text: &'t str,
    pub(super) values: &'t Json,
    pub(super) is_strict: bool,
    pub(super) size_max: usize,
    /// The filters of the script.
    pub(super) filters: BTreeSet<&'t str>,
    /// The results of earlier calls of filters, in order.
    pub(super) results: &'t [Json],
    /// The files that it may include.
    pub(super) files: &'t FileReader,
}

/// The state of a rendering.
#[derive(Debug)]
pub(super) enum Rendered {
    /// It is complete: the result.
    Whole(String),
    /// It needs the result of a filter of the script.
    Asks { filter: String, arguments: Vec<Json> },
}

/// The calls of filters of the script: those with a result, and the first one without.
#[derive(Default)]
struct Calls {
    results: Vec<Value>,
    next: usize,
    asked: Option<(String, Vec<Json>)>,
}

/// Renders a template, up to the next call of a filter of the script.
pub(super) fn render(task: &Task<'_>) -> Result<Rendered, String> {
    let texts = TemplateSources::read(task.text, task.files)?;
    let located = |it: &Error| texts.at(it.line().unwrap_or_default(), &message(it));
    let mut parsed = Vec::new();
    for text in &texts.0 {
        parsed.push(parse(&text.padded, "template", syntax()).map_err(|it| located(&it))?);
    }
    let built = Builder::new(&texts, &parsed, &task.filters, task.is_strict).build();
    let built = built.map_err(|it| texts.at(it.line, &it.message))?;
    let calls = Arc::new(Mutex::new(Calls {
        results: task.results.iter().map(of_json).collect(),
        ..Calls::default()
    }));
    let environment = environment(task, &calls);
    let mut generator = CodeGenerator::new("template", "");
    generator.compile_stmt(&built);
    drop((built, parsed));
    let (instructions, blocks) = generator.finish();
    let (mut text, values) = (String::new(), of_json(task.values));
    let run = eval(
        &environment,
        &instructions,
        values,
        &blocks,
        &mut make_string_output(&mut text),
        AutoEscape::None,
    );
    let problem = run.err().map(|it| located(&it));
    if let Some((filter, arguments)) = calls.lock().asked.take() {
        return Ok(Rendered::Asks { filter, arguments });
    }
    match problem {
        Some(problem) => Err(problem),
        None if text.len() > task.size_max => Err(limits::too_long_text(task.size_max)),
        None => Ok(Rendered::Whole(text)),
    }
}

/// Returns the problem without the position.
fn message(error: &Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return format!("rendering takes more than {STEPS_MAX} steps");
    }
    let source = std::error::Error::source(error).and_then(|it| it.downcast_ref::<Error>());
    match (error.detail(), source) {
        (_, Some(source)) => message(source),
        (Some(detail), None) => match error.kind() {
            ErrorKind::InvalidOperation | ErrorKind::SyntaxError => detail.to_owned(),
            kind => format!("{kind}: {detail}"),
        },
        (None, None) => error.kind().to_string(),
    }
}

fn environment<'a>(task: &Task<'_>, calls: &Arc<Mutex<Calls>>) -> Environment<'a> {
    let size_max = task.size_max;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_recursion_limit(DEPTH_MAX);
    environment.remove_global("debug");
    environment.add_global("null", Value::from(()));
    filters::add(&mut environment, size_max);
    environment.set_unknown_method_callback(filters::method);
    environment.add_filter(CHECKED, move |it: Value| check(&it, size_max).map(|()| it));
    environment.add_filter(NEEDED, |it: Value, path: String| {
        if it.is_undefined() {
            let message =
                format!("there is no `{path}`; `{path} | default(\"\")` is for optional values");
            return Err(problem(message));
        }
        Ok(it)
    });
    environment.add_filter(ITEMS, |it: Value| looped(&it));
    environment.add_filter(PAIRS, |it: Value| pairs(&it));
    for name in &task.filters {
        let (name, calls) = ((*name).to_owned(), Arc::clone(calls));
        environment.add_filter(name.clone(), move |value: Value, rest: Rest<Value>| {
            called(&calls, &name, &value, &rest)
        });
    }
    let emitted = AtomicUsize::new(0);
    environment.set_formatter(move |out, _state, value| {
        step()?;
        let text = match value.as_str() {
            Some(it) => std::borrow::Cow::Borrowed(it),
            None => written(value)?.into(),
        };
        let all = emitted.fetch_add(text.len(), Ordering::Relaxed).saturating_add(text.len());
        if all > size_max.saturating_mul(WRITTEN_MAX) {
            return Err(problem(limits::too_long_text(size_max)));
        }
        out.write_str(&text).map_err(Error::from)
    });
    environment
}

/// Returns the items for a loop with one name.
fn looped(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => Ok(value.clone()),
        ValueKind::None | ValueKind::Undefined => Ok(Value::from(Vec::<Value>::new())),
        _other => Err(problem(format!("expected a list or a map, got {}", shown(value)))),
    }
}

/// Returns the items for a loop with two names: keys and values of a map, the pairs of a list, or indexes and items of another
/// list.
fn pairs(value: &Value) -> Result<Value, Error> {
    let items = looped(value)?;
    if items.kind() == ValueKind::Map {
        let pair = |key: Value| items.get_item(&key).map(|it| Value::from(vec![key, it]));
        return items.try_iter()?.map(pair).collect::<Result<Vec<_>, _>>().map(Value::from);
    }
    let all: Vec<Value> = items.try_iter()?.collect();
    let is_pair = |it: &Value| it.kind() == ValueKind::Seq && it.len() == Some(2);
    if all.iter().all(is_pair) {
        return Ok(Value::from(all));
    }
    let numbered = all.into_iter().enumerate();
    Ok(numbered.map(|(place, it)| Value::from(vec![Value::from(place), it])).collect())
}

/// Calls a filter of the script: returns its result, or ends this rendering.
fn called(
    calls: &Mutex<Calls>,
    filter: &str,
    value: &Value,
    rest: &[Value],
) -> Result<Value, Error> {
    let mut calls = calls.lock();
    let place = calls.next;
    calls.next += 1;
    if let Some(result) = calls.results.get(place) {
        return Ok(result.clone());
    }
    if place >= CALLS_MAX {
        return Err(problem(format!("more than {CALLS_MAX} calls of filters of the script")));
    }
    let arguments = std::iter::once(value).chain(rest).map(to_json).collect::<Result<_, _>>()?;
    calls.asked = Some((filter.to_owned(), arguments));
    Err(problem("waits for the script"))
}
