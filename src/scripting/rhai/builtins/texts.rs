//! `split`, `to_chars`, `replace`, `pad`, `sub_string` and their kin: how much comes out of a text is known before it is made.

use std::ops::{Range, RangeInclusive};

use rhai::{Array, Dynamic, Engine, FuncRegistration, INT, ImmutableString, NativeCallContext};

use super::{Outcome, too_large};
use crate::scripting::{
    rhai::control::{reserve, step},
    values::limits::ITEMS_MAX,
};

/// What a piece of a text takes at most beside its characters: a value and what it points to.
const BYTES_PER_PIECE: usize = 80;

/// Replaces the functions.
pub(super) fn register(engine: &mut Engine) {
    macro_rules! pure {
        ($name:expr, $function:expr) => {
            FuncRegistration::new($name).with_purity(true).register_into_engine(engine, $function);
        };
    }
    pure!("to_chars", |text: &mut ImmutableString| {
        let chars = text.chars().count();
        if chars > ITEMS_MAX {
            return Err(too_large(LIST));
        }
        Ok(text.chars().map(Dynamic::from_char).collect::<Array>())
    });
    pure!("split", |text: &mut ImmutableString| {
        let pieces = text.split_whitespace().take(ITEMS_MAX + 1);
        if text.is_empty() { Ok(vec![text.clone().into()]) } else { list(pieces) }
    });
    pure!("split", |text: &mut ImmutableString, by: ImmutableString| list(text.split(&*by)));
    pure!("split", |text: &mut ImmutableString, by: char| list(text.split(by)));
    pure!("split_rev", |text: &mut ImmutableString, by: ImmutableString| list(text.rsplit(&*by)));
    pure!("split_rev", |text: &mut ImmutableString, by: char| list(text.rsplit(by)));
    pure!("split", |text: &mut ImmutableString, by: ImmutableString, most: INT| {
        list(text.splitn(pieces(most), &*by))
    });
    pure!("split", |text: &mut ImmutableString, by: char, most: INT| {
        list(text.splitn(pieces(most), by))
    });
    pure!("split_rev", |text: &mut ImmutableString, by: ImmutableString, most: INT| {
        list(text.rsplitn(pieces(most), &*by))
    });
    pure!("split_rev", |text: &mut ImmutableString, by: char, most: INT| {
        list(text.rsplitn(pieces(most), by))
    });
    engine
        .register_fn(
            "pad",
            |context: NativeCallContext<'_>, text: &mut ImmutableString, len: INT, with: char| {
                pad(&context, text, len, with.encode_utf8(&mut [0; 4]))
            },
        )
        .register_fn(
            "pad",
            |context: NativeCallContext<'_>,
             text: &mut ImmutableString,
             len: INT,
             with: ImmutableString| pad(&context, text, len, &with),
        );
    register_parts(engine);
    register_replace(engine);
}

/// Makes a text longer, up to so many characters. The language's own adds one at a time, and never ends with an empty text.
fn pad(
    context: &NativeCallContext<'_>,
    text: &mut ImmutableString,
    len: INT,
    with: &str,
) -> Outcome<()> {
    let missing = usize::try_from(len).unwrap_or(0).saturating_sub(text.chars().count());
    let chars = with.chars().count();
    if missing == 0 || chars == 0 {
        return Ok(());
    }
    let times = missing / chars;
    let longest = context.engine().max_string_size();
    if times.saturating_mul(with.len()).saturating_add(text.len()) > longest {
        return Err(too_large("Length of string"));
    }
    let mut padded = text.to_string();
    padded.push_str(&with.repeat(times));
    padded.extend(with.chars().take(missing % chars));
    *text = padded.into();
    Ok(())
}

const LIST: &str = "Size of array/BLOB";

/// At least one, as the language has it.
fn pieces(most: INT) -> usize {
    usize::try_from(most).unwrap_or(0).max(1)
}

fn list<'a>(pieces: impl Iterator<Item = &'a str>) -> Outcome<Array> {
    let mut list = Array::new();
    for piece in pieces {
        if list.len() == ITEMS_MAX {
            return Err(too_large(LIST));
        }
        // Short ones need a piece of memory each, as long ones do.
        if list.len().is_multiple_of(1024) {
            reserve(1024 * BYTES_PER_PIECE)?;
        }
        list.push(piece.into());
    }
    Ok(list)
}

/// Puts one text in the place of another, wherever that is found.
fn replace(
    context: &NativeCallContext<'_>,
    text: &mut ImmutableString,
    find: &str,
    with: &str,
) -> Outcome<()> {
    // As the language has it: nothing comes of an empty text.
    if text.is_empty() {
        return Ok(());
    }
    let longest = context.engine().max_string_size();
    let (mut made, mut done) = (String::new(), 0);
    for (place, found) in text.match_indices(find) {
        step()?;
        made.push_str(text.get(done..place).unwrap_or_default());
        made.push_str(with);
        done = place + found.len();
        if made.len() > longest {
            return Err(too_large("Length of string"));
        }
    }
    made.push_str(text.get(done..).unwrap_or_default());
    *text = made.into();
    Ok(())
}

/// So many characters from this one on; negative places count from the end.
fn part(text: &str, start: INT, len: INT) -> &str {
    let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let skipped = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => text.chars().count().saturating_sub(from_end),
    };
    let rest = at_char(text, skipped).1;
    at_char(rest, usize::try_from(len).unwrap_or(0)).0
}

/// What comes before a character, and the rest.
fn at_char(text: &str, place: usize) -> (&str, &str) {
    // Most texts are plain, and then nothing has to be counted.
    let byte = if text.is_ascii() {
        place.min(text.len())
    } else {
        text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte)
    };
    text.split_at_checked(byte).unwrap_or((text, ""))
}

/// Start and length, as the language reads ranges.
fn span(start: INT, end: INT) -> (INT, INT) {
    let start = start.max(0);
    (start, end.max(start) - start)
}

/// `sub_string` gives a part of a text, `crop` leaves nothing else of it. The language's own make a list of all characters.
fn register_parts(engine: &mut Engine) {
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
        .register_fn("remove", |context: NativeCallContext<'_>, it: &mut Text, what: Text| {
            replace(&context, it, &what, "")
        })
        .register_fn("remove", |context: NativeCallContext<'_>, it: &mut Text, what: char| {
            replace(&context, it, what.encode_utf8(&mut [0; 4]), "")
        })
        .register_fn("pop", |it: &mut Text, len: INT| {
            let kept = it.chars().count().saturating_sub(usize::try_from(len).unwrap_or(0));
            let (rest, popped) = at_char(it, kept);
            let (rest, popped) = (Text::from(rest), Text::from(popped));
            *it = rest;
            popped
        });
}

fn register_replace(engine: &mut Engine) {
    engine
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: ImmutableString,
                  with: ImmutableString| replace(&context, text, &find, &with),
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: ImmutableString,
                  with: char| replace(&context, text, &find, &with.to_string()),
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: char,
                  with: ImmutableString| {
                replace(&context, text, &find.to_string(), &with)
            },
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: char,
                  with: char| {
                replace(&context, text, &find.to_string(), &with.to_string())
            },
        );
}
