//! Objects in two blocks of memory instead of a tree: one with all values, one with all strings.
//!
//! A script usually reads a few fields of an object. The hundreds of blocks of its tree would be allocated one by one, and freed much later,
//! when the garbage collector of a VM finds that nothing refers to the tree: in Lua, that was almost half of the time of a review.

use std::{collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{depth, tree::TreeLevel};

/// Lists and maps with more items than this have an index: in the others, a search is as fast.
const WIDE: usize = 32;
/// The error of a map that has two fields of the same key.
const REPEATED: &str = "a key is repeated";

/// An object without managed fields, in a form that is read in place.
#[derive(Debug, Default)]
pub struct Tape {
    /// In the order of the text: a list or a map, then its items, each with everything inside it. Before each field of a map: its key.
    nodes: Vec<Node>,
    /// All strings and keys, one after the other.
    texts: String,
    /// By the position of a list or a map that has more than [`WIDE`] items: the positions of its items, or of its keys in their order.
    wide: BTreeMap<u32, Box<[u32]>>,
}

/// A value.
#[derive(Clone, Copy, Debug)]
enum Node {
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
    /// Reads an object, without its managed fields.
    ///
    /// # Errors
    /// Fails if the text is not JSON, is nested too deep, or has 4 GiB; also if a map repeats a key: only trees have a rule for that.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        depth::read(text, |deserializer| {
            // About as much as objects need, so that nothing is moved while it grows.
            let (nodes, texts) =
                (Vec::with_capacity(text.len() / 12), String::with_capacity(text.len()));
            let mut tape = Tape { nodes, texts, wide: BTreeMap::new() };
            TapeBuilder { tape: &mut tape, level: TreeLevel::Object }.deserialize(deserializer)?;
            tape.nodes.shrink_to_fit();
            tape.texts.shrink_to_fit();
            Ok(tape)
        })
    }

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

    fn push<E: Error>(&mut self, node: Node) -> Result<u32, E> {
        let at = position(self.nodes.len())?;
        self.nodes.push(node);
        Ok(at)
    }

    fn push_text<E: Error>(&mut self, text: &str) -> Result<(), E> {
        let (start, len) = (position(self.texts.len())?, position(text.len())?);
        self.texts.push_str(text);
        self.push(Node::Text(start, len)).map(drop)
    }

    /// Completes a list or a map.
    fn close<E: Error>(
        &mut self,
        at: u32,
        len: usize,
        node: fn(u32, u32) -> Node,
    ) -> Result<(), E> {
        let end = position(self.nodes.len())?;
        if let Some(place) = self.nodes.get_mut(index(at)) {
            *place = node(position(len)?, end);
        }
        let whole = self.part(at);
        if len <= WIDE {
            return if whole.repeats_key() { Err(E::custom(REPEATED)) } else { Ok(()) };
        }
        let mut places: Vec<u32> = whole.items().map(|it| it.at).collect();
        if let Node::Map(..) = self.node(at) {
            places = whole.keys().collect();
            places.sort_unstable_by_key(|it| self.text(*it));
            if !places.is_sorted_by(|one, next| self.text(*one) < self.text(*next)) {
                return Err(E::custom(REPEATED));
            }
        }
        self.wide.insert(at, places.into());
        Ok(())
    }
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

    /// Returns whether a map has two fields of the same key.
    fn repeats_key(self) -> bool {
        let mut seen = 0_u64;
        self.keys().any(|at| {
            let key = self.tape.text(at);
            let ends = [key.as_bytes().first(), key.as_bytes().last()];
            let [first, last] = ends.map(|it| it.map_or(0, |it| usize::from(*it)));
            // Equal keys have the same mark; most others have different ones.
            let mark = 1 << ((key.len() * 7 + first * 3 + last) % 64);
            let is_marked = seen & mark != 0;
            seen |= mark;
            is_marked && self.keys().take_while(|it| *it < at).any(|it| self.tape.text(it) == key)
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
            let found = keys.binary_search_by_key(&key, |it| self.tape.text(*it));
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

fn position<E: Error>(index: usize) -> Result<u32, E> {
    u32::try_from(index).map_err(|_larger| E::custom("it is larger than 4 GiB"))
}

/// Adds one value to a tape.
struct TapeBuilder<'t> {
    tape: &'t mut Tape,
    level: TreeLevel,
}

impl<'de> DeserializeSeed<'de> for TapeBuilder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TapeBuilder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.tape.push(Node::Null).map(drop)
    }

    fn visit_bool<E: Error>(self, it: bool) -> Result<(), E> {
        self.tape.push(Node::Bool(it)).map(drop)
    }

    fn visit_i64<E: Error>(self, it: i64) -> Result<(), E> {
        self.tape.push(Node::Signed(it)).map(drop)
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<(), E> {
        self.tape.push(Node::Unsigned(it)).map(drop)
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<(), E> {
        self.tape.push(Node::Float(it)).map(drop)
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<(), E> {
        self.tape.push_text(it)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let tape = self.tape;
        let at = tape.push(Node::Null)?;
        let mut len = 0_usize;
        while list.next_element_seed(TapeBuilder { tape, level: TreeLevel::Inside })?.is_some() {
            len += 1;
        }
        tape.close(at, len, Node::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let TapeBuilder { tape, level } = self;
        let at = tape.push(Node::Null)?;
        let mut len = 0_usize;
        while let Some(below) = map.next_key_seed(KeyBuilder { tape, level })? {
            let Some(level) = below else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            map.next_value_seed(TapeBuilder { tape, level })?;
            len += 1;
        }
        tape.close(at, len, Node::Map)
    }
}

/// Adds a key to a tape, unless its value is left out. Returns the level of the value.
struct KeyBuilder<'t> {
    tape: &'t mut Tape,
    level: TreeLevel,
}

impl<'de> DeserializeSeed<'de> for KeyBuilder<'_> {
    type Value = Option<TreeLevel>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyBuilder<'_> {
    type Value = Option<TreeLevel>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let below = self.level.below(key);
        if below.is_some() {
            self.tape.push_text(key)?;
        }
        Ok(below)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tree;

    fn wide() -> Value {
        let fields = (0..1000).map(|it| (format!("key{}", it * 7 % 1000), json!({ "at": it })));
        json!({ "map": fields.collect::<Map<_, _>>(), "list": (0..1000).collect::<Vec<_>>() })
    }

    #[test]
    fn a_tape_has_the_same_content_as_a_tree() {
        for text in [
            r#"{"a":null,"b":[true,false,-1,0,18446744073709551615,1.5,-0.0,1e300],"c":{"d":{},"e":[]},"f":"x\"\n\u00e9\ud83d\ude00"}"#,
            r#"{"kind":"Pod","metadata":{"managedFields":[{"a":[1]}],"name":"x","labels":{"managedFields":"kept"}},"managedFields":1}"#,
            "{}",
            &wide().to_string(),
        ] {
            let tape = Tape::parse(text.as_bytes()).expect("JSON");
            assert_eq!(
                tape.root().to_value(),
                tree::body(text.as_bytes()).expect("JSON"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_the_same_error_as_for_a_tree() {
        for text in [
            r#"{"a":"\ud800"}"#,
            r#"{"a":1e999}"#,
            r#"{"a":01}"#,
            r#"{"a":"#,
            "{}x",
            "{\"\x01\":1}",
        ] {
            let (tape, tree) = (Tape::parse(text.as_bytes()), tree::body(text.as_bytes()));
            let told = |it: serde_json::Error| it.to_string();
            assert_eq!(tape.map(drop).map_err(told), tree.map(drop).map_err(told), "{text}");
        }
    }

    #[test]
    fn items_and_fields_are_found_also_in_wide_lists_and_maps() {
        let value = wide();
        let tape = Tape::parse(value.to_string().as_bytes()).expect("JSON");
        let (map, list) = (tape.root().field("map"), tape.root().field("list"));
        let (map, list) = (map.expect("a map"), list.expect("a list"));
        for at in [0, 1, 31, 32, 33, 500, 999] {
            assert_eq!(list.item(at).expect("an item").to_value(), value["list"][at]);
            let key = format!("key{at}");
            assert_eq!(map.field(&key).expect("a field").to_value(), value["map"][&key]);
        }
        assert!(list.item(1000).is_none() && map.item(0).is_none());
        for key in ["", "key", "key1000", "zzz"] {
            assert!(map.field(key).is_none() && list.field(key).is_none());
        }
        assert_eq!((map.shallow(), list.shallow()), (Shallow::Map(1000), Shallow::List(1000)));
    }

    #[test]
    fn repeated_keys_are_left_to_trees() {
        let many: Vec<_> = (0..100).map(|it| format!(r#""k{}":{it}"#, it % 99)).collect();
        let many = format!("{{{}}}", many.join(","));
        for text in [r#"{"b":{"a":1,"b":2,"a":3}}"#, &many] {
            let error = Tape::parse(text.as_bytes()).expect_err("an error").to_string();
            assert!(error.starts_with(REPEATED), "{error}");
        }
    }

    #[test]
    fn objects_are_read_as_deep_as_trees() {
        let nested = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
        let tape = Tape::parse(nested(1000).as_bytes()).expect("JSON");
        assert_eq!(tape.root().to_value(), tree::body(nested(1000).as_bytes()).expect("JSON"));
        assert!(Tape::parse(nested(100_000).as_bytes()).is_err());
    }
}
