//! `pad` of lists and bytes, and `blob`: the size of the result is checked before it is created.

use rhai::{Array, Blob, Dynamic, Engine, INT};

use super::super::{Fallible, Limits};

/// Registers `pad` of lists and bytes, and `blob`.
pub(super) fn register<L: Limits>(engine: &mut Engine) {
    engine
        .register_fn("pad", |list: &mut Array, len: INT, item: Dynamic| pad::<L>(list, len, &item))
        .register_fn("pad", |bytes: &mut Blob, len: INT, value: INT| {
            bytes.resize(length::<L>(len)?.max(bytes.len()), byte(value));
            Fallible::Ok(())
        })
        .register_fn("blob", |len: INT| Fallible::Ok(vec![0_u8; length::<L>(len)?]))
        .register_fn("blob", |len: INT, value: INT| {
            Fallible::Ok(vec![byte(value); length::<L>(len)?])
        });
}

fn pad<L: Limits>(list: &mut Array, len: INT, item: &Dynamic) -> Fallible<()> {
    let missing = usize::try_from(len).unwrap_or(0).saturating_sub(list.len());
    if missing.saturating_add(list.len()) > L::ITEMS_MAX {
        return Err(L::too_many("a list"));
    }
    for _ in 0..missing {
        L::step()?;
        list.push(item.clone());
    }
    Ok(())
}

fn length<L: Limits>(len: INT) -> Fallible<usize> {
    let len = usize::try_from(len).unwrap_or(0);
    if len > L::string_size() { Err(L::too_long()) } else { Ok(len) }
}

/// Converts an integer into a byte, as Rhai does: its lowest eight bits.
fn byte(value: INT) -> u8 {
    u8::try_from(value & 0xff).unwrap_or_default()
}
