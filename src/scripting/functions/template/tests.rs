//! Templates that are right, wrong, and hostile.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::engine::{Rendered, Task, render};
use crate::scripting::{
    functions::pace,
    values::files::{FileReader, Unread},
};

const SIZE_MAX: usize = 1 << 20;

fn task<'t>(text: &'t str, values: &'t Value, files: &'t FileReader) -> Task<'t> {
    Task {
        text,
        values,
        is_strict: true,
        size_max: SIZE_MAX,
        filters: ["slug"].into(),
        results: &[],
        files,
    }
}

fn whole(task: &Task<'_>) -> Result<String, String> {
    match render(task)? {
        Rendered::Whole(text) => Ok(text),
        asks @ Rendered::Asks { .. } => Err(format!("{asks:?}")),
    }
}

fn filled(template: &str, values: &Value) -> Result<String, String> {
    whole(&task(template, values, &FileReader::default()))
}

fn with_files(files: &[(&str, &str)]) -> FileReader {
    let files: BTreeMap<_, _> =
        files.iter().map(|(name, it)| ((*name).to_owned(), Arc::from(*it))).collect();
    FileReader::by(move |name| {
        if name.starts_with('/') {
            return Err(Unread::Refused("it is absolute".into()));
        }
        files.get(name).cloned().ok_or_else(|| Unread::Missing("it is not there".into()))
    })
}

#[test]
fn values_are_inserted() {
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
        ("a\n{% if on %}\nb\n{% endif %}\n", "a\n\nb\n\n"),
        ("{{ on }} {{ not on }} {{ 1.5 }}", "true false 1.5"),
        ("{{ none | default(null) }}{{ items[7] | default('-') }}", "-"),
    ] {
        assert_eq!(filled(template, &values).as_deref(), Ok(expected), "{template}");
    }
    filled("{% for it in none | default(\"\") | json %}{% endfor %}x", &values).unwrap_err();
}

#[test]
fn the_language_is_that_of_jinja() {
    let values = json!({
        "name": "web", "count": 3, "items": [3, 1, 2], "users": [{"n": "a", "on": true}, {"n": "b"}],
        "labels": {"app.kubernetes.io/name": "x"}, "encoded": "d2Vi", "text": "{\"a\": [1]}",
    });
    for (template, expected) in [
        ("{{ labels['app.kubernetes.io/name'] }}", "x"),
        ("{{ count + 1 }} {{ count * 2 - 1 }} {{ 7 // 2 }} {{ 2 ** 3 }} {{ 7 % 4 }}", "4 5 3 8 3"),
        ("{{ name ~ '-' ~ count }}", "web-3"),
        ("{% if count > 2 and name in ['web', 'db'] %}yes{% endif %}", "yes"),
        ("{{ 'a' if count == 3 else 'b' }}{{ 'c' if count == 4 }}", "a"),
        ("{% set x = items | sort | first %}{{ x }}", "1"),
        ("{% for u in users if u.on %}{{ u.n }}{% else %}nobody{% endfor %}", "a"),
        ("{{ users | map(attribute='n') | join('+') }}", "a+b"),
        ("{{ users | selectattr('on') | list | length }}", "1"),
        ("{% macro f(a, b=2) %}{{ a }}/{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, b=3) }}", "1/2 1/3"),
        ("{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}x{% endcall %}", "<x>"),
        ("{% filter upper %}a{{ name }}{% endfilter %}", "AWEB"),
        ("{% set t %}x{{ count }}{% endset %}{{ t | upper }}", "X3"),
        ("{% with a = 1 %}{{ a }}{% endwith %}{% raw %}{{ a }}{% endraw %}", "1{{ a }}"),
        (
            "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "02",
        ),
        (
            "{% set ns = namespace(n=0) %}{% for i in items %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
            "6",
        ),
        ("{{ encoded | b64decode }} {{ 'web' | b64encode }}", "web d2Vi"),
        ("{{ (text | from_json).a[0] }} {{ ('a: [7]' | from_yaml).a | to_json }}", "1 [7]"),
        ("{{ items | to_yaml }}", "- 3\n- 1\n- 2"),
        ("{{ true | ternary('a', 'b') }}{{ name | replace('w', 'v') }}{{ ' x ' | trim }}", "avebx"),
        ("{% for it in {'a': 1} | dict2items %}{{ it.key }}={{ it.value }}{% endfor %}", "a=1"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        (
            "{{ {'a': 1}.get('b', 2) }}{{ 'A-b'.lower().startswith('a-') }}{{ {'a': 1}.keys() }}{{ ' x '.strip() }}",
            "2true[\"a\"]x",
        ),
        ("{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }};{% endfor %}", "3;7;"),
        ("{% for k in {'b': 1, 'a': 2} %}{{ k }}{% endfor %}", "ab"),
        (
            "{{ '%d' }}{{ '\\n' | quote }}{{ [1, 'a', true] }}{{ -count }}{{ not count }}",
            "%d\"\\n\"[1,\"a\",true]-3false",
        ),
        (
            "{{ gone is defined }} {{ name is string }} {{ (gone | default('x')) is defined }}",
            "false true true",
        ),
        (
            "{{ 'a' | center(5) }}|{{ 'abcdef' | truncate(5) }}|{{ 'a b' | urlencode }}",
            "  a  |ab...|a%20b",
        ),
        ("{{ 'a\nb' | indent(2, first=true) }}|{{ 'a\nb' | indent(width=1) }}", "  a\n  b|a\n b"),
        (
            "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is sequence else x }}{% endfor %}",
            "123",
        ),
        (
            "{% for x in items %}{{ loop.cycle('a', 'b') }}{{ loop.previtem | default('-') }}{% endfor %}",
            "a-b3a1",
        ),
        ("{% do range(3) %}{{ range(2, 8, 3) | list }}{{ dict(a=1).a }}", "[2,5]1"),
    ] {
        assert_eq!(filled(template, &values).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn missing_values_are_empty_if_the_template_is_not_strict() {
    let (values, near) = (json!({ "a": {} }), FileReader::default());
    let text = "{{ gone }}{{ a.b.c | upper }}{% for x in gone %}x{% endfor %}{{ a.b or 'x' }}.";
    assert_eq!(
        whole(&task(text, &values, &near)).unwrap_err(),
        "line 1: there is no `gone`; `gone | default(\"\")` is for optional values"
    );
    let lenient = Task { is_strict: false, ..task(text, &values, &near) };
    assert_eq!(whole(&lenient).as_deref(), Ok("x."));
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (template, message) in [
        (
            "a\n{{ gone.x }}",
            "line 2: there is no `gone.x`; `gone.x | default(\"\")` is for optional values",
        ),
        ("{{ name", "line 1: unexpected end of input, expected end of variable block"),
        ("\n{% if name %}", "line 2: unexpected end of input, expected end of block"),
        ("{% endif %}", "line 1: unknown statement endif"),
        ("{% for x in name %}{% endfor %}", "line 1: expected a list or a map, got \"web\""),
        ("{% fors x in y %}", "line 1: unknown statement fors"),
        ("{{ name | uper }}", "line 1: there is no filter `uper`; did you mean `upper`?"),
        ("{{ name is definet }}", "line 1: there is no test `definet`; did you mean `defined`?"),
        (
            "\n\n{{ name + 2 }}",
            "line 3: tried to use + operator on unsupported types string and number",
        ),
        (
            "{{ name | indent(x) }}",
            "line 1: there is no `x`; `x | default(\"\")` is for optional values",
        ),
        ("{{ name | join }}", "line 1: join: expected a list"),
        ("{{ name | indent(300) }}", "line 1: indent: at most 200"),
        ("{{ nothing() }}", "line 1: unknown function: nothing is unknown"),
        ("{{ '?' | b64decode }}", "line 1: b64decode: Invalid symbol 63, offset 0."),
        ("\n{% extends 'x' %}", "line 2: there is no \"x\" next to the script"),
        ("{% include name %}", "line 1: expected the name of a file in quotes"),
        ("\n{% include 'x' %}", "line 2: there is no \"x\" next to the script"),
        ("{% include '/etc/passwd' %}", "line 1: cannot load \"/etc/passwd\": it is absolute"),
        ("{{ name | format }}", "line 1: there is no filter `format`"),
    ] {
        let near = with_files(&[]);
        let values = json!({"name": "web"});
        let outcome = whole(&task(template, &values, &near));
        assert_eq!(outcome.unwrap_err(), message, "{template}");
    }
}

#[test]
fn files_next_to_the_script_are_included() {
    let near = with_files(&[
        ("head", "# {{ name }}\n{% include 'deep' %}"),
        ("deep", "deep {{ name }}"),
        ("macros", "not written\n{% macro tag(x) %}<{{ x }}>{% endmacro %}{% set one = 1 %}"),
        ("self", "{% include 'self' %}"),
        ("broken", "\n\n{{ gone }}"),
        ("syntax", "\n{% if %}"),
    ]);
    let values = json!({ "name": "web" });
    let fill = |text: &str| whole(&task(text, &values, &near));
    assert_eq!(fill("{% include 'head' %}!\n").as_deref(), Ok("# web\ndeep web!\n"));
    assert_eq!(
        fill("{% import 'macros' as m %}{{ m.tag(name) }}{{ m.one }}").as_deref(),
        Ok("<web>1")
    );
    assert_eq!(fill("{% from 'macros' import tag as t, one %}{{ t(one) }}").as_deref(), Ok("<1>"));
    assert_eq!(fill("{% include 'none' ignore missing %}x").as_deref(), Ok("x"));
    for (text, message) in [
        ("{% include 'self' %}", "self:1: \"self\" includes itself, or is included 16 levels deep"),
        (
            "a\n{% include 'broken' %}",
            "broken:3: there is no `gone`; `gone | default(\"\")` is for optional values",
        ),
        (
            "a\nb\n{% include 'head' %}{{ gone }}",
            "line 3: there is no `gone`; `gone | default(\"\")` is for optional values",
        ),
        ("{% include 'syntax' %}", "syntax:2: unexpected end of block"),
        (
            "{% from 'macros' import nothing %}",
            "line 1: the file has no macro or variable `nothing`",
        ),
    ] {
        assert_eq!(fill(text).unwrap_err(), message, "{text}");
    }
}

fn family() -> FileReader {
    with_files(&[
        (
            "base",
            "<{% block title %}base{% endblock %}>{% block body %}{% endblock %}{{ foot | default('-') }}\n",
        ),
        ("middle", "{% extends 'base' %}{% block title %}{{ super() }}+middle{% endblock %}"),
        ("loops", "{% for x in [1, 2] %}{% block one %}{{ x }}{% endblock %}{% endfor %}"),
        ("self", "{% extends 'self' %}"),
        ("a", "{% extends 'b' %}"),
        ("b", "{% extends 'a' %}"),
        ("again", "{% extends 'base' %}{% block body %}{% include 'again' %}{% endblock %}"),
        ("broken", "{% extends 'base' %}\n{% block title %}\n{{ gone }}{% endblock %}"),
        ("ring", "{% block x %}{% block y %}{% endblock %}{% endblock %}"),
    ])
}

#[test]
fn a_file_can_be_extended() {
    let near = family();
    let values = json!({ "name": "web" });
    let fill = |text: &str| whole(&task(text, &values, &near));
    for (text, expected) in [
        ("{% include 'base' %}", "<base>-\n"),
        ("{% extends 'base' %}ignored{{ gone }}", "<base>-\n"),
        ("{% extends 'base' %}{% block title %}{{ name }}{% endblock %}", "<web>-\n"),
        (
            "{% extends 'middle' %}{% block title %}{{ super() }}+{{ name }}{% endblock %}",
            "<base+middle+web>-\n",
        ),
        (
            "{% extends 'middle' %}{% set foot = name %}{% block body %}{{ foot }}{% endblock %}",
            "<base+middle>webweb\n",
        ),
        (
            "{% macro m(x) %}[{{ x }}]{% endmacro %}{% extends 'base' %}{% block body %}{{ m(1) }}{% endblock %}",
            "<base>[1]-\n",
        ),
        (
            "{% extends 'loops' %}{% block one %}{{ super() }}{{ x * 10 }},{% endblock %}",
            "110,220,",
        ),
        (
            "{% extends 'base' %}{% block body %}{% block inner %}in{% endblock %}{% endblock %}",
            "<base>in-\n",
        ),
        (
            "{% extends 'base' %}{% block body %}{% include 'middle' %}{% endblock %}",
            "<base><base+middle>-\n-\n",
        ),
        ("{% block alone %}{% set a = 1 %}{{ a }}{% endblock %}", "1"),
    ] {
        assert_eq!(fill(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn mistakes_in_extended_files_are_reported() {
    let near = family();
    let values = json!({ "name": "web" });
    let fill = |text: &str| whole(&task(text, &values, &near));
    let itself = "extends itself, or is extended 16 times";
    for (text, message) in [
        ("{% extends 'self' %}", format!("self:1: \"self\" {itself}")),
        ("{% extends 'a' %}", format!("b:1: \"a\" {itself}")),
        ("{% extends name %}", "line 1: expected the name of a file in quotes".into()),
        (
            "{% extends 'base' %}{% extends 'middle' %}",
            "line 1: a template can extend only one file".into(),
        ),
        (
            "{% if name %}{% extends 'base' %}{% endif %}",
            "line 1: `extends` is only allowed at the top level of a file".into(),
        ),
        ("{{ super() }}", format!("line 1: {NO_SUPER}")),
        ("{% extends 'base' %}{% block own %}{{ super() }}{% endblock %}", String::new()),
        (
            "{% extends 'base' %}{% block body %}{% block own %}{{ super() }}{% endblock %}{% endblock %}",
            format!("line 1: {NO_SUPER}"),
        ),
        (
            "{% extends 'again' %}",
            "again:1: \"again\" includes itself, or is included 16 levels deep".into(),
        ),
        (
            "{% extends 'broken' %}",
            "broken:3: there is no `gone`; `gone | default(\"\")` is for optional values".into(),
        ),
        (
            "{% block a %}{% endblock %}{% block a %}{% endblock %}",
            "line 1: block 'a' defined twice".into(),
        ),
        (
            "{% extends 'ring' %}{% block y %}{% block x %}{{ super() }}{% endblock %}{% endblock %}",
            "line 1: the block `x` is more than 16 levels deep".into(),
        ),
    ] {
        let outcome = fill(text);
        if message.is_empty() {
            assert_eq!(outcome.as_deref(), Ok("<base>-\n"), "{text}");
        } else {
            assert_eq!(outcome.unwrap_err(), message, "{text}");
        }
    }
}

const NO_SUPER: &str = "`super()` can only be used in a block that the extended file also defines";

#[test]
fn ignored_statements_of_an_extending_file_are_counted() {
    let big = format!("{{% extends 'base' %}}{}", "{% if a %}{% endif %}".repeat(9_000));
    let near = with_files(&[("base", "x"), ("big", big.as_str())]);
    let text = "{% include 'big' %}".repeat(500);
    let message = whole(&task(&text, &json!({}), &near)).unwrap_err();
    assert_eq!(message, "the template has more than 100000 statements");
    let wide = "{% block a %}{% endblock %}".repeat(2);
    let near = with_files(&[("base", wide.as_str())]);
    assert!(whole(&task("{% extends 'base' %}", &json!({}), &near)).is_err());
}

#[test]
fn filters_of_the_script_are_requested_in_order() {
    let (values, near) = (json!({ "names": ["A", "B"] }), FileReader::default());
    let text =
        "{% for it in names %}{{ it | slug(7) }}{% endfor %}{{ names | map('slug') | list }}";
    let mut task = task(text, &values, &near);
    let (mut results, mut asked) = (Vec::new(), Vec::new());
    let text = loop {
        let given = results.clone();
        match render(&Task { results: &given, filters: task.filters.clone(), ..task }).unwrap() {
            Rendered::Whole(text) => break text,
            Rendered::Asks { filter, arguments } => {
                results.push(json!(format!("<{}>", arguments[0].as_str().unwrap())));
                asked.push((filter, arguments));
            }
        }
        task.filters = ["slug"].into();
    };
    assert_eq!(text, "<A><B>[\"<A>\",\"<B>\"]");
    assert_eq!(asked[0], ("slug".to_owned(), vec![json!("A"), json!(7)]));
    assert_eq!(asked.len(), 4);
}

/// Checks templates that would take unlimited memory, time or stack.
#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn a_template_that_grows_without_end_is_stopped() {
    let values =
        json!({ "items": vec![1; 300], "text": "x".repeat(600_000), "list": vec!["a"; 50_000] });
    let laughs = "{% set x = [x, x, x, x, x, x, x, x, x, x] %}".repeat(30);
    let laughs = format!("{{% set x = ['a', text[0]] %}}{laughs}");
    let long = |begin: &str, repeated: &str, end: &str| {
        format!("{begin}{}{end}", repeated.repeat(100_000))
    };
    let deep = "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [[[ns.x]]] %}{% endfor %}";
    for (template, message) in [
        (
            ["{% for a in items %}".repeat(4), "{% endfor %}".repeat(4)].concat(),
            "rendering takes more than 1000000 steps",
        ),
        ("{{ text }}".repeat(9), "settings.sandbox.string_size"),
        (
            "{% macro f(x) %}{{ x }}{{ f(x) }}{% endmacro %}{{ f(text) }}".into(),
            "settings.sandbox.string_size",
        ),
        (
            "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(text) }}".into(),
            "recursion limit exceeded",
        ),
        ("{% macro f(x) %}{{ f([x, x]) }}{% endmacro %}{{ f(items) }}".into(), "100000 items"),
        (laughs.clone() + "{{ x ~ '' }}", "100000 items"),
        (laughs + "{{ x == x }}", "100000 items"),
        (deep.into(), "nested deeper than 64 levels"),
        ("{{ 'a' * 100000000 }}".into(), "rendering takes more than 1000000 steps"),
        ("{{ ('a' * 2000000) | length }}".into(), "settings.sandbox.string_size"),
        ("{% set x = [1] * 100000000 %}".into(), "100000 items"),
        ("{% set x = list + list + list %}".into(), "100000 items"),
        ("{% set x = range(200000) %}".into(), "range has too many elements"),
        ("{{ [text] * 10 }}".into(), "settings.sandbox.string_size"),
        ("{{ text ~ text }}".into(), "settings.sandbox.string_size"),
        (
            "{{ text | replace('x', text) | length }}".into(),
            "rendering takes more than 1000000 steps",
        ),
        ("{{ list | join(text) }}".into(), "settings.sandbox.string_size"),
        ("{{ list | join('\n') | indent(200) }}".into(), "settings.sandbox.string_size"),
        ("{{ 'a' | center(99999999) }}".into(), "center: expected at most 200"),
        (
            "{{ [1] | batch(999999999, 0) | list }}".into(),
            "rendering takes more than 1000000 steps",
        ),
        ("{{ loop }}".into(), "`loop` can only be used with a field"),
        (
            "{% for i in items %}{{ loop.changed(loop) }}{% endfor %}".into(),
            "`loop` can only be used with a field",
        ),
        (
            "{% for i in items %}{{ loop.cycle() }}{% endfor %}".into(),
            "loop.cycle: expected at least one value",
        ),
        (
            "{% for i in items %}{{ loop.cycle(*[]) }}{% endfor %}".into(),
            "loop.cycle: expected at least one value",
        ),
        (
            "{% set ns = namespace() %}{% set ns.x = ns %}".into(),
            "the namespace `ns` can only be used with a field",
        ),
        ("{% set ns = [namespace()] %}".into(), "`namespace` can only be used in"),
        ("{% if a %}".repeat(200), "line 1: template exceeds maximum recursion limits"),
        (long("{{ a", "|upper", " }}"), "line 1: more than 1000 tokens in one tag"),
        (long("{{ 1", "+1", " }}"), "line 1: more than 1000 tokens in one tag"),
        (long("{{ ", "(", ""), "line 1: more than 1000 tokens in one tag"),
        ("{{a}}".repeat(40_000), "more than 100000 tokens in its tags"),
        (
            ["{% if a %}".to_owned(), "{% elif a %}".repeat(10_000)].concat(),
            "line 1: more than 500 `elif` branches in one `if`",
        ),
        ("\n".repeat(70_000), "at most 60000 lines"),
        ("x".repeat(2_000_000), "larger than 1 MiB"),
    ] {
        let outcome = filled(&template, &values);
        let shown: String = template.chars().take(90).collect();
        assert!(outcome.as_ref().is_err_and(|it| it.contains(message)), "{shown}: {outcome:?}");
    }
}

#[test]
fn a_template_that_takes_long_ends_with_its_call() {
    let is_over: pace::Pace = std::rc::Rc::new(|| true);
    let message = pace::within(&is_over, usize::MAX, || filled("{{ 1 + 1 }}", &json!({})));
    assert_eq!(message.unwrap_err(), "line 1: out of time");
}
