//! Rules on values, with the messages of Kubernetes.

use serde_json::{Value, json};

use super::Expressions;
use crate::refusal::ValidationProblem;

/// Returns a schema with these rules at `spec`.
fn at_spec(rules: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object",
            "properties": {
                "min": { "type": "integer" },
                "max": { "type": "integer" },
                "ratio": { "type": "number" },
                "name": { "type": "string" },
                "dash-ed": { "type": "string" },
                "namespace": { "type": "string" },
                "since": { "type": "string", "format": "date-time" },
                "wait": { "type": "string", "format": "duration" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "port": { "x-kubernetes-int-or-string": true },
            },
            "x-kubernetes-validations": rules,
        } },
    })
}

fn texts(problems: &[ValidationProblem]) -> Vec<String> {
    problems.iter().map(|it| format!("{}: {}", it.field, it.text())).collect()
}

fn check(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    Expressions::new(schema).expect("rules").check(new, old, &mut found);
    texts(&found)
}

/// Returns the messages of a rule at `spec` for a spec.
fn run(rule: &str, spec: &Value) -> Vec<String> {
    check(&at_spec(&json!([{ "rule": rule }])), &json!({ "spec": spec }), None)
}

#[test]
fn rules_are_evaluated() {
    let spec = json!({
        "min": 2,
        "max": 5,
        "ratio": 1,
        "name": "Hello-World",
        "dash-ed": "x",
        "namespace": "ns",
        "since": "2024-05-01T10:00:00Z",
        "wait": "1h30m",
        "tags": ["a", "b", "c"],
        "labels": { "app": "web" },
        "port": 80,
    });
    let cases = [
        ("self.min <= self.max", true),
        ("self.min > self.max", false),
        ("has(self.min) && !has(self.other)", true),
        ("self.ratio == 1.0", true),
        ("self.name.lowerAscii() == 'hello-world'", true),
        ("self.name.split('-').size() == 2", true),
        ("self.tags.join(',') == 'a,b,c'", true),
        ("self.name.replace('-', '_') == 'Hello_World'", true),
        ("self.name.indexOf('-') == 5 && self.name.substring(6) == 'World'", true),
        ("' x '.trim() == 'x'", true),
        ("self.name.matches('^[A-Z][a-z]+-.*$')", true),
        ("self.name.find('[A-Z]') == 'H' && self.name.findAll('[A-Z]') == ['H', 'W']", true),
        ("self.tags.isSorted() && [3, 1, 2].max() == 3 && [3, 1, 2].min() == 1", true),
        ("[1, 2, 3].sum() == 6 && self.tags.indexOf('b') == 1", true),
        ("self.tags.all(t, t.size() == 1) && self.tags.exists(t, t == 'b')", true),
        ("self.tags.exists_one(t, t == 'z')", false),
        ("self.tags.map(t, t + '!') == ['a!', 'b!', 'c!']", true),
        ("self.tags.filter(t, t != 'a').size() == 2", true),
        ("'app' in self.labels && self.labels['app'] == 'web'", true),
        ("self.labels.all(k, k.size() < 10)", true),
        ("self.dash__dashed == 'x'", false),
        ("self.dash__dash__ed == 'x' && self.__namespace__ == 'ns'", true),
        ("self.wait > duration('1h') && self.since < timestamp('2025-01-01T00:00:00Z')", true),
        ("type(self.port) == int ? self.port > 0 : self.port != ''", true),
        ("self.?other.orValue('none') == 'none'", true),
        ("optional.of(1).hasValue()", true),
        ("isURL('https://a.b/c') && !isURL('no')", true),
        ("isQuantity('10Gi') && quantity('1Gi').isLessThan(quantity('2G'))", true),
        ("'%s-%d'.format([self.name, self.min]) == 'Hello-World-2'", true),
    ];
    for (rule, holds) in cases {
        let found = run(rule, &spec);
        assert_eq!(found.is_empty(), holds, "{rule}: {found:?}");
    }
}

#[test]
fn a_violated_rule_is_reported_with_its_text_or_its_message() {
    let spec = json!({ "min": 3, "max": 1 });
    let rule = "self.min <= self.max";
    assert_eq!(run(rule, &spec), ["spec: Invalid value: failed rule: self.min <= self.max"]);
    let rules = json!([
        { "rule": rule, "message": "min must not exceed max" },
        { "rule": rule, "messageExpression": "'min is ' + string(self.min)" },
        { "rule": rule, "messageExpression": "string(self.nothing)", "message": "plain" },
        { "rule": rule, "reason": "FieldValueForbidden", "fieldPath": ".max", "message": "no" },
        { "rule": rule, "reason": "FieldValueRequired", "message": "more" },
    ]);
    assert_eq!(
        check(&at_spec(&rules), &json!({ "spec": spec }), None),
        [
            "spec: Invalid value: min must not exceed max",
            "spec: Invalid value: min is 3",
            "spec: Invalid value: plain",
            "spec.max: Forbidden: no",
            "spec: Required value: more",
        ]
    );
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_violated() {
    let found = run("self.min > 1", &json!({}));
    assert_eq!(found, ["spec: Invalid value: no such key: min evaluating rule: self.min > 1"]);
    let found = run("self.min / 0 == 1", &json!({ "min": 1 }));
    assert!(found[0].contains("evaluating rule: self.min / 0 == 1"), "{found:?}");
    let found = run("self.min", &json!({ "min": 1 }));
    assert!(found[0].contains("must evaluate to a bool"), "{found:?}");
}

#[test]
fn rules_may_be_at_any_level() {
    let rule = |text: &str| json!([{ "rule": text }]);
    let schema = json!({
        "type": "object",
        "x-kubernetes-validations": rule("self.metadata.name.startsWith('x')"),
        "properties": { "spec": { "type": "object", "properties": {
            "list": { "type": "array", "items": { "type": "integer", "x-kubernetes-validations": rule("self > 0") } },
            "map": {
                "type": "object",
                "additionalProperties": { "type": "string", "x-kubernetes-validations": rule("self != ''") },
            },
        } } },
    });
    let object =
        json!({ "metadata": { "name": "y" }, "spec": { "list": [1, 0], "map": { "a": "" } } });
    assert_eq!(
        check(&schema, &object, None),
        [
            "<nil>: Invalid value: failed rule: self.metadata.name.startsWith('x')",
            "spec.list[1]: Invalid value: failed rule: self > 0",
            "spec.map[a]: Invalid value: failed rule: self != ''",
        ]
    );
}

#[test]
fn transition_rules_run_on_updates_only() {
    let schema =
        at_spec(&json!([{ "rule": "self.name == oldSelf.name", "message": "name is immutable" }]));
    let object = |name: &str| json!({ "spec": { "name": name } });
    assert!(check(&schema, &object("a"), None).is_empty());
    assert!(check(&schema, &object("a"), Some(&object("a"))).is_empty());
    assert_eq!(
        check(&schema, &object("b"), Some(&object("a"))),
        ["spec: Invalid value: name is immutable"]
    );
    let optional = at_spec(&json!([{
        "rule": "oldSelf.hasValue() || self.name == 'first'",
        "optionalOldSelf": true,
    }]));
    assert_eq!(check(&optional, &object("b"), None).len(), 1);
    assert!(check(&optional, &object("first"), None).is_empty());
    assert!(check(&optional, &object("b"), Some(&object("a"))).is_empty());
}

#[test]
fn items_of_map_lists_are_compared_with_their_old_ones() {
    let schema = json!({ "type": "object", "properties": { "l": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "properties": { "k": { "type": "string" }, "v": { "type": "integer" } },
            "x-kubernetes-validations": [{ "rule": "self.v >= oldSelf.v" }],
        },
    } } });
    let old = json!({ "l": [{ "k": "a", "v": 1 }, { "k": "b", "v": 5 }] });
    let new = json!({ "l": [{ "k": "c", "v": 0 }, { "k": "b", "v": 4 }, { "k": "a", "v": 1 }] });
    assert_eq!(
        check(&schema, &new, Some(&old)),
        ["l[1]: Invalid value: failed rule: self.v >= oldSelf.v"]
    );
}

#[test]
fn rules_that_cannot_be_compiled_are_refused() {
    let refusal = |rule: &str| {
        texts(&Expressions::new(&at_spec(&json!([{ "rule": rule }]))).expect_err("refused"))
    };
    for (rule, part) in [
        ("nothing(self)", "undeclared reference to 'nothing' (in container '')"),
        ("self.name.explode()", "undeclared reference to 'explode'"),
        ("other.name == ''", "undeclared reference to 'other'"),
        ("self.tags.all(t, u == '')", "undeclared reference to 'u'"),
        ("self.min <=", "compilation failed: ERROR: <input>:1:"),
        ("", "rule is not specified"),
    ] {
        let found = refusal(rule);
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        assert!(found[0].contains(part), "{rule}: {found:?}");
        assert!(
            found[0].starts_with(".properties[spec].x-kubernetes-validations[0].rule: "),
            "{rule}: {found:?}"
        );
    }
    let unrelated = json!({ "type": "object", "properties": { "l": {
        "type": "array",
        "items": { "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf" }] },
    } } });
    assert!(
        texts(&Expressions::new(&unrelated).expect_err("refused"))[0].contains("uncorrelatable")
    );
}

#[test]
fn costly_rules_are_not_run() {
    let tags: Vec<String> = (0..2_000).map(|it| it.to_string()).collect();
    let spec = json!({ "tags": tags, "name": "a".repeat(1_000_000) });
    for rule in [
        "self.tags.all(a, self.tags.all(b, self.tags.all(c, a != b || b != c)))",
        "self.name.replace('a', self.name) != ''",
        "self.name.replace('', 'bbbbbbbb').replace('', 'cccccccc').replace('', 'dddddddd') != ''",
    ] {
        let found = run(rule, &spec);
        assert!(found[0].contains("cost limit exceeded"), "{rule}: {found:?}");
    }
    assert!(run("self.tags.all(a, a != '')", &spec).is_empty());
}

#[test]
fn deep_expressions_are_refused() {
    for rule in [
        format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000)),
        "true ? ".repeat(10_000),
        format!("self{} == 1", ".a".repeat(100_000)),
        format!("1{} == 1", " + 1".repeat(100_000)),
        vec!["true"; 50_000].join(" && "),
        "!".repeat(100_000),
        format!("'{}", "(".repeat(20_000)),
        "[".repeat(10_000),
    ] {
        assert!(
            Expressions::new(&at_spec(&json!([{ "rule": rule }]))).is_err(),
            "{}",
            rule.get(..20).unwrap_or(&rule)
        );
    }
    let allowed = format!("{}self.min == 1{}", "(".repeat(24), ")".repeat(24));
    assert!(run(&allowed, &json!({ "min": 1 })).is_empty());
    let allowed = vec!["self.min == 1"; 30].join(" && ");
    assert!(run(&allowed, &json!({ "min": 1 })).is_empty());
    let allowed = format!("self.min{} == 31", " + 1".repeat(30));
    assert!(run(&allowed, &json!({ "min": 1 })).is_empty());
}
