//! Label and field selectors of lists and watches.

pub(crate) mod fields;
pub(crate) mod labels;

#[cfg(test)]
mod tests;

use serde_json::Value;

use self::{
    fields::{Selectable, Term},
    labels::LabelRequirement,
};
use crate::{refusal::Refusal, request::query::Query};

/// The selectors of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<Term>,
}

impl Selector {
    /// Parses both selectors of a query. Labels come first, as on the real server.
    pub(crate) fn parse_for(query: &Query, selectable: &Selectable) -> Result<Self, Refusal> {
        let labels = query.text("labelSelector").unwrap_or_default();
        let fields = query.text("fieldSelector").unwrap_or_default();
        Ok(Self {
            labels: labels::parse(labels).map_err(Refusal::bad_request)?,
            fields: fields::parse(fields, selectable).map_err(Refusal::bad_request)?,
        })
    }

    /// Adds a requirement for this name.
    pub(crate) fn narrow(&mut self, name: &str) {
        let field = "metadata.name".into();
        self.fields.push(Term { field, value: name.into(), equal: true });
    }

    /// Returns whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns the only name that can match, if the selector has one.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = |it: &&Term| it.equal && it.field == "metadata.name";
        self.fields.iter().find(named).map(|it| it.value.as_str())
    }

    /// Returns whether the label selector matches.
    pub(crate) fn matches_labels(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        let value = |key: &str| labels.iter().find(|(name, _)| **name == *key).map(|(_, it)| &**it);
        self.labels.iter().all(|rule| rule.fits(value(&rule.key)))
    }

    /// Returns whether the field selector matches. `field` returns the value of a field as a string, empty if it is missing.
    pub(crate) fn matches_fields(&self, field: impl Fn(&str) -> String) -> bool {
        self.fields.iter().all(|it| (field(&it.field) == it.value) == it.equal)
    }
}

/// Returns the string form in which selectors compare a field.
pub(crate) fn field_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            other.to_string()
        }
    }
}
