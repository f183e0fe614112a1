//! Objects in two blocks of memory instead of a tree: one with all values, one with all strings.
//!
//! A script usually reads a few fields of an object. The hundreds of blocks of its tree would be allocated one by one, and freed much later,
//! when the garbage collector of a VM finds that nothing refers to the tree: in Lua, that was almost half of the time of a review.

mod reader;

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde_json::{Map, Number, Value};

use self::reader::TapeReader;
use super::{managed_fields, tree};

/// Lists and maps with more items than this have an index: in the others, a search is as fast.
const WIDE: usize = 32;
/// The error of a map that has two fields of the same key.
const REPEATED: &str = "a key is repeated";

/// An object without managed fields, in a form that is read in place.
#[derive(Debug, Default)]
pub struct Tape {
    /// In the order of the text: a list or a map, then its items, each with everything inside it. Before each field of a map: its key.
    nodes: Vec<Node>,
    /// The text without managed fields, which has most strings and keys, and then the strings and keys that were written with escapes.
    texts: String,
    /// By the position of a list or a map that has more than [`WIDE`] items: the positions of its items, or of its keys by their hash.
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
        let read = managed_fields::without(text).ok().and_then(|it| String::from_utf8(it).ok());
        if let Some(tape) = read.and_then(|it| TapeReader::new(&it).read()) {
            return Ok(tape);
        }
        Err(tree::body(text).err().unwrap_or_else(|| serde_json::Error::custom(REPEATED)))
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

    /// Completes the list or map at a position. `None` if it is a map that repeats a key.
    fn close(&mut self, at: u32, node: Node) -> Option<()> {
        *self.nodes.get_mut(index(at))? = node;
        let (Node::List(len, _) | Node::Map(len, _)) = node else { return None };
        let whole = self.part(at);
        if index(len) <= WIDE {
            return (!whole.repeats_key()).then_some(());
        }
        let places = match node {
            Node::List(..) => whole.items().map(|it| it.at).collect(),
            _ => self.by_hash(whole.keys())?,
        };
        self.wide.insert(at, places);
        Some(())
    }

    /// Returns the positions of keys, by their hash and then by themselves. `None` if one is repeated.
    fn by_hash(&self, keys: impl Iterator<Item = u32>) -> Option<Box<[u32]>> {
        let mut keys: Vec<_> = keys.map(|at| (hash(self.text(at)), at)).collect();
        keys.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| self.text(one.1).cmp(self.text(other.1)))
        });
        let is_same = |one: &(u32, u32), next: &(u32, u32)| {
            one.0 == next.0 && self.text(one.1) == self.text(next.1)
        };
        let repeats = keys.windows(2).any(|it| matches!(it, [one, next] if is_same(one, next)));
        (!repeats).then(|| keys.into_iter().map(|(_, at)| at).collect())
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

    /// Compares with trees, which serde_json reads. Only repeated keys may be refused in addition.
    fn assert_reads_as_a_tree(text: &[u8]) {
        let shown = || text.escape_ascii().to_string();
        match (Tape::parse(text), tree::body(text)) {
            (Ok(tape), Ok(tree)) => assert_eq!(tape.root().to_value(), tree, "{}", shown()),
            (Err(error), Ok(_)) => assert_eq!(error.to_string(), REPEATED, "{}", shown()),
            (tape, tree) => {
                let told = |it: serde_json::Error| it.to_string();
                assert_eq!(
                    tape.map(drop).map_err(told),
                    tree.map(drop).map_err(told),
                    "{}",
                    shown()
                );
            }
        }
    }

    #[test]
    fn a_text_with_any_mistake_is_read_as_by_serde_json() {
        let text = r#" {"a" : [1,-2 ,0, 1.50,1e2,"",true,false,null,{}], "long key":{"é":"\u00e9\\\"\n"},"n":12345678901234567890,"b":[[]]}"#;
        let bytes = text.as_bytes();
        assert_reads_as_a_tree(bytes);
        for at in 0..bytes.len() {
            let (before, [it, after @ ..]) = bytes.split_at(at) else { unreachable!("in range") };
            assert_reads_as_a_tree(before);
            assert_reads_as_a_tree(&[before, after].concat());
            for other in b"\"\\{}[]:,-+.eEu019atfnr /\t\x00\x1f\x7f\x80\xe9\xff" {
                assert_reads_as_a_tree(&[before, &[*other], after].concat());
                assert_reads_as_a_tree(&[before, &[*other, *it], after].concat());
            }
        }
    }

    #[test]
    fn special_characters_are_found_at_each_place() {
        for len in 0..40 {
            for at in 0..len {
                for other in ["\"", "\\\"", "\\n", "\n", "\u{1f}", "\u{7f}", "\u{80}", "é", "🦀"]
                {
                    let mut value = "x".repeat(len);
                    value.replace_range(at..=at, other);
                    assert_reads_as_a_tree(format!("{{\"{value}\":\"{value}\"}}").as_bytes());
                }
            }
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
