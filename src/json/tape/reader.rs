//! Reads a text into a tape in one pass, in a third of the time of a visitor of `serde_json`.
//!
//! Only plain values are read here: strings without escapes and short integers. `serde_json` reads the others, and words all errors: a
//! text that this reader refuses has none of its own.

use serde_json::Number;

use super::{super::depth::DEPTH_MAX, Node, Tape};

/// Decimal digits that always fit into 64 bits.
const SHORT: usize = 18;

/// A text that is read into a tape. All functions return `None` if it is not JSON, nested too deep, larger than 4 GiB, or repeats a key.
pub(super) struct TapeReader<'a> {
    text: &'a str,
    /// The first byte that was not read yet.
    at: usize,
    /// How many lists and maps may still be opened inside of one another.
    levels: usize,
    tape: Tape,
}

impl<'a> TapeReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // About as much as objects need, so that nothing is moved while it grows.
        let nodes = Vec::with_capacity(text.len() / 6);
        let tape = Tape { nodes, texts: text.to_owned(), ..Tape::default() };
        TapeReader { text, at: 0, levels: DEPTH_MAX, tape }
    }

    /// Reads the whole text.
    pub(super) fn read(mut self) -> Option<Tape> {
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

    fn push(&mut self, node: Node) -> Option<()> {
        self.tape.nodes.push(node);
        Some(())
    }

    fn value(&mut self) -> Option<()> {
        match self.next()? {
            b'"' => self.string(),
            b'{' => self.map(),
            b'[' => self.list(),
            b'n' => self.word("null", Node::Null),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, node: Node) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += word.len();
        rest.starts_with(word.as_bytes()).then_some(())?;
        self.push(node)
    }

    fn list(&mut self) -> Option<()> {
        let start = self.open()?;
        let mut len = 0;
        while self.has_item(len, b']')? {
            self.value()?;
            len += 1;
        }
        self.close(start, Node::List(len, position(self.tape.nodes.len())?))
    }

    fn map(&mut self) -> Option<()> {
        let start = self.open()?;
        let mut len = 0;
        while self.has_item(len, b'}')? {
            self.next().filter(|it| *it == b'"')?;
            self.string()?;
            self.next().filter(|it| *it == b':')?;
            self.at += 1;
            self.value()?;
            len += 1;
        }
        self.close(start, Node::Map(len, position(self.tape.nodes.len())?))
    }

    /// Opens a list or a map. Returns its position.
    fn open(&mut self) -> Option<u32> {
        self.levels = self.levels.checked_sub(1)?;
        self.at += 1;
        let start = position(self.tape.nodes.len());
        self.tape.nodes.push(Node::Null);
        start
    }

    /// Completes the list or map at a position.
    fn close(&mut self, start: u32, node: Node) -> Option<()> {
        self.levels += 1;
        self.at += 1;
        self.tape.close(start, node)
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
            b'"' => self.push(Node::Text(position(start)?, position(end - start)?)),
            b'\\' => self.escaped(start, end),
            _ => None,
        }
    }

    /// Reads a string that has an escape at a position.
    fn escaped(&mut self, start: usize, mut end: usize) -> Option<()> {
        while *self.text.as_bytes().get(end)? != b'"' {
            // An escape that is longer ends with plain characters.
            let after = end + 2;
            end = after + end_of_plain(self.text.as_bytes().get(after..)?);
        }
        self.at = end + 1;
        let read: String = serde_json::from_str(self.text.get(start - 1..self.at)?).ok()?;
        let at = position(self.tape.texts.len())?;
        self.tape.texts.push_str(&read);
        self.push(Node::Text(at, position(read.len())?))
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
            return self.push(Node::Unsigned(integer));
        }
        while let Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') = self.byte() {
            self.at += 1;
        }
        let number: Number = self.text.get(start..self.at)?.parse().ok()?;
        self.push(match (number.as_u64(), number.as_i64()) {
            (Some(it), _) => Node::Unsigned(it),
            (_, Some(it)) => Node::Signed(it),
            _ => Node::Float(number.as_f64()?),
        })
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
        let equal = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
        let found = below(word, 0x20) | equal(b'"') | equal(b'\\');
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
