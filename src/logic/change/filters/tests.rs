//! The questions that filters raise, and when.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::logic::{
    handlers::{
        declare::{Argument, Declaration, declare},
        function::ScriptId,
        handler::Kind,
    },
    object::reason::Reason,
};

fn callback(slot: u32) -> Callback {
    Callback::Function(Function::new(ScriptId(0), slot, ""))
}

fn handler(options: Vec<(&str, Argument)>) -> Handler {
    declare(Declaration {
        kind: Kind::Event,
        selectors: vec![Argument::Value("kex".into())],
        options: options.into_iter().map(|(key, it)| (key.to_owned(), it)).collect(),
        function: Function::new(ScriptId(0), 0, "fn"),
        location: String::new(),
    })
    .expect("a handler")
}

/// Returns the slots of the functions that are asked, in order; each answers with the parity of its slot.
fn asked(handler: &Handler) -> (bool, Vec<u32>) {
    let object = Object::from_value(json!({ "metadata": { "labels": { "a": "x" } } }));
    let subject = Subject { object: &object, change: None };
    let (mut answers, mut slots) = (Answers::default(), Vec::new());
    loop {
        match matches(handler, &subject, &answers) {
            Ok(verdict) => return (verdict, slots),
            Err(question) => {
                let slot = question.function.slot;
                slots.push(slot);
                answers.note(&question, slot % 2 == 1);
            }
        }
    }
}

#[test]
fn nothing_is_asked_after_a_plain_criterion_failed() {
    let labels = Argument::Value(json!({ "a": "other" }));
    let when = Argument::Callback(callback(1));
    assert_eq!(asked(&handler(vec![("labels", labels), ("when", when)])), (false, vec![]));
}

#[test]
fn one_question_is_asked_once() {
    let labels = Argument::Map(vec![
        ("a".to_owned(), Argument::Callback(callback(1))),
        ("a".to_owned(), Argument::Callback(callback(1))),
    ]);
    assert_eq!(asked(&handler(vec![("labels", labels)])), (true, vec![1]));
}

#[test]
fn combinations_ask_no_more_than_they_need() {
    let (no, yes) = (callback(2), callback(1));
    let both = || vec![no.clone(), yes.clone()];
    let cases = [
        (Callback::All(both()), false, vec![2]),
        (Callback::Any(both()), true, vec![2, 1]),
        (Callback::None(both()), false, vec![2, 1]),
        (Callback::Not(Box::new(no.clone())), true, vec![2]),
        (Callback::All(vec![]), true, vec![]),
        (Callback::Any(vec![]), false, vec![]),
        (Callback::None(vec![]), true, vec![]),
    ];
    for (when, verdict, questions) in cases {
        let handler = handler(vec![("when", Argument::Callback(when))]);
        assert_eq!(asked(&handler), (verdict, questions));
    }
}

#[test]
fn questions_about_absent_fields_say_so() {
    let question = |field: &str| {
        let spec = vec![
            ("field", Argument::Value(json!(field))),
            ("value", Argument::Callback(callback(1))),
        ];
        let object = Object::from_value(json!({ "spec": { "x": null } }));
        let subject = Subject { object: &object, change: None };
        matches(&handler(spec), &subject, &Answers::default()).expect_err("a question").about
    };
    assert_eq!(question("spec.y"), Some(None));
    assert_eq!(question("spec.x"), Some(Some(Value::Null)));
}

#[test]
fn answers_about_objects_and_about_values_are_separate() {
    let labels = Argument::Map(vec![("a".to_owned(), Argument::Callback(callback(1)))]);
    let when = Argument::Callback(callback(1));
    let handler = Arc::new(handler(vec![("labels", labels), ("when", when)]));
    assert_eq!(asked(&handler), (true, vec![1, 1]));
}

#[test]
fn a_field_is_asked_about_once_or_about_both_sides_of_its_change() {
    let spec = vec![
        ("field", Argument::Value(json!("spec.x"))),
        ("value", Argument::Callback(callback(2))),
    ];
    let (handler, object) = (handler(spec), Object::from_value(json!({})));
    for (old, new, values) in [(1, 1, vec![json!(1)]), (1, 2, vec![json!(2), json!(1)])] {
        let side = |x: i32| Arc::new(json!({ "spec": { "x": x } }));
        let change = Change {
            reason: Reason::Update,
            initial: false,
            deleted: false,
            old: Some(side(old)),
            new: side(new),
            diff: Arc::default(),
            has_hidden: false,
        };
        let subject = Subject { object: &object, change: Some(&change) };
        let (mut answers, mut asked) = (Answers::default(), Vec::new());
        while let Err(question) = matches(&handler, &subject, &answers) {
            answers.note(&question, false);
            asked.extend(question.about.flatten());
        }
        assert_eq!(asked, values);
    }
}
