//! Describes a handler as plain data, for users and tools: only what was declared, without defaults.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{
    handler::{Callback, Criterion, ErrorsMode, Filters, Handler, InitialDelay},
    selector::{AnyName, Selector},
};
use crate::logic::text::duration;

/// Returns the arguments of a handler's declaration. The keys are those of the declaration; durations are seconds, a field is a list of
/// keys.
pub fn describe(handler: &Handler) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("declaration".into(), handler.kind.declared_by().into());
    fields.insert("id".into(), (*handler.id).into());
    if !handler.function.name.is_empty() {
        fields.insert("function".into(), (*handler.function.name).into());
    }
    fields.insert("location".into(), (*handler.location).into());
    if let Some(selector) = &handler.selector {
        fields.insert("resource".into(), resource(selector).into());
        fields.insert("selector".into(), Value::Object(of_selector(selector)));
    }
    let (filters, options) = (of_filters(&handler.filters), of_options(handler));
    fields.insert("filters".into(), Value::Object(filters));
    fields.insert("options".into(), Value::Object(options));
    fields
}

/// Returns a short form of a selector, such as `kopfexamples.kopf.dev/v1`.
pub fn resource(selector: &Selector) -> String {
    let named = [
        ("kind ", &selector.kind),
        ("", &selector.plural),
        ("", &selector.singular),
        ("", &selector.shortcut),
        ("category ", &selector.category),
    ];
    let named =
        named.into_iter().find_map(|(what, name)| Some(format!("{what}{}", name.as_ref()?)));
    let name = match (&selector.any_name, &selector.function) {
        (Some(AnyName::Everything), _) => "everything".to_owned(),
        (Some(AnyName::Named(name)), _) => name.clone(),
        (None, Some(function)) => format!("as {} decides", called(&function.name)),
        (None, None) => named.unwrap_or_default(),
    };
    let group = match selector.group.as_deref() {
        None | Some("") => String::new(),
        Some(group) => format!(".{group}"),
    };
    let version = selector.version.as_ref().map(|it| format!("/{it}")).unwrap_or_default();
    format!("{name}{group}{version}")
}

fn of_selector(selector: &Selector) -> Map<String, Value> {
    let texts = [
        ("group", &selector.group),
        ("version", &selector.version),
        ("kind", &selector.kind),
        ("plural", &selector.plural),
        ("singular", &selector.singular),
        ("shortcut", &selector.shortcut),
        ("category", &selector.category),
    ];
    let texts =
        texts.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it.clone()?.into())));
    let mut fields: Map<String, Value> = texts.collect();
    match &selector.any_name {
        Some(AnyName::Everything) => drop(fields.insert("everything".into(), true.into())),
        Some(AnyName::Named(name)) => drop(fields.insert("name".into(), name.as_str().into())),
        None => {}
    }
    if let Some(function) = &selector.function {
        fields.insert("function".into(), called(&function.name).into());
    }
    fields
}

fn of_filters(filters: &Filters) -> Map<String, Value> {
    let mut fields = Map::new();
    for (key, criteria) in [("labels", &filters.labels), ("annotations", &filters.annotations)] {
        if !criteria.is_empty() {
            let criteria = criteria.iter().map(|(name, it)| (name.clone(), of_criterion(it)));
            fields.insert(key.into(), Value::Object(criteria.collect()));
        }
    }
    if let Some(field) = &filters.field {
        fields.insert("field".into(), field.clone().into());
    }
    for (key, criterion) in
        [("value", &filters.value), ("old", &filters.old), ("new", &filters.new)]
    {
        if let Some(criterion) = criterion {
            fields.insert(key.into(), of_criterion(criterion));
        }
    }
    if let Some(when) = &filters.when {
        fields.insert("when".into(), of_callback(when).into());
    }
    fields
}

/// Returns `{"equals": …}`, `{"present": true}`, `{"present": false}` or `{"function": …}`.
fn of_criterion(criterion: &Criterion) -> Value {
    match criterion {
        Criterion::Equals(value) => json!({ "equals": value }),
        Criterion::Present => json!({ "present": true }),
        Criterion::Absent => json!({ "present": false }),
        Criterion::Callback(callback) => json!({ "function": of_callback(callback) }),
    }
}

/// Returns a combination of functions as a string, such as `all(is_big, not(is_old))`.
fn of_callback(callback: &Callback) -> String {
    let joined = |all: &[Callback]| all.iter().map(of_callback).collect::<Vec<_>>().join(", ");
    match callback {
        Callback::Function(function) => called(&function.name).to_owned(),
        Callback::All(all) => format!("all({})", joined(all)),
        Callback::Any(all) => format!("any({})", joined(all)),
        Callback::None(all) => format!("none({})", joined(all)),
        Callback::Not(one) => format!("not({})", of_callback(one)),
    }
}

fn called(name: &str) -> &str {
    if name.is_empty() { "a function" } else { name }
}

fn of_options(handler: &Handler) -> Map<String, Value> {
    let (limits, background, admission) =
        (&handler.limits, &handler.background, &handler.admission);
    let errors = limits.errors.map(|it| match it {
        ErrorsMode::Ignored => "ignored",
        ErrorsMode::Temporary => "temporary",
        ErrorsMode::Permanent => "permanent",
    });
    let seconds = |it: Option<Duration>| it.map(duration::to_json);
    let flag = |it: bool| it.then_some(Value::Bool(true));
    let delay = background.initial_delay.as_ref().map(|it| match it {
        InitialDelay::Fixed(delay) => duration::to_json(*delay),
        InitialDelay::Computed(function) => json!({ "function": called(&function.name) }),
    });
    let operations = &admission.operations;
    let all = [
        ("errors", errors.map(Value::from)),
        ("timeout", seconds(limits.timeout)),
        ("retries", limits.retries.map(Value::from)),
        ("backoff", seconds(limits.backoff)),
        ("param", handler.param.clone()),
        ("deleted", flag(handler.deleted)),
        ("optional", flag(handler.optional)),
        ("initial_delay", delay),
        ("interval", seconds(background.interval)),
        ("sharp", flag(background.sharp)),
        ("idle", seconds(background.idle)),
        ("exclusive", flag(background.is_exclusive)),
        ("cancellation_backoff", seconds(background.cancellation_backoff)),
        ("cancellation_timeout", seconds(background.cancellation_timeout)),
        ("cancellation_polling", seconds(background.cancellation_polling)),
        ("operations", (!operations.is_empty()).then(|| operations.clone().into())),
        ("subresource", admission.subresource.clone().map(Value::from)),
        ("persistent", flag(admission.persistent)),
        ("side_effects", flag(admission.side_effects)),
        ("ignore_failures", flag(admission.ignore_failures)),
        ("match_conditions", admission.match_conditions.clone()),
        ("namespace_selector", admission.namespace_selector.clone()),
        ("match_policy", admission.match_policy.clone().map(Value::from)),
        ("reinvocation", flag(admission.reinvocation)),
        ("from", admission.conversion.as_ref().map(|it| it.from.clone().into())),
        ("to", admission.conversion.as_ref().map(|it| it.to.clone().into())),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
