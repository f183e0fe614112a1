//! Path elements of fields, ordered and serialized as on the real server.

use std::{cmp::Ordering, fmt};

use crate::sorted;
use serde_json::{Map, Value};

/// The way to find a part inside of a value. The order of the variants is that of `fieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of a map.
    Field(String),
    /// The list item with these values in its key fields; sorted by name.
    Key(Vec<(String, Atom)>),
    /// The list item with this value.
    Value(Atom),
    /// The list item at this index. This server never writes it, but clients may.
    Index(i64),
}

/// A value that is ordered and compared as on the real server: numbers by their value.
#[derive(Clone, Debug)]
pub(super) struct Atom(pub(super) Value);

/// A path element that a client has written.
#[derive(Clone, Debug)]
pub(super) enum Parsed {
    Known(Element),
    /// A kind of element of newer servers. Such fields are dropped.
    Unknown,
}

impl Element {
    /// Parses an element of `fieldsV1`; `None` if it is invalid.
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

    /// Makes the element of the item with these keys.
    pub(super) fn key(fields: Vec<(String, Value)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().map(|(name, it)| (name, Atom(it))).collect();
        sorted::sort(&mut fields);
        Self::Key(fields)
    }

    /// Returns the form in `fieldsV1`.
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

/// The form in messages: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
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

/// Returns whether two values are equal: `1` equals `1.0`, and the order of fields does not matter.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    left == right || order(left, right).is_eq()
}

/// Orders values: numbers, strings, booleans, lists, maps, null. The depth is that of a decoded body, which is bounded.
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
                sorted::sort(&mut fields);
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
