//! Label and field selectors of lists and watches.

use crate::apiserver::{refusal::Refusal, request::query::Query, store::stored::Head};

/// What a list or a watch is narrowed to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRule>,
    fields: Vec<FieldRule>,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelRule {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    /// Also true for objects without the label, as in Kubernetes.
    NotIn(String, Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
struct FieldRule {
    /// Below the metadata.
    field: &'static str,
    value: String,
    equal: bool,
}

impl Selector {
    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn parse(query: &Query) -> Result<Self, Refusal> {
        let labels = split_outside_parentheses(query.text("labelSelector").unwrap_or_default());
        let fields = query.text("fieldSelector").unwrap_or_default().split(',');
        Ok(Self {
            labels: labels.into_iter().map(label_rule).collect::<Result<_, _>>()?,
            fields: fields.filter(|it| !it.is_empty()).map(field_rule).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn matches(&self, head: &Head) -> bool {
        let label = |name: &str| head.labels.get(name).map(String::as_str);
        let labels = self.labels.iter().all(|rule| match rule {
            LabelRule::Exists(name) => label(name).is_some(),
            LabelRule::Absent(name) => label(name).is_none(),
            LabelRule::In(name, values) => {
                label(name).is_some_and(|it| values.iter().any(|value| value == it))
            }
            LabelRule::NotIn(name, values) => {
                label(name).is_none_or(|it| values.iter().all(|value| value != it))
            }
        });
        let mut fields = self.fields.iter();
        let field = |name: &str| if name == "name" { &head.name } else { &head.namespace };
        labels && fields.all(|it| (**field(it.field) == *it.value) == it.equal)
    }
}

fn label_rule(text: &str) -> Result<LabelRule, Refusal> {
    let bad = || Refusal::bad_request(format!("unable to parse requirement: {text}"));
    let values = |list: &str| {
        let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(list.split(',').map(|it| it.trim().to_owned()).collect::<Vec<_>>())
    };
    let rule = if let Some((name, value)) = text.split_once("!=") {
        LabelRule::NotIn(name.trim().into(), vec![value.trim().into()])
    } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        LabelRule::In(name.trim().into(), vec![value.trim().into()])
    } else if let Some((name, list)) = text.split_once(" notin ") {
        LabelRule::NotIn(name.trim().into(), values(list).ok_or_else(bad)?)
    } else if let Some((name, list)) = text.split_once(" in ") {
        LabelRule::In(name.trim().into(), values(list).ok_or_else(bad)?)
    } else if let Some(name) = text.strip_prefix('!') {
        LabelRule::Absent(name.trim().into())
    } else {
        LabelRule::Exists(text.trim().into())
    };
    let (LabelRule::Exists(name)
    | LabelRule::Absent(name)
    | LabelRule::In(name, _)
    | LabelRule::NotIn(name, _)) = &rule;
    if name.is_empty() || name.contains([' ', '(', ')']) { Err(bad()) } else { Ok(rule) }
}

fn field_rule(text: &str) -> Result<FieldRule, Refusal> {
    let (field, value, equal) = if let Some((field, value)) = text.split_once("!=") {
        (field, value, false)
    } else if let Some((field, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (field, value, true)
    } else {
        let message = format!("invalid selector: '{text}'; can't understand '{text}'");
        return Err(Refusal::bad_request(message));
    };
    // Other fields are selectable for some native kinds only.
    let field = match field.trim() {
        "metadata.name" => "name",
        "metadata.namespace" => "namespace",
        other => return Err(Refusal::bad_request(format!("field label not supported: {other}"))),
    };
    Ok(FieldRule { field, value: value.trim().into(), equal })
}

/// `a in (x,y),b` is two parts.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|sign| {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        sign == ',' && depth == 0
    });
    parts.map(str::trim).filter(|it| !it.is_empty()).collect()
}
