//! `pad` of lists and bytes, and `blob`: the size of the result is checked before it is created.

use rhai::{Array, Blob, Dynamic, Engine, INT};

use super::{Fallible, too_long, too_many};
use crate::scripting::{
    blocking::control::{sizes, step},
    values::limits::ITEMS_MAX,
};

/// Registers `pad` of lists and bytes, and `blob`.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("pad", |list: &mut Array, len: INT, item: Dynamic| pad(list, len, &item))
        .register_fn("pad", |bytes: &mut Blob, len: INT, value: INT| {
            bytes.resize(length(len)?.max(bytes.len()), byte(value));
            Fallible::Ok(())
        })
        .register_fn("blob", |len: INT| Fallible::Ok(vec![0_u8; length(len)?]))
        .register_fn("blob", |len: INT, value: INT| Fallible::Ok(vec![byte(value); length(len)?]));
}

fn pad(list: &mut Array, len: INT, item: &Dynamic) -> Fallible<()> {
    let missing = usize::try_from(len).unwrap_or(0).saturating_sub(list.len());
    if missing.saturating_add(list.len()) > ITEMS_MAX {
        return Err(too_many("a list"));
    }
    for _ in 0..missing {
        step()?;
        list.push(item.clone());
    }
    Ok(())
}

fn length(len: INT) -> Fallible<usize> {
    let len = usize::try_from(len).unwrap_or(0);
    if len > sizes().1 { Err(too_long()) } else { Ok(len) }
}

/// Converts an integer into a byte, as Rhai does: its lowest eight bits.
fn byte(value: INT) -> u8 {
    u8::try_from(value & 0xff).unwrap_or_default()
}
