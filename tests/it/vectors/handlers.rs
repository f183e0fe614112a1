//! Handlers: their declaration, selection, filters and order, and the meaning of their calls.

use std::sync::Arc;

use kopf::logic::{
    change::{
        cause::Change,
        filters::{self, Answers, Subject},
        registry::ResourceHandlers,
        selection::{self, AdmissionRequest, Certainty, OpenQuestion},
    },
    handlers::{
        declare::{Argument, declare, declare_sub},
        function::Function,
        handler::{Handler, Kind},
        lifecycle::Lifecycle,
        outcome::{self, Effort, LogLevel, LogLine, Outcome},
        selector::{AnyName, Selector},
    },
    object::{
        Object,
        diff::{DiffItem, DiffOperation},
        reason::Reason,
        resource::Resource,
    },
};
use serde_json::{Value, json};

use super::{
    catalogue::{self, Check, refused},
    run, same,
};

#[test]
fn handler_ids() {
    run("handler-ids", |vector| {
        let mut spec = catalogue::map(&vector.input);
        let decorator = spec.remove("decorator").expect("a decorator");
        let name = spec.remove("qualname").expect("a name");
        let parent = spec.remove("parent");
        spec.remove("wrapped");
        spec.insert("on".to_owned(), decorator);
        spec.insert("fn".to_owned(), name);
        let declaration = catalogue::declaration(&Value::Object(spec));
        let handler = match parent {
            Some(id) => declare_sub(declaration, &parent_handler(id.as_str().unwrap_or_default())),
            None => declare(declaration),
        };
        let Some(handler) = refused(vector, handler)? else { return Ok(()) };
        let actual = json!({ "id": &*handler.id, "field": handler.filters.field });
        same("handler", &actual, &vector.expected)
    });
}

fn parent_handler(id: &str) -> Handler {
    let spec = json!({ "on": "field", "fn": "parent", "field": "spec" });
    let mut handler = catalogue::handler(&spec).expect("a parent");
    handler.id = id.into();
    handler
}

/// The cause of a vector, with its object.
struct Case<'a> {
    spec: &'a Value,
    object: Object,
    change: Option<Change>,
}

impl<'a> Case<'a> {
    fn of(spec: &'a Value) -> Self {
        let change = (spec["kind"] == "changing").then(|| change(spec));
        Case { spec, object: Object::from_value(spec["body"].clone()), change }
    }

    fn subject(&self) -> Subject<'_> {
        Subject { object: &self.object, change: self.change.as_ref() }
    }

    /// Evaluates callbacks until none is left.
    fn settle<T>(&self, mut attempt: impl FnMut(&Answers) -> Result<T, OpenQuestion>) -> T {
        let context = catalogue::Context {
            body: &self.spec["body"],
            reason: self.change.as_ref().map(|it| it.reason.as_str()),
            has_diff: self.change.as_ref().is_some_and(|it| !it.diff.is_empty()),
        };
        let mut answers = Answers::default();
        loop {
            match attempt(&answers) {
                Ok(result) => return result,
                Err(ask) => {
                    let answer = catalogue::answer(&ask.question, &context);
                    answers.note(&ask.question, answer);
                }
            }
        }
    }

    fn request(&self) -> AdmissionRequest<'_> {
        let kind = self.spec["webhook_reason"]
            .as_str()
            .map(|it| if it.starts_with("valid") { Kind::Validate } else { Kind::Mutate });
        AdmissionRequest {
            kind,
            id: self.spec["webhook"].as_str(),
            operation: self.spec["operation"].as_str(),
            subresource: self.spec["subresource"].as_str(),
        }
    }
}

fn change(spec: &Value) -> Change {
    let reasons = [
        Reason::Create,
        Reason::Update,
        Reason::Delete,
        Reason::Resume,
        Reason::Noop,
        Reason::Free,
        Reason::Gone,
    ];
    let reason = reasons.into_iter().find(|it| spec["reason"] == it.as_str());
    let old = Some(spec["old"].clone()).filter(|it| !it.is_null());
    let new = spec["new"].clone();
    // Only the presence of a difference matters here.
    let diff = DiffItem {
        operation: DiffOperation::Change,
        field: Vec::new(),
        old: old.clone().unwrap_or_default(),
        new: new.clone(),
    };
    Change {
        has_hidden: false,
        deleted: false,
        reason: reason.unwrap_or(Reason::Update),
        initial: spec["initial"] == true,
        diff: Arc::new(if diff.old == diff.new { Vec::new() } else { vec![diff] }),
        old: old.map(Arc::new),
        new: Arc::new(new),
    }
}

#[test]
fn handler_selection() {
    run("handler-selection", |vector| {
        let specs = vector.input["handlers"].as_array().cloned().unwrap_or_default();
        let handlers: Result<Vec<_>, _> = specs.iter().map(catalogue::handler).collect();
        let handlers: Vec<_> =
            handlers.map_err(|it| it.to_string())?.into_iter().map(Arc::new).collect();
        let found = ResourceHandlers::among(&handlers, &catalogue::kopfexamples(), &|_, _| false);
        let case = Case::of(&vector.input["cause"]);
        same("selection", &selection_of(&found, &case), &vector.expected)
    });
}

fn selection_of(found: &ResourceHandlers, case: &Case<'_>) -> Value {
    let subject = case.subject();
    match case.spec["kind"].as_str() {
        Some("changing") => {
            let list = &found.changing;
            let prematched = case.settle(|it| selection::prematched(list, &subject, it));
            let required = case.settle(|it| selection::requires_finalizer(list, &subject, it));
            json!({
                "selected": ids(&case.settle(|it| selection::changing(list, &subject, it))),
                "prematched": prematched == Certainty::Yes,
                "requires_finalizer": required == Certainty::Yes,
                "owned": ids(&found.owned()),
                "extra_fields": found.extra_fields,
            })
        }
        Some("spawning") => {
            let list = &found.spawning;
            let running = case.settle(|it| selection::spawning(list, &subject, it, |_| false));
            let over = case.settle(|it| selection::spawning(list, &subject, it, |_| true));
            json!({
                "selected": ids(&running.selected),
                "requires_finalizer": !running.selected.is_empty(),
                "requires_finalizer_excluding_all": !over.selected.is_empty(),
            })
        }
        Some("webhook") => {
            let list = &found.admission;
            let request = case.request();
            let selected = case.settle(|it| selection::admission(list, &request, &subject, it));
            json!({ "selected": ids(&selected) })
        }
        kind => {
            let list = if kind == Some("indexing") { &found.indexing } else { &found.watching };
            let sorted = case.settle(|it| selection::watching(list, &subject, it));
            json!({ "selected": ids(&sorted.selected) })
        }
    }
}

fn ids(handlers: &[Arc<Handler>]) -> Vec<&str> {
    handlers.iter().map(|it| &*it.id).collect()
}

#[test]
fn filters_matching() {
    run("filters-matching", |vector| {
        let Some(handler) = refused(vector, catalogue::handler(&vector.input["handler"]))? else {
            return Ok(());
        };
        let handler = Arc::new(handler);
        let case = Case::of(&vector.input["cause"]);
        let subject = case.subject();
        let selector = handler.selector.as_ref().expect("a selector");
        let is_of_resource = selector.check(&catalogue::kopfexamples(), &|_, _| false);
        let is_of_request = handler.kind.category()
            != kopf::logic::handlers::handler::Category::Admission
            || !case
                .settle(|it| {
                    selection::admission(&[Arc::clone(&handler)], &case.request(), &subject, it)
                })
                .is_empty();
        let ask = |question| OpenQuestion { handler: Arc::clone(&handler), question };
        let matches = case.settle(|it| filters::matches(&handler, &subject, it).map_err(ask));
        let prematches = case.settle(|it| filters::prematches(&handler, &subject, it).map_err(ask));
        let applies = is_of_resource && is_of_request;
        let actual = json!({ "match": applies && matches, "prematch": applies && prematches });
        same("filters", &actual, &vector.expected)
    });
}

#[test]
fn lifecycles() {
    run("lifecycles", |vector| {
        let name = vector.input["lifecycle"].as_str().unwrap_or_default();
        let lifecycle = Lifecycle::parse(name).ok_or("no such lifecycle")?;
        let handlers: Vec<_> = vector.input["handlers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|id| json!({ "on": "create", "fn": "fn", "id": id }))
            .map(|spec| Arc::new(catalogue::handler(&spec).expect("a handler")))
            .collect();
        let retries = |id: &str| vector.input["retries"][id].as_u64().unwrap_or(0);
        for seed in 0..5 {
            let picked = lifecycle.pick(&handlers, retries, &mut |below| seed % below);
            check_picked(&ids(&picked), &vector.expected)?;
        }
        Ok(())
    });
}

fn check_picked(picked: &[&str], expected: &Value) -> Check {
    if let Some(allowed) = expected["subset_of"].as_array() {
        let mut unique = picked.to_vec();
        unique.sort_unstable();
        unique.dedup();
        let allowed = unique.iter().all(|it| allowed.contains(&json!(it)));
        let actual = json!([unique.len(), allowed]);
        return same("picked", &actual, &json!([expected["count"], true]));
    }
    same("picked", &json!(picked), &expected["selected"])
}

#[test]
fn selectors() {
    run("selectors", |vector| {
        let input = &vector.input;
        let arguments: Vec<Argument> =
            input["args"].as_array().into_iter().flatten().map(catalogue::argument).collect();
        let keyword = |key: &str| input["kwargs"][key].as_str().map(str::to_owned);
        let keywords = Selector {
            group: keyword("group"),
            version: keyword("version"),
            kind: keyword("kind"),
            plural: keyword("plural"),
            singular: keyword("singular"),
            shortcut: keyword("shortcut"),
            category: keyword("category"),
            ..Selector::default()
        };
        let selector = Selector::parse(&arguments, keywords);
        let Some(selector) = refused(vector, selector)? else { return Ok(()) };
        let actual = match input["op"].as_str() {
            Some("parse") => parsed(&selector),
            Some("check") => {
                selector.check(&catalogue::resource(&input["resource"]), &picks).into()
            }
            _ => {
                let all: Vec<_> = input["resources"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(catalogue::resource)
                    .collect();
                let mut found: Vec<_> =
                    selector.select(&all, &picks).iter().map(ToString::to_string).collect();
                found.sort();
                json!(found)
            }
        };
        same("selector", &actual, &vector.expected)
    });
}

fn parsed(selector: &Selector) -> Value {
    let name = selector.any_name.as_ref().map(|it| match it {
        AnyName::Everything => json!({ "$": "EVERYTHING" }),
        AnyName::Named(name) => json!(name),
    });
    json!({
        "group": selector.group,
        "version": selector.version,
        "kind": selector.kind,
        "plural": selector.plural,
        "singular": selector.singular,
        "shortcut": selector.shortcut,
        "category": selector.category,
        "any_name": name,
        "fn": selector.function.as_ref().map(|it| json!({ "$fn": &*it.name })),
        "is_specific": selector.is_specific(),
    })
}

fn picks(function: &Function, resource: &Resource) -> bool {
    match &*function.name {
        "all" => true,
        "core" => resource.group.is_empty(),
        "plural-kex" => resource.plural == "kopfexamples",
        "nonpreferred" => !resource.preferred,
        other => panic!("no selector function {other}"),
    }
}

#[test]
fn execution_outcomes() {
    run("execution-outcomes", |vector| {
        let input = &vector.input;
        let mut options = catalogue::map(&input["handler"]);
        if options.get("errors").is_none_or(Value::is_null) {
            options.insert("errors".to_owned(), input["default_errors"].clone());
        }
        options.insert("on".to_owned(), "create".into());
        let handler = catalogue::handler(&Value::Object(options)).map_err(|it| it.to_string())?;
        let effort = Effort {
            retries: input["retries"].as_u64().unwrap_or(0),
            runtime: catalogue::seconds(&input["runtime"]).unwrap_or_default(),
        };
        let refused = outcome::before(&handler, effort);
        let invoked = refused.is_none();
        let (outcome, line) = refused.unwrap_or_else(|| {
            let ended = catalogue::ended(input);
            outcome::after(&handler, ended, effort, catalogue::DEFAULT_BACKOFF)
        });
        let lines = [outcome::invoked(&handler), line];
        let actual = json!({
            "outcome": told(&outcome),
            "invoked": invoked,
            "logs": lines.iter().map(logged).collect::<Vec<_>>(),
        });
        same("outcome", &actual, &vector.expected)
    });
}

fn told(outcome: &Outcome) -> Value {
    json!({
        "final": outcome.last,
        "delay": outcome.delay.map(|it| it.as_secs_f64()),
        "result": outcome.result,
        "exception": outcome.error.as_ref().map(|it| [&it.class, &it.message]),
    })
}

fn logged(line: &LogLine) -> Value {
    let level = match line.level {
        LogLevel::Debug => "DEBUG",
        LogLevel::Info => "INFO",
        LogLevel::Warning => "WARNING",
        LogLevel::Error => "ERROR",
    };
    json!([level, line.text])
}
