//! Shared JSON in one of its two forms, which are read in the same way.

use std::{
    borrow::Cow,
    sync::{Arc, Weak},
};

use serde_json::Value;

use super::tape::{Shallow, Tape, TapePart};

/// JSON that is never changed. Clones share it.
#[derive(Clone, Debug)]
pub enum SharedJson {
    /// A tree.
    Tree(Arc<Value>),
    /// A tape.
    Tape(Arc<Tape>),
}

/// A weak reference to shared JSON.
#[derive(Clone, Debug)]
pub enum WeakJson {
    /// A tree.
    Tree(Weak<Value>),
    /// A tape.
    Tape(Weak<Tape>),
}

/// A value in JSON of either form.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A value in a tree.
    Tree(&'a Value),
    /// A value on a tape.
    Tape(TapePart<'a>),
}

impl SharedJson {
    /// Returns the whole value.
    pub fn root(&self) -> Part<'_> {
        match self {
            SharedJson::Tree(tree) => Part::Tree(tree),
            SharedJson::Tape(tape) => Part::Tape(tape.root()),
        }
    }

    /// Returns its address, which no other JSON has as long as there is a reference to this one, also a weak one.
    pub fn address(&self) -> usize {
        match self {
            SharedJson::Tree(tree) => Arc::as_ptr(tree).addr(),
            SharedJson::Tape(tape) => Arc::as_ptr(tape).addr(),
        }
    }

    /// Returns the approximate bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        match self {
            SharedJson::Tree(tree) => bytes_of(tree),
            SharedJson::Tape(tape) => tape.bytes(),
        }
    }

    /// Returns whether anything else shares it.
    pub fn is_shared(&self) -> bool {
        match self {
            SharedJson::Tree(tree) => Arc::strong_count(tree) > 1,
            SharedJson::Tape(tape) => Arc::strong_count(tape) > 1,
        }
    }

    /// Returns a weak reference.
    pub fn downgrade(&self) -> WeakJson {
        match self {
            SharedJson::Tree(tree) => WeakJson::Tree(Arc::downgrade(tree)),
            SharedJson::Tape(tape) => WeakJson::Tape(Arc::downgrade(tape)),
        }
    }
}

impl WeakJson {
    /// Returns the address of the JSON.
    pub fn address(&self) -> usize {
        match self {
            WeakJson::Tree(tree) => tree.as_ptr().addr(),
            WeakJson::Tape(tape) => tape.as_ptr().addr(),
        }
    }
}

impl From<Arc<Value>> for SharedJson {
    fn from(tree: Arc<Value>) -> Self {
        SharedJson::Tree(tree)
    }
}

impl<'a> Part<'a> {
    /// Returns the value, without its items or fields.
    pub fn shallow(self) -> Shallow<'a> {
        match self {
            Part::Tree(Value::Null) => Shallow::Null,
            Part::Tree(Value::Bool(it)) => Shallow::Bool(*it),
            Part::Tree(Value::Number(it)) => Shallow::Number(it.clone()),
            Part::Tree(Value::String(it)) => Shallow::Text(it),
            Part::Tree(Value::Array(items)) => Shallow::List(items.len()),
            Part::Tree(Value::Object(fields)) => Shallow::Map(fields.len()),
            Part::Tape(part) => part.shallow(),
        }
    }

    /// Returns whether it is null.
    pub fn is_null(self) -> bool {
        matches!(self.shallow(), Shallow::Null)
    }

    /// Returns whether it is a list.
    pub fn is_list(self) -> bool {
        matches!(self.shallow(), Shallow::List(_))
    }

    /// Returns whether it is a map.
    pub fn is_map(self) -> bool {
        matches!(self.shallow(), Shallow::Map(_))
    }

    /// Returns the number of items of a list, or of fields of a map; 0 for other values.
    pub fn len(self) -> usize {
        match self.shallow() {
            Shallow::List(len) | Shallow::Map(len) => len,
            Shallow::Null | Shallow::Bool(_) | Shallow::Number(_) | Shallow::Text(_) => 0,
        }
    }

    /// Returns whether nothing is inside of it.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a field of a map.
    pub fn field(self, key: &str) -> Option<Part<'a>> {
        match self {
            Part::Tree(tree) => tree.get(key).map(Part::Tree),
            Part::Tape(part) => part.field(key).map(Part::Tape),
        }
    }

    /// Returns an item of a list.
    pub fn item(self, place: usize) -> Option<Part<'a>> {
        match self {
            Part::Tree(tree) => tree.get(place).map(Part::Tree),
            Part::Tape(part) => part.item(place).map(Part::Tape),
        }
    }

    /// Returns the items of a list; none for other values.
    pub fn items(self) -> impl Iterator<Item = Part<'a>> {
        let (tree, tape) = self.forms();
        let tree = tree.and_then(Value::as_array).into_iter().flatten().map(Part::Tree);
        tree.chain(tape.into_iter().flat_map(TapePart::items).map(Part::Tape))
    }

    /// Returns the fields of a map in their order; none for other values.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Part<'a>)> {
        let (tree, tape) = self.forms();
        let tree = tree.and_then(Value::as_object).into_iter().flatten();
        let tree = tree.map(|(key, it)| (key.as_str(), Part::Tree(it)));
        tree.chain(
            tape.into_iter().flat_map(TapePart::fields).map(|(key, it)| (key, Part::Tape(it))),
        )
    }

    fn forms(self) -> (Option<&'a Value>, Option<TapePart<'a>>) {
        match self {
            Part::Tree(tree) => (Some(tree), None),
            Part::Tape(part) => (None, Some(part)),
        }
    }

    /// Returns the value as a tree; built only if it is on a tape.
    pub fn to_tree(self) -> Cow<'a, Value> {
        match self {
            Part::Tree(tree) => Cow::Borrowed(tree),
            Part::Tape(part) => Cow::Owned(part.to_value()),
        }
    }
}

/// Returns the approximate bytes of memory that a tree takes.
pub fn bytes_of(value: &Value) -> usize {
    /// The hash and the index of a map entry.
    const ENTRY: usize = 24;
    /// What an allocator adds to a block.
    const BLOCK: usize = 16;
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => BLOCK + text.capacity(),
        Value::Array(items) => {
            let unused = (items.capacity() - items.len()) * size_of::<Value>();
            BLOCK + unused + items.iter().map(bytes_of).sum::<usize>()
        }
        Value::Object(fields) => {
            let entry = |(key, value): (&String, &Value)| {
                ENTRY + size_of::<String>() + BLOCK + key.capacity() + bytes_of(value)
            };
            BLOCK + fields.iter().map(entry).sum::<usize>()
        }
    };
    inside + size_of::<Value>()
}
