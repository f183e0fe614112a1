//! `sort`, `order`, `dedup`.
//!
//! Rhai's own swallow every error of the comparing function, including the abort of a call, and compare long strings without checking
//! limits.

use std::cmp::Ordering;

use rhai::{Array, Dynamic, Engine, EvalAltResult, FLOAT, FnPtr, INT, NativeCallContext};

use super::super::{Fallible, Limits, problem};
use super::equality::equal;

/// Registers the replacements of sorting functions.
pub(super) fn register<L: Limits>(engine: &mut Engine) {
    for name in ["sort", "sort_by"] {
        engine.register_fn(name, |context: NativeCallContext<'_>, array: &mut Array, by: FnPtr| {
            *array = sorted::<L>(array, |a, b| compared(&context, &by, a, b))?;
            Ok::<_, Box<EvalAltResult>>(())
        });
    }
    for name in ["order", "order_by"] {
        engine.register_fn(name, |context: NativeCallContext<'_>, array: Array, by: FnPtr| {
            sorted::<L>(&array, |a, b| compared(&context, &by, a, b))
        });
    }
    let sort = |array: &mut Array, descending: bool| {
        *array = naturally::<L>(array, descending)?;
        Ok::<_, Box<EvalAltResult>>(())
    };
    engine
        .register_fn("sort", move |array: &mut Array| sort(array, false))
        .register_fn("sort_desc", move |array: &mut Array| sort(array, true))
        .register_fn("order", |array: Array| naturally::<L>(&array, false))
        .register_fn("order_desc", |array: Array| naturally::<L>(&array, true))
        .register_fn("dedup", |context: NativeCallContext<'_>, array: &mut Array| {
            dedup::<L>(array, |a, b| equal::<L>(&context, a, b))
        })
        .register_fn("dedup", |context: NativeCallContext<'_>, array: &mut Array, by: FnPtr| {
            dedup::<L>(array, |a, b| {
                let same = by.call_raw(&context, None, [a.clone(), b.clone()])?;
                Ok(same.as_bool().unwrap_or(false))
            })
        });
}

/// Returns the items in order; equal ones keep their order. A merge sort, because a comparison may fail, or be inconsistent with others.
fn sorted<L: Limits>(
    items: &Array,
    mut compare: impl FnMut(&Dynamic, &Dynamic) -> Fallible<Ordering>,
) -> Fallible<Array> {
    let order = merge_sorted::<L>(items.iter().collect(), &mut compare)?;
    Ok(order.into_iter().cloned().collect())
}

fn merge_sorted<'a, L: Limits>(
    mut left: Vec<&'a Dynamic>,
    compare: &mut impl FnMut(&Dynamic, &Dynamic) -> Fallible<Ordering>,
) -> Fallible<Vec<&'a Dynamic>> {
    if left.len() < 2 {
        return Ok(left);
    }
    let right = left.split_off(left.len() / 2);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut left = merge_sorted::<L>(left, compare)?.into_iter().peekable();
    let mut right = merge_sorted::<L>(right, compare)?.into_iter().peekable();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        L::step()?;
        // This way around: a function that returns whether its first argument comes first says false for equal items.
        let next = if compare(b, a)?.is_lt() { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

/// Calls the comparing function of the script. Fails if it returns neither a number nor a boolean.
fn compared(
    context: &NativeCallContext<'_>,
    by: &FnPtr,
    a: &Dynamic,
    b: &Dynamic,
) -> Fallible<Ordering> {
    let answer = by.call_raw(context, None, [a.clone(), b.clone()])?;
    if let Ok(number) = answer.as_int() {
        return Ok(number.cmp(&0));
    }
    let is_before = answer.as_bool().map_err(|kind| {
        problem(format!("sort: the function must return a number or a boolean, not {kind}"))
    })?;
    Ok(if is_before { Ordering::Less } else { Ordering::Greater })
}

/// Sorts by the values themselves. Fails if they have several types, or a type without an order.
fn naturally<L: Limits>(items: &Array, descending: bool) -> Fallible<Array> {
    let kind = items.first().map(Dynamic::type_id);
    if items.iter().any(|it| Some(it.type_id()) != kind) {
        return Err(problem("elements of different types cannot be sorted"));
    }
    sorted::<L>(items, |a, b| {
        let order = natural(a, b)
            .ok_or_else(|| problem(format!("elements of {} cannot be sorted", a.type_name())))?;
        Ok(if descending { order.reverse() } else { order })
    })
}

/// Compares two values; returns `None` for types without an order.
fn natural(a: &Dynamic, b: &Dynamic) -> Option<Ordering> {
    fn of<T: Clone + 'static>(
        a: &Dynamic,
        b: &Dynamic,
        compare: fn(&T, &T) -> Ordering,
    ) -> Option<Ordering> {
        Some(compare(&*a.read_lock::<T>()?, &*b.read_lock::<T>()?))
    }
    if let (Ok(a), Ok(b)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return Some(a.as_str().cmp(b.as_str()));
    }
    of::<INT>(a, b, Ord::cmp)
        .or_else(|| of::<FLOAT>(a, b, |a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal)))
        .or_else(|| of::<char>(a, b, Ord::cmp))
        .or_else(|| of::<bool>(a, b, Ord::cmp))
        .or_else(|| a.is_unit().then_some(Ordering::Equal))
}

/// Removes items that are equal to the item before them.
fn dedup<L: Limits>(
    array: &mut Array,
    mut same: impl FnMut(&Dynamic, &Dynamic) -> Fallible<bool>,
) -> Fallible<()> {
    let mut kept = Array::with_capacity(array.len());
    for item in &*array {
        L::step()?;
        let repeats = kept.last().map_or(Ok(false), |last| same(last, item))?;
        if !repeats {
            kept.push(item.clone());
        }
    }
    *array = kept;
    Ok(())
}
