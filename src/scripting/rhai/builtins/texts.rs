//! `split`, `split_rev`, `to_chars`, `replace`, `pad`: how much comes out of a text is known before it is made.

use rhai::{Array, Dynamic, Engine, FuncRegistration, INT, ImmutableString, NativeCallContext};

use super::{Outcome, too_large};
use crate::scripting::rhai::{control::reserve, script::ITEMS_MAX};

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

fn register_replace(engine: &mut Engine) {
    let replace = |context: NativeCallContext<'_>,
                   text: &mut ImmutableString,
                   find: &str,
                   with: &str|
     -> Outcome<()> {
        // As the language has it: nothing comes of an empty text.
        if text.is_empty() {
            return Ok(());
        }
        let found = text.matches(find).count();
        let rest = text.len() - found * find.len();
        let longest = context.engine().max_string_size();
        if found.saturating_mul(with.len()).saturating_add(rest) > longest {
            return Err(too_large("Length of string"));
        }
        if found > 0 {
            *text = text.replace(find, with).into();
        }
        Ok(())
    };
    engine
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: ImmutableString,
                  with: ImmutableString| replace(context, text, &find, &with),
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: ImmutableString,
                  with: char| replace(context, text, &find, &with.to_string()),
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: char,
                  with: ImmutableString| {
                replace(context, text, &find.to_string(), &with)
            },
        )
        .register_fn(
            "replace",
            move |context: NativeCallContext<'_>,
                  text: &mut ImmutableString,
                  find: char,
                  with: char| {
                replace(context, text, &find.to_string(), &with.to_string())
            },
        );
}
