//! Reads a text into a tape in one pass, in half of the time of a visitor of `serde_json`.
//!
//! Only plain values are read here: strings without escapes and short integers. `serde_json` reads the others, and words all errors: a
//! text that this reader refuses has none of its own.

use std::collections::BTreeMap;

use memchr::memchr_iter;
use serde::de::Error as _;
use serde_json::{Error, Number};

use super::{
    depth::DEPTH_MAX,
    managed_fields,
    tape::{Node, Tape},
    tree,
};

/// Decimal digits that always fit into 64 bits.
const SHORT: usize = 18;

/// The error of a map that has two fields of the same key.
const REPEATED: &str = "a key is repeated";

/// Reads an object, without its managed fields.
///
/// # Errors
/// Fails if the text is not JSON, is nested too deep, or has 4 GiB; also if a map repeats a key: only trees have a rule for that.
pub fn read(text: &[u8]) -> Result<Tape, Error> {
    let essential = managed_fields::without(text).ok().and_then(|it| String::from_utf8(it).ok());
    if let Some(tape) = essential.and_then(|it| TapeReader::new(&it).read()) {
        return Ok(tape);
    }
    Err(tree::body(text).err().unwrap_or_else(|| Error::custom(REPEATED)))
}

/// A text that is read into a tape. All functions return `None` if it is not JSON, nested too deep, larger than 4 GiB, or repeats a key.
struct TapeReader<'a> {
    text: &'a str,
    /// The first byte that was not read yet.
    at: usize,
    /// How many lists and maps may still be opened inside of one another.
    levels: usize,
    /// Whether the tape begins with the whole text, whose strings are then not copied one by one.
    has_text: bool,
    tape: Tape,
}

impl<'a> TapeReader<'a> {
    fn new(text: &'a str) -> Self {
        // Strings with escapes are copied anyway; if these are many, they would take much memory twice.
        let has_text = memchr_iter(b'\\', text.as_bytes()).count() <= text.len() / 8;
        let texts = if has_text { text.to_owned() } else { String::new() };
        // About as much as objects need, so that nothing is moved while it grows.
        let nodes = Vec::with_capacity(text.len() / 6);
        let tape = Tape { nodes, texts, wide: BTreeMap::new() };
        TapeReader { text, at: 0, levels: DEPTH_MAX, has_text, tape }
    }

    /// Reads the whole text.
    fn read(mut self) -> Option<Tape> {
        self.value()?;
        self.tape.nodes.shrink_to_fit();
        self.tape.texts.shrink_to_fit();
        self.next().is_none().then_some(self.tape)
    }

    /// Returns the byte at the position.
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the next byte that is not whitespace.
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                next => return next,
            }
        }
    }

    fn value(&mut self) -> Option<()> {
        match self.next()? {
            b'"' => self.string(),
            b'{' => self.items(true),
            b'[' => self.items(false),
            b'n' => self.word("null", Node::Null),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, node: Node) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += word.len();
        self.tape.nodes.push(node);
        rest.starts_with(word.as_bytes()).then_some(())
    }

    /// Reads a list, or a map.
    fn items(&mut self, is_map: bool) -> Option<()> {
        self.levels = self.levels.checked_sub(1)?;
        self.at += 1;
        let start = position(self.tape.nodes.len())?;
        self.tape.nodes.push(Node::Null);
        let (mut len, mut marks, mut has_equal) = (0, 0, false);
        while self.has_item(len, if is_map { b'}' } else { b']' })? {
            if is_map {
                let mark = self.key()?;
                has_equal |= marks & mark != 0;
                marks |= mark;
            }
            self.value()?;
            len += 1;
        }
        self.levels += 1;
        self.at += 1;
        self.tape.close(start, len, (is_map, has_equal))
    }

    /// Reads the key of a field, and the colon. Returns the mark of the key.
    fn key(&mut self) -> Option<u64> {
        self.next().filter(|it| *it == b'"')?;
        let at = position(self.tape.nodes.len())?;
        self.string()?;
        self.next().filter(|it| *it == b':')?;
        self.at += 1;
        Some(self.tape.mark(at))
    }

    /// Goes to the next item of a list or map that ends with this byte, after `len` items. Returns whether there is one.
    fn has_item(&mut self, len: u32, end: u8) -> Option<bool> {
        match self.next()? {
            it if it == end => Some(false),
            b',' if len > 0 => {
                self.at += 1;
                Some(true)
            }
            _ => (len == 0).then_some(true),
        }
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at + 1;
        let end = start + end_of_plain(self.text.as_bytes().get(start..)?);
        self.at = end + 1;
        match self.text.as_bytes().get(end)? {
            b'"' if self.has_text => {
                self.tape.nodes.push(Node::Text(position(start)?, position(end - start)?));
                Some(())
            }
            b'"' => self.keep(self.text.get(start..end)?),
            b'\\' => self.escaped(start, end),
            _ => None,
        }
    }

    /// Adds a string to the tape.
    #[cold]
    fn keep(&mut self, text: &str) -> Option<()> {
        let start = position(self.tape.texts.len())?;
        self.tape.texts.push_str(text);
        self.tape.nodes.push(Node::Text(start, position(text.len())?));
        Some(())
    }

    /// Reads a string that has an escape at a position.
    #[cold]
    fn escaped(&mut self, start: usize, mut end: usize) -> Option<()> {
        while *self.text.as_bytes().get(end)? != b'"' {
            // An escape that is longer ends with plain characters.
            let after = end + 2;
            end = after + end_of_plain(self.text.as_bytes().get(after..)?);
        }
        self.at = end + 1;
        let read: String = serde_json::from_str(self.text.get(start - 1..self.at)?).ok()?;
        self.keep(&read)
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let mut integer = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            integer = integer.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let is_plain = !matches!(self.byte(), Some(b'.' | b'e' | b'E' | b'+' | b'-'));
        let len = self.at - start;
        let has_zeros = len > 1 && self.text.as_bytes().get(start) == Some(&b'0');
        if is_plain && (1..=SHORT).contains(&len) && !has_zeros {
            self.tape.nodes.push(Node::Unsigned(integer));
            return Some(());
        }
        self.any_number(start)
    }

    /// Reads a number that is no short integer.
    #[cold]
    fn any_number(&mut self, start: usize) -> Option<()> {
        while let Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') = self.byte() {
            self.at += 1;
        }
        let number: Number = self.text.get(start..self.at)?.parse().ok()?;
        self.tape.nodes.push(match (number.as_u64(), number.as_i64()) {
            (Some(it), _) => Node::Unsigned(it),
            (_, Some(it)) => Node::Signed(it),
            _ => Node::Float(number.as_f64()?),
        });
        Some(())
    }
}

/// Returns the position of the first quote, backslash or control character; the length of the text if it has none.
fn end_of_plain(text: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    const HIGHEST: u64 = EACH << 7;
    let mut at = 0;
    while let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*eight);
        // The highest bit of each byte that is below the limit. Borrowing can only set further bits above the first of these.
        let below = |word: u64, limit: u64| word.wrapping_sub(EACH * limit) & !word & HIGHEST;
        // With this bit flipped, a quote comes right after the control characters.
        let found = below(word ^ (EACH * 2), 0x21) | below(word ^ (EACH * u64::from(b'\\')), 1);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|it| matches!(it, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

fn position(index: usize) -> Option<u32> {
    u32::try_from(index).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::tape::Shallow;

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
            let tape = read(text.as_bytes()).expect("JSON");
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
            let (tape, tree) = (read(text.as_bytes()), tree::body(text.as_bytes()));
            let told = |it: Error| it.to_string();
            assert_eq!(tape.map(drop).map_err(told), tree.map(drop).map_err(told), "{text}");
        }
    }

    /// Compares with trees, which `serde_json` reads. Only repeated keys may be refused in addition.
    fn assert_reads_as_a_tree(text: &[u8]) {
        let shown = || text.escape_ascii().to_string();
        match (read(text), tree::body(text)) {
            (Ok(tape), Ok(tree)) => assert_eq!(tape.root().to_value(), tree, "{}", shown()),
            (Err(error), Ok(_)) => assert_eq!(error.to_string(), REPEATED, "{}", shown()),
            (tape, tree) => {
                let told = |it: Error| it.to_string();
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
            let (before, after) = bytes.split_at(at);
            let (it, after) = after.split_first().expect("a byte");
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
    fn strings_with_escapes_are_not_stored_twice() {
        for (escape, most) in
            [("\\u0000", 250_000), ("\\n", 600_000), ("\\\"word\\\":7,", 1_700_000)]
        {
            let text = format!("{{\"a\":\"{}\"}}", escape.repeat(1_000_000 / escape.len()));
            let bytes = read(text.as_bytes()).expect("JSON").bytes();
            assert!(bytes < most, "{escape}: {bytes}");
        }
    }

    #[test]
    fn items_and_fields_are_found_also_in_wide_lists_and_maps() {
        let value = wide();
        let tape = read(value.to_string().as_bytes()).expect("JSON");
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
        for text in [
            r#"{"b":{"a":1,"b":2,"a":3}}"#,
            r#"{"":1,"b":2,"":3}"#,
            r#"{"ab":1,"a\u0062":2}"#,
            r#"{"a\"b":1,"c":[{}],"a\u0022b":2}"#,
            &many,
        ] {
            let error = read(text.as_bytes()).expect_err("an error").to_string();
            assert!(error.starts_with(REPEATED), "{error}");
        }
    }

    #[test]
    fn objects_are_read_as_deep_as_trees() {
        let nested = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
        let tape = read(nested(1000).as_bytes()).expect("JSON");
        assert_eq!(tape.root().to_value(), tree::body(nested(1000).as_bytes()).expect("JSON"));
        assert!(read(nested(100_000).as_bytes()).is_err());
    }
}
