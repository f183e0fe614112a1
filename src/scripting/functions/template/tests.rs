//! Templates that are right, wrong, and hostile.

use serde_json::{Value, json};

use super::{parse::parse, render::render};

fn filled(template: &str, values: &Value) -> Result<String, String> {
    render(&parse(template)?, values, 1000)
}

#[test]
fn values_are_filled_in() {
    let values = json!({
        "name": "web", "on": true, "none": null, "count": 3, "items": ["a", "b"],
        "map": {"z": 1, "a": {"b": [5]}}, "lines": "x\ny",
    });
    for (template, expected) in [
        ("", ""),
        ("plain } text {", "plain } text {"),
        ("{{ name }}-{{count}}", "web-3"),
        ("{{ map.a.b[0] }}", "5"),
        ("{{ items }} {{ map }}", r#"["a","b"] {"a":{"b":[5]},"z":1}"#),
        ("{{ name | upper | quote }}", "\"WEB\""),
        ("{{ gone | default(\"x\") }}{{ none | default(7) }}", "x7"),
        ("{{ \"}} | %}\" }}", "}} | %}"),
        ("{{ items | join(\", \") }} {{ items | length }}", "a, b 2"),
        ("  {{ lines | indent(2) }}", "  x\n  y"),
        ("{{ map.a | yaml }}", "b:\n- 5"),
        ("{{ map.a | json }} {{ name | base64 }}", r#"{"b":[5]} d2Vi"#),
        ("{% if on %}1{% else %}2{% endif %}", "1"),
        ("{% if not on %}1{% elif name == \"web\" %}2{% else %}3{% endif %}", "2"),
        ("{% if gone %}1{% endif %}{% if count != 3 %}2{% endif %}", ""),
        (
            "{% for it in items %}{{ loop.index }}{{ it }}{% if not loop.last %},{% endif %}{% endfor %}",
            "1a,2b",
        ),
        ("{% for key, it in map %}{{ key }};{% endfor %}", "a;z;"),
        (
            "{% for a in items %}{% for b in items %}{{ a }}{{ b }} {% endfor %}{% endfor %}",
            "aa ab ba bb ",
        ),
        ("a {%- if on -%} b {%- endif %} c", "ab c"),
        ("a{# {{ remark #}b", "ab"),
        ("{% for it in none | default(\"\") | json %}{% endfor %}x", "x"),
    ] {
        if template.contains("json %}") {
            filled(template, &values).unwrap_err();
        } else {
            assert_eq!(filled(template, &values).as_deref(), Ok(expected), "{template}");
        }
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (template, told) in [
        (
            "a\n{{ gone.x }}",
            "line 2: there is no `gone.x`; `gone.x | default(\"\")` is for optional values",
        ),
        ("{{ name", "line 1: `{{` has no `}}`"),
        ("\n{% if name %}", "line 2: `{% if %}` has no `{% endif %}`"),
        ("{% endif %}", "line 1: `{% endif %}` has no matching start tag"),
        ("{% for x in name %}{% endif %}", "line 1: `{% endif %}` before `{% endfor %}`"),
        ("{% for x in name %}{% endfor %}", "line 1: expected a list or a map, got \"web\""),
        (
            "{% for x %}{% endfor %}",
            "line 1: expected `{% for item in path %}` or `{% for key, item in path %}`",
        ),
        ("{% fors x in y %}", "line 1: there is no `{% fors %}`; did you mean `for`?"),
        ("{{ name | uper }}", "line 1: there is no filter `uper`; did you mean `upper`?"),
        ("{{ 1 + 2 }}", "line 1: expected a path such as `spec.items[0].name`, got `1 + 2`"),
        (
            "{{ name | indent(x) }}",
            "line 1: expected a string in double quotes or a number in `indent(x)`",
        ),
        ("{{ name | join }}", "line 1: join: expected a list"),
    ] {
        assert_eq!(filled(template, &json!({"name": "web"})).unwrap_err(), told, "{template}");
    }
}

#[test]
fn a_template_that_grows_without_end_is_stopped() {
    let values = json!({ "items": vec![1; 300], "text": "x".repeat(600) });
    let open = "{% for a in items %}".repeat(4);
    let close = "{% endfor %}".repeat(4);
    let told = filled(&format!("{open}{close}"), &values).unwrap_err();
    assert_eq!(told, "takes more than 1000000 steps");
    let told = filled("{{ text }}{{ text }}", &values).unwrap_err();
    assert!(told.contains("settings.sandbox.string_size"), "{told}");
    let told = filled(&"{% if a %}".repeat(40), &values).unwrap_err();
    assert_eq!(told, "line 1: nested deeper than 32 levels");
}
