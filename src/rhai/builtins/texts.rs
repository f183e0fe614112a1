//! `split`, `to_chars`, `replace`, `pad`, `sub_string` and similar: the size of the result is limited before or while it is created.

use std::ops::{Range, RangeInclusive};

use rhai::{Array, Dynamic, Engine, FuncRegistration, INT, ImmutableString};

use super::super::{Fallible, Limits};

/// Maximum bytes of a piece of a string in addition to its characters: a value, and what it points to.
const BYTES_PER_PIECE: usize = 80;

/// Registers the replacements of string functions.
pub(super) fn register<L: Limits>(engine: &mut Engine) {
    macro_rules! pure {
        ($name:expr, $function:expr) => {
            FuncRegistration::new($name).with_purity(true).register_into_engine(engine, $function);
        };
    }
    pure!("to_chars", |text: &mut ImmutableString| {
        let chars = text.chars().count();
        if chars > L::ITEMS_MAX {
            return Err(L::too_many("a list"));
        }
        Ok(text.chars().map(Dynamic::from_char).collect::<Array>())
    });
    pure!("split", |text: &mut ImmutableString| {
        let pieces = text.split_whitespace().take(L::ITEMS_MAX + 1);
        if text.is_empty() { Ok(vec![text.clone().into()]) } else { list::<L>(pieces) }
    });
    pure!("split", |text: &mut ImmutableString, by: ImmutableString| list::<L>(text.split(&*by)));
    pure!("split", |text: &mut ImmutableString, by: char| list::<L>(text.split(by)));
    pure!("split_rev", |text: &mut ImmutableString, by: ImmutableString| list::<L>(
        text.rsplit(&*by)
    ));
    pure!("split_rev", |text: &mut ImmutableString, by: char| list::<L>(text.rsplit(by)));
    pure!("split", |text: &mut ImmutableString, by: ImmutableString, most: INT| {
        list::<L>(text.splitn(pieces(most), &*by))
    });
    pure!("split", |text: &mut ImmutableString, by: char, most: INT| {
        list::<L>(text.splitn(pieces(most), by))
    });
    pure!("split_rev", |text: &mut ImmutableString, by: ImmutableString, most: INT| {
        list::<L>(text.rsplitn(pieces(most), &*by))
    });
    pure!("split_rev", |text: &mut ImmutableString, by: char, most: INT| {
        list::<L>(text.rsplitn(pieces(most), by))
    });
    engine
        .register_fn("pad", |text: &mut ImmutableString, len: INT, with: char| {
            pad::<L>(text, len, with.encode_utf8(&mut [0; 4]))
        })
        .register_fn("pad", |text: &mut ImmutableString, len: INT, with: ImmutableString| {
            pad::<L>(text, len, &with)
        });
    register_parts::<L>(engine);
    register_replace::<L>(engine);
}

/// Pads a string to this number of characters. Rhai's own adds one at a time, and never ends with an empty string.
fn pad<L: Limits>(text: &mut ImmutableString, len: INT, with: &str) -> Fallible<()> {
    let missing = usize::try_from(len).unwrap_or(0).saturating_sub(text.chars().count());
    let chars = with.chars().count();
    if missing == 0 || chars == 0 {
        return Ok(());
    }
    let times = missing / chars;
    let longest = L::string_size();
    if times.saturating_mul(with.len()).saturating_add(text.len()) > longest {
        return Err(L::too_long());
    }
    let mut padded = text.to_string();
    padded.push_str(&with.repeat(times));
    padded.extend(with.chars().take(missing % chars));
    *text = padded.into();
    Ok(())
}

/// Returns the maximum number of pieces: at least one, as in Rhai.
fn pieces(most: INT) -> usize {
    usize::try_from(most).unwrap_or(0).max(1)
}

fn list<'a, L: Limits>(pieces: impl Iterator<Item = &'a str>) -> Fallible<Array> {
    let mut list = Array::new();
    for piece in pieces {
        if list.len() == L::ITEMS_MAX {
            return Err(L::too_many("a list"));
        }
        // Even short pieces need an allocation each.
        if list.len().is_multiple_of(1024) {
            L::reserve(1024 * BYTES_PER_PIECE)?;
        }
        list.push(piece.into());
    }
    Ok(list)
}

/// Replaces one string with another, wherever it is found.
fn replace<L: Limits>(text: &mut ImmutableString, find: &str, with: &str) -> Fallible<()> {
    // As in Rhai: an empty string stays empty.
    if text.is_empty() {
        return Ok(());
    }
    let longest = L::string_size();
    let (mut made, mut done) = (String::new(), 0);
    for (place, found) in text.match_indices(find) {
        L::step()?;
        made.push_str(text.get(done..place).unwrap_or_default());
        made.push_str(with);
        done = place + found.len();
        if made.len() > longest {
            return Err(L::too_long());
        }
    }
    made.push_str(text.get(done..).unwrap_or_default());
    *text = made.into();
    Ok(())
}

/// Returns `len` characters from `start` on; a negative start counts from the end.
fn part(text: &str, start: INT, len: INT) -> &str {
    let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let skipped = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => text.chars().count().saturating_sub(from_end),
    };
    let rest = at_char(text, skipped).1;
    at_char(rest, usize::try_from(len).unwrap_or(0)).0
}

/// Returns the part before a character, and the rest.
fn at_char(text: &str, place: usize) -> (&str, &str) {
    // Most strings are ASCII, where characters need not be counted.
    let byte = if text.is_ascii() {
        place.min(text.len())
    } else {
        text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte)
    };
    text.split_at_checked(byte).unwrap_or((text, ""))
}

/// Returns the start and the length of a range, as Rhai interprets it.
fn span(start: INT, end: INT) -> (INT, INT) {
    let start = start.max(0);
    (start, end.max(start) - start)
}

/// Registers `sub_string`, which returns a part of a string, and `crop`, which keeps only that part. Rhai's own create a list of all
/// characters.
fn register_parts<L: Limits>(engine: &mut Engine) {
    type Text = ImmutableString;
    let give = |text: &Text, start, len| Text::from(part(text, start, len));
    let crop = |text: &mut Text, start, len| *text = Text::from(part(text, start, len));
    let inclusive = |it: &RangeInclusive<INT>| span(*it.start(), it.end().saturating_add(1));
    engine
        .register_fn("sub_string", move |it: Text, start: INT| give(&it, start, INT::MAX))
        .register_fn("sub_string", move |it: Text, start: INT, len: INT| give(&it, start, len))
        .register_fn("sub_string", move |it: Text, range: Range<INT>| {
            let (start, len) = span(range.start, range.end);
            give(&it, start, len)
        })
        .register_fn("sub_string", move |it: Text, range: RangeInclusive<INT>| {
            let (start, len) = inclusive(&range);
            give(&it, start, len)
        })
        .register_fn("crop", move |it: &mut Text, start: INT| crop(it, start, INT::MAX))
        .register_fn("crop", move |it: &mut Text, start: INT, len: INT| crop(it, start, len))
        .register_fn("crop", move |it: &mut Text, range: Range<INT>| {
            let (start, len) = span(range.start, range.end);
            crop(it, start, len);
        })
        .register_fn("crop", move |it: &mut Text, range: RangeInclusive<INT>| {
            let (start, len) = inclusive(&range);
            crop(it, start, len);
        })
        .register_fn("remove", |it: &mut Text, what: Text| replace::<L>(it, &what, ""))
        .register_fn("remove", |it: &mut Text, what: char| {
            replace::<L>(it, what.encode_utf8(&mut [0; 4]), "")
        })
        .register_fn("pop", |it: &mut Text, len: INT| {
            let kept = it.chars().count().saturating_sub(usize::try_from(len).unwrap_or(0));
            let (rest, popped) = at_char(it, kept);
            let (rest, popped) = (Text::from(rest), Text::from(popped));
            *it = rest;
            popped
        });
}

fn register_replace<L: Limits>(engine: &mut Engine) {
    engine
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: ImmutableString, with: ImmutableString| {
                replace::<L>(text, &find, &with)
            },
        )
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: ImmutableString, with: char| {
                replace::<L>(text, &find, &with.to_string())
            },
        )
        .register_fn(
            "replace",
            move |text: &mut ImmutableString, find: char, with: ImmutableString| {
                replace::<L>(text, &find.to_string(), &with)
            },
        )
        .register_fn("replace", move |text: &mut ImmutableString, find: char, with: char| {
            replace::<L>(text, &find.to_string(), &with.to_string())
        });
}
