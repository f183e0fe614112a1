//! Declarations: cases that the vectors do not cover.

use std::time::Duration;

use serde_json::json;

use super::{super::function::ScriptId, *};

fn declaration(kind: Kind, options: &[(&str, Value)]) -> Declaration {
    let options = options.iter().map(|(key, it)| ((*key).to_owned(), Argument::Value(it.clone())));
    let needs_resource = kind.category() != Category::Activity && kind != Kind::Sub;
    Declaration {
        kind,
        selectors: needs_resource.then(|| Argument::Value("kex".into())).into_iter().collect(),
        options: options.collect(),
        function: Function::new(ScriptId(0), 0, ""),
        location: "handlers.lua:1".to_owned(),
    }
}

fn declared(kind: Kind, options: &[(&str, Value)]) -> Result<Handler, DeclareError> {
    declare(declaration(kind, options))
}

fn refusal(kind: Kind, options: &[(&str, Value)]) -> DeclareError {
    declared(kind, options).expect_err("a refusal")
}

#[test]
fn an_unknown_option_is_rejected_with_the_nearest_known_one() {
    let error = refusal(Kind::Create, &[("retires", json!(3))]);
    assert_eq!(error.message, "kopf.on_create has no option `retires`");
    assert_eq!(error.hint.as_deref(), Some("did you mean `retries`?"));
}

#[test]
fn an_option_of_another_kind_of_handler_is_refused_with_the_reason() {
    for (kind, option, message, reason) in [
        (
            Kind::Create,
            "interval",
            "kopf.on_create has no option `interval`",
            "this is an option of kopf.timer",
        ),
        (
            Kind::Create,
            "side_effects",
            "kopf.on_create has no option `side_effects`",
            "this is an option of kopf.on_validate, kopf.on_mutate",
        ),
        (
            Kind::Validate,
            "retries",
            "kopf.on_validate has no option `retries`",
            "its handlers are called once, without retries",
        ),
        (
            Kind::Mutate,
            "backoff",
            "kopf.on_mutate has no option `backoff`",
            "its handlers are called once, without retries",
        ),
        (
            Kind::Validate,
            "errors",
            "kopf.on_validate has no option `errors`",
            "its handlers are called once, without retries",
        ),
        (
            Kind::Event,
            "timeout",
            "kopf.on_event has no option `timeout`",
            "its handlers have no timeout",
        ),
        (
            Kind::Startup,
            "labels",
            "kopf.on_startup has no option `labels`",
            "its handlers do not handle single objects",
        ),
    ] {
        let error = refusal(kind, &[(option, json!(3))]);
        assert_eq!((&*error.message, error.hint.as_deref()), (message, Some(reason)));
    }
}

#[test]
fn an_anonymous_function_is_named_after_its_declaration() {
    for (kind, id) in [(Kind::Create, "create"), (Kind::Timer, "timer"), (Kind::Login, "login")] {
        assert_eq!(&*declared(kind, &[]).expect("a handler").id, id);
    }
    let field = declared(Kind::Field, &[("field", json!("spec.x"))]).expect("a handler");
    assert_eq!(&*field.id, "field/spec.x");
}

#[test]
fn durations_are_seconds_or_numbers_with_units() {
    let texts = [
        (json!(5), 5_000),
        (json!(0.5), 500),
        (json!("500ms"), 500),
        (json!("1.5s"), 1_500),
        (json!("10m"), 600_000),
        (json!("2h"), 7_200_000),
        (json!("1d"), 86_400_000),
    ];
    for (text, millis) in texts {
        let handler = declared(Kind::Create, &[("backoff", text)]).expect("a handler");
        assert_eq!(handler.limits.backoff, Some(Duration::from_millis(millis)));
    }
}

#[test]
fn invalid_values_of_options_are_rejected_by_name() {
    let odd = [
        ("backoff", json!(-1)),
        ("backoff", json!("soon")),
        ("retries", json!(1.5)),
        ("retries", json!(-1)),
        ("errors", json!("maybe")),
        ("id", json!(1)),
        ("field", json!([1])),
        ("labels", json!("x")),
        ("when", json!("x")),
    ];
    for (name, value) in odd {
        let message = refusal(Kind::Create, &[(name, value)]).message;
        assert!(message.starts_with(&format!("option `{name}` must be")), "{message}");
    }
}

#[test]
fn whole_floats_count_as_integers() {
    let handler = declared(Kind::Create, &[("retries", json!(3.0))]).expect("a handler");
    assert_eq!(handler.limits.retries, Some(3));
}

#[test]
fn a_null_label_is_rejected_with_a_hint() {
    let error = refusal(Kind::Create, &[("labels", json!({ "a": null }))]);
    assert_eq!(error.hint.as_deref(), Some("use kopf.PRESENT or kopf.ABSENT"));
}

#[test]
fn activities_take_no_resource() {
    let declaration = Declaration {
        selectors: vec![Argument::Value("kex".into())],
        ..declaration(Kind::Startup, &[])
    };
    let error = declare(declaration).expect_err("a refusal");
    assert_eq!(error.message, "kopf.on_startup takes no resource: it does not handle objects");
}

#[test]
fn sub_handlers_compare_values_only_where_their_parent_sees_changes() {
    let options = [("id", json!("s")), ("field", json!("f")), ("old", json!(1))];
    let parent = |kind, options: &[_]| declared(kind, options).expect("a parent");
    let sub = |parent: &Handler| declare_sub(declaration(Kind::Sub, &options), parent);
    assert!(sub(&parent(Kind::Create, &[])).is_err());
    let under_update = sub(&parent(Kind::Update, &[])).expect("a sub-handler");
    assert_eq!(&*under_update.id, "update/s");
    assert!(under_update.needs_change());
}

#[test]
fn sub_handlers_live_only_in_change_handlers() {
    let parent = declared(Kind::Timer, &[]).expect("a parent");
    assert!(declare_sub(declaration(Kind::Sub, &[]), &parent).is_err());
    assert!(declare(declaration(Kind::Sub, &[])).is_err());
}

#[test]
fn operations_of_admission_are_the_known_ones() {
    let handler = declared(Kind::Validate, &[("operation", json!("CREATE"))]).expect("a handler");
    assert_eq!(handler.admission.operations, ["CREATE"]);
    assert!(declared(Kind::Validate, &[("operations", json!(["create"]))]).is_err());
    assert!(declared(Kind::Validate, &[("operations", json!([]))]).is_err());
}

#[test]
fn every_option_has_one_sentence_of_documentation() {
    for option in options_of(Kind::Timer).chain(options_of(Kind::Validate)) {
        assert!(option.doc.ends_with('.'), "{}", option.name);
    }
}

#[test]
fn subhandlers_of_subhandlers_have_a_bound() {
    let mut parent = declared(Kind::Create, &[]).expect("a handler");
    let sub = |parent: &Handler| declare_sub(declaration(Kind::Sub, &[("id", json!("s"))]), parent);
    for _ in 0..SUB_LEVELS_MAX {
        parent = sub(&parent).expect("a sub-handler");
    }
    let error = sub(&parent).expect_err("a refusal");
    let expected = "sub-handlers are nested deeper than 16 levels: 's' in 'create/s/s/s/";
    assert!(error.message.starts_with(expected), "{}", error.message);
}

fn admitted(declaration: &Declaration) -> Result<(), DeclareError> {
    declaration.admit(&DeclaredSize::default())
}

#[test]
fn names_are_bounded_and_data_are_not() {
    let long = "x".repeat(9000);
    for (kind, name, value) in [
        (Kind::Create, "id", json!(long)),
        (Kind::Event, "labels", json!({ &long: "a" })),
        (Kind::Timer, "schedule", json!(long)),
        (Kind::Validate, "operations", json!([long])),
        (Kind::Validate, "match_conditions", json!([{ "name": "a", "expression": long }])),
    ] {
        let told = admitted(&declaration(kind, &[(name, value)])).unwrap_err().message;
        assert_eq!(told, format!("option `{name}` has a string of more than 8 KiB"));
    }
    let mut of_long_name = declaration(Kind::Create, &[]);
    of_long_name.selectors = vec![Argument::Value(json!(long))];
    let told = admitted(&of_long_name).unwrap_err().message;
    assert_eq!(told, "the selector has a string of more than 8 KiB");
    let deep = refusal(Kind::Field, &[("field", json!("a.".repeat(1024) + "b"))]).message;
    assert_eq!(deep, "option `field` has more than 1024 levels");

    let data = [("param", json!(long)), ("field", json!("a")), ("value", json!(long))];
    assert_eq!(admitted(&declaration(Kind::Create, &data)), Ok(()));
}
