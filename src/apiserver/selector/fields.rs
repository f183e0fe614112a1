//! Field selectors: `metadata.name=a,status.phase!=Running`.

use crate::resource::ResourceDef;

/// One requirement; all of them must be met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) field: String,
    pub(crate) value: String,
    pub(crate) equal: bool,
}

/// The selectable fields of a kind, and the refusal of others.
#[derive(Clone, Debug)]
pub(crate) struct Selectable {
    names: Vec<String>,
    refusal: Wording,
}

/// The three messages of the real server.
#[derive(Clone, Debug)]
enum Wording {
    /// Custom kinds, and native ones with additional fields.
    Unsupported,
    /// Native kinds with only a name and a namespace.
    Unknown,
    /// The kind in the message, such as `batchv1.Job`.
    UnsupportedFor(&'static str),
}

impl Selectable {
    /// Returns the fields of a resource; `own` are the additional ones of its kind.
    pub(crate) fn new<'a>(def: &ResourceDef, own: impl IntoIterator<Item = &'a str>) -> Self {
        let own: Vec<String> = own.into_iter().map(String::from).collect();
        let refusal = match (def.group.as_str(), def.plural.as_str()) {
            ("batch", "jobs") => Wording::UnsupportedFor("batchv1.Job"),
            ("batch", "cronjobs") => Wording::UnsupportedFor("\"CronJob\""),
            _ if def.native && own.is_empty() => Wording::Unknown,
            _ => Wording::Unsupported,
        };
        // Native kinds without additional fields accept the namespace even if they are cluster-scoped.
        let namespaced = def.namespaced || matches!(refusal, Wording::Unknown);
        let common = ["metadata.name", "metadata.namespace"].into_iter().map(String::from);
        let common = common.take(if namespaced { 2 } else { 1 });
        Self { names: common.chain(own).collect(), refusal }
    }

    fn check(&self, field: &str) -> Result<(), String> {
        if self.names.iter().any(|it| it == field) {
            return Ok(());
        }
        Err(match &self.refusal {
            Wording::Unsupported => format!("field label not supported: {field}"),
            Wording::Unknown => format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ),
            Wording::UnsupportedFor(kind) => {
                format!("field label \"{field}\" not supported for {kind}")
            }
        })
    }
}

/// Parses a selector. The error is the message of the real server.
pub(crate) fn parse(text: &str, selectable: &Selectable) -> Result<Vec<Term>, String> {
    let mut parts = split(text);
    parts.sort_unstable();
    let mut terms = Vec::new();
    for part in parts.into_iter().filter(|it| !it.is_empty()) {
        let (field, equal, value) = operator(part)
            .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
        let (field, value) = (field.to_owned(), unescape(value)?);
        terms.push(Term { field, value, equal });
    }
    // `=` alone selects everything.
    terms.retain(|it| !(it.field.is_empty() && it.value.is_empty()));
    terms.iter().try_for_each(|it| selectable.check(&it.field))?;
    Ok(terms)
}

/// Splits a selector at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let parts = text.split(|sign| {
        let border = sign == ',' && !escaped;
        escaped = sign == '\\' && !escaped;
        border
    });
    parts.collect()
}

fn operator(term: &str) -> Option<(&str, bool, &str)> {
    // A lone exclamation mark belongs to the field.
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (field, rest) = term.split_at_checked(at)?;
    let found = ["!=", "==", "="].into_iter().find_map(|it| Some((it, rest.strip_prefix(it)?)));
    found.map(|(operator, value)| (field, operator != "!=", value))
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut signs = value.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some(meant @ ('\\' | ',' | '=')) => plain.push(meant),
                Some(other) => {
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
                None => return Err("invalid field selector: invalid escape sequence: \\".into()),
            },
            ',' | '=' => {
                let code = u32::from(sign);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {code}"
                ));
            }
            plain_sign => plain.push(plain_sign),
        }
    }
    Ok(plain)
}
