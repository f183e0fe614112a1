//! Limits the nesting depth of lists and maps, and reads JSON texts up to that depth.
//!
//! API servers accept 10,000 levels. All walks over a tree recurse once for each level, so there must be a bound: [`DEPTH_MAX`]. A deeper
//! object is reported as an error of that object; it must never read as an empty one.

use serde::de::Error as _;
use serde_json::{Deserializer, Value, de::StrRead};

/// Maximum number of levels of an object, itself included. Every walk over a tree fits into a stack of 2 MiB at this depth.
pub const DEPTH_MAX: usize = 1024;
/// Levels around an object in longer texts, such as lists.
const AROUND: usize = 8;
/// Number of levels that `serde_json` reads by default.
const USUAL: usize = 127;
/// Stack space for reading deep texts: a new stack is allocated if less is left.
const STACK_BYTES: usize = 4 << 20;

/// Returns the nesting depth of the lists and maps of a JSON text. Does not recurse.
pub fn depth(text: &[u8]) -> usize {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' if !is_quoted => {
                open = open.saturating_add(1);
                deepest = deepest.max(open);
            }
            b'}' | b']' if !is_quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns whether a JSON text may be nested deeper than `max`. False is exact, true is a guess; much faster than [`depth`].
pub(super) fn may_exceed(text: &[u8], max: usize) -> bool {
    // Each level needs an opening and a closing character. Counting does not depend on the order, and many bytes are counted at once,
    // as long as their number fits into a byte.
    let closing = |some: &[u8]| some.iter().map(|it| u8::from(it | 0x20 == b'}')).sum::<u8>();
    text.len() > max.saturating_mul(2)
        && text.chunks(128).map(|it| usize::from(closing(it))).sum::<usize>() > max
}

/// Reads a JSON text as deep as a list of objects may be. `parse` is called again if the text is deeper than usual.
///
/// # Errors
/// Fails if `parse` fails, if the text is not UTF-8, or if it is nested too deep.
pub fn read<'a, T>(
    text: &'a [u8],
    parse: impl Fn(&mut Deserializer<StrRead<'a>>) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let whole = |mut deserializer: Deserializer<StrRead<'a>>| {
        let read = parse(&mut deserializer)?;
        deserializer.end().map(|()| read)
    };
    // Once for the whole text, not for each string in it.
    let text = str::from_utf8(text).map_err(serde_json::Error::custom)?;
    let error = match whole(Deserializer::from_str(text)) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let depth = depth(text.as_bytes());
    if depth <= USUAL {
        return Err(error);
    }
    if depth > DEPTH_MAX + AROUND {
        return Err(serde_json::Error::custom(format!(
            "it is nested {depth} levels deep; at most {DEPTH_MAX} are supported"
        )));
    }
    stacker::maybe_grow(STACK_BYTES, STACK_BYTES * 2, || {
        let mut deserializer = Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        whole(deserializer)
    })
}

/// Reads a JSON text as [`read`] does.
///
/// # Errors
/// Fails as [`read`] does.
pub fn value(text: &[u8]) -> Result<Value, serde_json::Error> {
    read(text, |it| serde::Deserialize::deserialize(it))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::{
        super::{containing, header, responses, tree},
        may_exceed,
    };

    #[test]
    fn closing_characters_are_counted() {
        for count in [0, 1, 127, 128, 129, 255, 256, 1000] {
            for text in ["}", "]"].map(|it| "x".repeat(3000) + &it.repeat(count) + "=\u{1d}") {
                assert!(!may_exceed(text.as_bytes(), count));
                assert_eq!(count > 0, may_exceed(text.as_bytes(), count.saturating_sub(1)));
            }
        }
    }

    #[test]
    fn what_is_not_utf_8_is_refused_also_in_parts_that_are_skipped() {
        for text in [
            &b"{\"metadata\":{\"managedFields\":[\"\xff\"]},\"items\":[]}"[..],
            b"{\"x\":\"\xff\",\"items\":[]}",
            b"{\"\xff\":1,\"items\":[]}",
        ] {
            assert!(header::header(text).is_err() && tree::body(text).is_err());
            assert!(!containing::contains(text, &Map::new()));
            assert!(responses::read_object(text).is_err() && responses::read_list(text).is_err());
        }
        assert!(responses::read_texts(b"{\"items\":[{\"x\":\"\xff\"}]}").is_err());
    }
}
