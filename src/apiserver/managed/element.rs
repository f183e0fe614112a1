//! One step of the path to a field, ordered and written as the real server does it.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

/// How a part of a value is found inside it. The order of the variants is the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of a map.
    Field(String),
    /// The item of a list that has these values in these fields; sorted by the names.
    Key(Vec<(String, Atom)>),
    /// The item of a list that is this value.
    Value(Atom),
    /// The item of a list at this place. We never make one; others may have written it.
    Index(i64),
}

/// A value that can be ordered and compared as the real server does it: numbers by what they mean.
#[derive(Clone, Debug)]
pub(super) struct Atom(pub(super) Value);

/// An element as others have written it.
#[derive(Clone, Debug)]
pub(super) enum Parsed {
    Known(Element),
    /// Of a kind that later servers know. Such fields are left out.
    Unknown,
}

impl Element {
    /// Reads the form in which `fieldsV1` has it. Nothing if that is broken.
    pub(super) fn parse(text: &str) -> Option<Parsed> {
        let (kind, rest) = text.split_once(':')?;
        let json = || serde_json::from_str::<Value>(rest).ok();
        Some(Parsed::Known(match kind {
            "f" => Self::Field(rest.into()),
            "v" => Self::Value(Atom(json()?)),
            "i" => Self::Index(rest.parse().ok()?),
            "k" => {
                let Value::Object(fields) = json()? else { return None };
                Self::key(fields.into_iter().collect())
            }
            _ => return Some(Parsed::Unknown),
        }))
    }

    /// The item with these values.
    pub(super) fn key(fields: Vec<(String, Value)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().map(|(name, it)| (name, Atom(it))).collect();
        fields.sort();
        Self::Key(fields)
    }

    /// The form in which `fieldsV1` has it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(Atom(value)) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(fields) => {
                let fields = fields.iter().map(|(name, Atom(it))| (name.clone(), it.clone()));
                format!("k:{}", Value::Object(fields.collect::<Map<_, _>>()))
            }
        }
    }
}

/// As messages have it: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(Atom(value)) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                let fields = fields.iter().map(|(name, Atom(it))| format!("{name}={it}"));
                write!(f, "[{}]", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Atom {}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

/// Whether two values mean the same: `1` is `1.0`, and the order of fields does not matter.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    left == right || order(left, right).is_eq()
}

/// Numbers, texts, booleans, lists, maps, null. The depth is that of a decoded body, which is bounded.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let whole = |it: &serde_json::Number| {
                it.as_i64().map(i128::from).or_else(|| it.as_u64().map(i128::from))
            };
            if let (Some(left), Some(right)) = (whole(left), whole(right)) {
                return left.cmp(&right);
            }
            let float = |it: &serde_json::Number| it.as_f64().unwrap_or_default();
            float(left).total_cmp(&float(right))
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| order(left, right));
            pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let sorted = |map: &'_ Map<String, Value>| {
                let mut fields: Vec<_> =
                    map.iter().map(|(k, v)| (k.clone(), Atom(v.clone()))).collect();
                fields.sort();
                fields
            };
            sorted(left).cmp(&sorted(right))
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
