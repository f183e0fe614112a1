//! Values as Go prints them: some texts of the API show structs and maps in Go's own syntax.

use serde_json::Value;

use super::Spot;
use crate::refusal::{Problem, ProblemKind, go};

/// A map of texts.
pub(super) fn texts(value: &Value) -> String {
    let Some(map) = value.as_object() else { return "map[string]string(nil)".into() };
    let mut entries: Vec<String> =
        map.iter().map(|(key, it)| format!("{}:{}", go::quote(key), quoted(it))).collect();
    entries.sort();
    format!("map[string]string{{{}}}", entries.join(", "))
}

/// A label selector.
pub(super) fn selector(value: &Value) -> String {
    if value.is_null() {
        return "\"null\"".into();
    }
    let labels = texts(value.get("matchLabels").unwrap_or(&Value::Null));
    let rules = value.get("matchExpressions").and_then(Value::as_array);
    let rules = match rules {
        None => "[]v1.LabelSelectorRequirement(nil)".into(),
        Some(rules) => {
            let rules: Vec<String> = rules.iter().map(requirement).collect();
            format!("[]v1.LabelSelectorRequirement{{{}}}", rules.join(", "))
        }
    };
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{rules}}}")
}

fn requirement(rule: &Value) -> String {
    let field = |name: &str| quoted(rule.get(name).unwrap_or(&Value::Null));
    let values = list(rule.get("values").unwrap_or(&Value::Null));
    format!(
        "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{values}}}",
        field("key"),
        field("operator")
    )
}

/// A list of texts.
pub(super) fn list(value: &Value) -> String {
    let Some(items) = value.as_array() else { return "[]string(nil)".into() };
    go::texts(items.iter().map(|it| it.as_str().unwrap_or_default()))
}

pub(super) fn quoted(value: &Value) -> String {
    go::quote(value.as_str().unwrap_or_default())
}

/// A refused value, shown so.
pub(super) fn invalid(spot: &Spot<'_>, shown: &str, detail: &str) -> Problem {
    let text = match detail {
        "" => format!("Invalid value: {shown}"),
        detail => format!("Invalid value: {shown}: {detail}"),
    };
    Problem::new(spot.path.clone(), ProblemKind::Worded("FieldValueInvalid", text))
}

/// An unsupported value, shown so.
pub(super) fn unsupported(spot: &Spot<'_>, shown: &str, supported: &[&str]) -> Problem {
    let quoted: Vec<String> = supported.iter().map(|it| go::quote(it)).collect();
    let text = format!("Unsupported value: {shown}: supported values: {}", quoted.join(", "));
    Problem::new(spot.path.clone(), ProblemKind::Worded("FieldValueNotSupported", text))
}

/// A number or a text.
pub(super) fn int_or_text(value: &Value) -> String {
    let (kind, number) = if value.is_string() { (1, 0) } else { (0, value.as_i64().unwrap_or(0)) };
    let text = quoted(value);
    format!("intstr.IntOrString{{Type:{kind}, IntVal:{number}, StrVal:{text}}}")
}

/// A quantity in its canonical form.
pub(super) fn quantity(text: &str) -> String {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let suffix = text.get(digits.len()..).unwrap_or_default();
    let scales =
        [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12)];
    let scale = scales.iter().chain(&[("P", 15), ("E", 18)]).find(|it| it.0 == suffix);
    let binary =
        ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().zip(1_u32..).find(|it| *it.0 == suffix);
    let number: i64 = digits.parse().unwrap_or(0);
    let (value, format) = match binary {
        Some((_, power)) => (number.saturating_mul(1024_i64.pow(power)), "BinarySI"),
        None => (number, "DecimalSI"),
    };
    let scale = scale.map_or(0, |it| it.1);
    format!(
        "resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, \
         d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text:?}, Format:{format:?}}}"
    )
}
