//! Objects in two blocks of memory instead of a tree: one with all values, one with all strings.
//!
//! A script usually reads a few fields of an object. The hundreds of blocks of its tree would be allocated one by one, and freed much later,
//! when the garbage collector of a VM finds that nothing refers to the tree: in Lua, that was almost half of the time of a review.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

/// Lists and maps with more items than this have an index: in the others, a search is as fast.
const WIDE: usize = 32;

/// An object without managed fields, in a form that is read in place.
#[derive(Debug, Default)]
pub struct Tape {
    /// In the order of the text: a list or a map, then its items, each with everything inside it. Before each field of a map: its key.
    pub(super) nodes: Vec<Node>,
    /// The text without managed fields, for the strings and keys in it, then those that were written with escapes; or all, one after the other.
    pub(super) texts: String,
    /// By the position of a list or a map that has more than [`WIDE`] items: the positions of its items, or of its keys by their hash.
    pub(super) wide: BTreeMap<u32, Box<[u32]>>,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    /// The first byte and the number of bytes in the texts.
    Text(u32, u32),
    /// The number of items, and the position after the last one.
    List(u32, u32),
    Map(u32, u32),
}

/// A value on a tape.
#[derive(Clone, Copy, Debug)]
pub struct TapePart<'a> {
    tape: &'a Tape,
    at: u32,
}

/// A scalar, or the size of a list or a map.
#[derive(Clone, Debug, PartialEq)]
pub enum Shallow<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(&'a str),
    /// A list with this number of items.
    List(usize),
    /// A map with this number of fields.
    Map(usize),
}

impl Tape {
    /// Returns the whole object.
    pub fn root(&self) -> TapePart<'_> {
        TapePart { tape: self, at: 0 }
    }

    /// Returns the value at the position of one of its parts.
    pub fn part(&self, at: u32) -> TapePart<'_> {
        TapePart { tape: self, at }
    }

    /// Returns the bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let wide: usize = self.wide.values().map(|it| it.len() * size_of::<u32>()).sum();
        self.nodes.capacity() * size_of::<Node>() + self.texts.capacity() + wide
    }

    fn node(&self, at: u32) -> Node {
        self.nodes.get(index(at)).copied().unwrap_or(Node::Null)
    }

    /// Returns the position after a value and everything inside it.
    fn after(&self, at: u32) -> u32 {
        let node = self.node(at);
        if let Node::List(_, end) | Node::Map(_, end) = node { end } else { at + 1 }
    }

    /// Returns the string at a position; empty if there is none.
    fn text(&self, at: u32) -> &str {
        let Node::Text(start, len) = self.node(at) else { return "" };
        self.texts.get(index(start)..index(start) + index(len)).unwrap_or_default()
    }

    /// Returns a bit that equal keys share, and few others.
    pub(super) fn mark(&self, key: u32) -> u64 {
        let Node::Text(start, len @ 1..) = self.node(key) else { return 1 };
        let byte = |at| self.texts.as_bytes().get(index(at)).map_or(0, |it| u32::from(*it));
        let (first, last) = (byte(start), byte(start + (len - 1)));
        1 << (len.wrapping_mul(7).wrapping_add(first * 3 + last) % 64)
    }

    /// Completes the list or map at a position, with its number of items. `None` if it is too large, or a map that repeats a key; `has_equal`:
    /// two of its keys have the same mark.
    pub(super) fn close(
        &mut self,
        at: u32,
        len: u32,
        (is_map, has_equal): (bool, bool),
    ) -> Option<()> {
        let end = u32::try_from(self.nodes.len()).ok()?;
        *self.nodes.get_mut(index(at))? =
            if is_map { Node::Map(len, end) } else { Node::List(len, end) };
        let whole = self.part(at);
        if index(len) <= WIDE {
            return (!has_equal || !whole.repeats_key()).then_some(());
        }
        let places = if is_map {
            self.by_hash(whole.keys())?
        } else {
            whole.items().map(|it| it.at).collect()
        };
        self.wide.insert(at, places);
        Some(())
    }

    /// Returns the positions of keys, by their hash and then by themselves. `None` if one is repeated.
    fn by_hash(&self, keys: impl Iterator<Item = u32>) -> Option<Box<[u32]>> {
        // As numbers they are sorted much faster than by a function, and few keys have the same hash.
        let mut keys: Vec<_> =
            keys.map(|at| (u64::from(hash(self.text(at))) << 32) | u64::from(at)).collect();
        keys.sort_unstable();
        let text = |it: &u64| self.text(without_hash(*it));
        for same in keys.chunk_by_mut(|one, next| one >> 32 == next >> 32) {
            same.sort_unstable_by_key(text);
            if same.windows(2).any(|it| matches!(it, [one, next] if text(one) == text(next))) {
                return None;
            }
        }
        Some(keys.into_iter().map(without_hash).collect())
    }
}

/// Returns the position in a number that begins with a hash.
fn without_hash(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

impl<'a> TapePart<'a> {
    /// Returns the position of the value on its tape.
    pub fn at(self) -> u32 {
        self.at
    }

    /// Returns the value, without its items or fields.
    pub fn shallow(self) -> Shallow<'a> {
        match self.tape.node(self.at) {
            Node::Null => Shallow::Null,
            Node::Bool(it) => Shallow::Bool(it),
            Node::Signed(it) => Shallow::Number(it.into()),
            Node::Unsigned(it) => Shallow::Number(it.into()),
            Node::Float(it) => Number::from_f64(it).map_or(Shallow::Null, Shallow::Number),
            Node::Text(..) => Shallow::Text(self.tape.text(self.at)),
            Node::List(len, _) => Shallow::List(index(len)),
            Node::Map(len, _) => Shallow::Map(index(len)),
        }
    }

    /// Returns the items of a list; none for other values.
    pub fn items(self) -> impl Iterator<Item = TapePart<'a>> {
        let node = self.tape.node(self.at);
        let end = if let Node::List(_, end) = node { end } else { 0 };
        let within = move |at: u32| (at < end).then_some(at);
        let places =
            std::iter::successors(within(self.at + 1), move |it| within(self.tape.after(*it)));
        places.map(move |at| TapePart { at, ..self })
    }

    /// Returns the fields of a map in their order; none for other values.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, TapePart<'a>)> {
        self.keys().map(move |at| (self.tape.text(at), TapePart { at: at + 1, ..self }))
    }

    /// Returns the positions of the keys of a map.
    fn keys(self) -> impl Iterator<Item = u32> + use<'a> {
        let node = self.tape.node(self.at);
        let end = if let Node::Map(_, end) = node { end } else { 0 };
        let within = move |at: u32| (at < end).then_some(at);
        std::iter::successors(within(self.at + 1), move |it| within(self.tape.after(*it + 1)))
    }

    /// Returns whether a map has two fields of the same key. Compares each with all before it.
    fn repeats_key(self) -> bool {
        self.keys().any(|at| {
            let key = self.tape.text(at);
            self.keys().take_while(|it| *it < at).any(|it| self.tape.text(it) == key)
        })
    }

    /// Returns an item of a list.
    pub fn item(self, place: usize) -> Option<TapePart<'a>> {
        let Node::List(len, _) = self.tape.node(self.at) else { return None };
        if index(len) <= WIDE {
            return self.items().nth(place);
        }
        let at = self.tape.wide.get(&self.at)?.get(place)?;
        Some(TapePart { at: *at, ..self })
    }

    /// Returns the value of a field of a map.
    pub fn field(self, key: &str) -> Option<TapePart<'a>> {
        let Node::Map(len, _) = self.tape.node(self.at) else { return None };
        let at = if index(len) <= WIDE {
            self.keys().find(|it| self.tape.text(*it) == key)?
        } else {
            let keys = self.tape.wide.get(&self.at)?;
            let rank = |key| (hash(key), key);
            let found = keys.binary_search_by_key(&rank(key), |it| rank(self.tape.text(*it)));
            *keys.get(found.ok()?)?
        };
        Some(TapePart { at: at + 1, ..self })
    }

    /// Returns the value as a tree.
    pub fn to_value(self) -> Value {
        match self.shallow() {
            Shallow::Null => Value::Null,
            Shallow::Bool(it) => Value::Bool(it),
            Shallow::Number(it) => Value::Number(it),
            Shallow::Text(it) => it.into(),
            Shallow::List(_) => self.items().map(TapePart::to_value).collect(),
            Shallow::Map(len) => {
                let mut fields = Map::with_capacity(len);
                fields.extend(self.fields().map(|(key, it)| (key.to_owned(), it.to_value())));
                Value::Object(fields)
            }
        }
    }
}

fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Returns a hash of a key.
fn hash(key: &str) -> u32 {
    key.bytes()
        .fold(0, |hash: u32, it| (hash.rotate_left(5) ^ u32::from(it)).wrapping_mul(0x9E37_79B1))
}
