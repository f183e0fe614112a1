//! `==`, `!=`, `in` and `index_of` of lists and maps.

use rhai::{Array, Dynamic, Engine, EvalAltResult, FuncRegistration, INT, Map, NativeCallContext};

use super::super::{Fallible, Limits, problem};

/// Registers the replacements. All of them are pure, so that they accept constants.
pub(super) fn register<L: Limits>(engine: &mut Engine) {
    macro_rules! pure {
        ($name:expr, $function:expr) => {
            FuncRegistration::new($name).with_purity(true).register_into_engine(engine, $function);
        };
    }
    pure!("==", |context: NativeCallContext<'_>, a: &mut Array, b: Array| {
        lists::<L>(&context, a, &b, 0)
    });
    pure!("!=", |context: NativeCallContext<'_>, a: &mut Array, b: Array| {
        lists::<L>(&context, a, &b, 0).map(|it| !it)
    });
    pure!("==", |context: NativeCallContext<'_>, a: &mut Map, b: Map| maps::<L>(
        &context, a, &b, 0
    ));
    pure!("!=", |context: NativeCallContext<'_>, a: &mut Map, b: Map| {
        maps::<L>(&context, a, &b, 0).map(|it| !it)
    });
    pure!("contains", |context: NativeCallContext<'_>, array: &mut Array, value: Dynamic| {
        Ok::<_, Box<EvalAltResult>>(place::<L>(&context, array, &value, 0)?.is_some())
    });
    pure!("index_of", |context: NativeCallContext<'_>, array: &mut Array, value: Dynamic| {
        place::<L>(&context, array, &value, 0).map(index)
    });
    pure!("index_of", |context: NativeCallContext<'_>,
                       array: &mut Array,
                       value: Dynamic,
                       start: INT| {
        // Negative indexes count from the end.
        let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
        let start = match usize::try_from(start) {
            Ok(start) => start,
            Err(_) => array.len().saturating_sub(from_end),
        };
        place::<L>(&context, array, &value, start).map(index)
    });
}

fn index(place: Option<usize>) -> INT {
    place.and_then(|it| INT::try_from(it).ok()).unwrap_or(-1)
}

fn place<L: Limits>(
    context: &NativeCallContext<'_>,
    array: &Array,
    value: &Dynamic,
    start: usize,
) -> Fallible<Option<usize>> {
    for (index, item) in array.iter().enumerate().skip(start) {
        if equal::<L>(context, item, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Returns whether two values are equal in Rhai; values of types that cannot be compared are not.
pub(super) fn equal<L: Limits>(
    context: &NativeCallContext<'_>,
    a: &Dynamic,
    b: &Dynamic,
) -> Fallible<bool> {
    compare::<L>(context, a, b, 0)
}

fn compare<L: Limits>(
    context: &NativeCallContext<'_>,
    a: &Dynamic,
    b: &Dynamic,
    depth: usize,
) -> Fallible<bool> {
    L::step()?;
    if let (Ok(a), Ok(b)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return Ok(*a == *b);
    }
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return Ok(a == b);
    }
    if a.is_unit() || b.is_unit() {
        return Ok(a.is_unit() && b.is_unit());
    }
    if let (Ok(a), Ok(b)) = (a.as_array_ref(), b.as_array_ref()) {
        return lists::<L>(context, &a, &b, depth + 1);
    }
    if let (Ok(a), Ok(b)) = (a.as_map_ref(), b.as_map_ref()) {
        return maps::<L>(context, &a, &b, depth + 1);
    }
    let compared = context.call_native_fn_raw("==", true, &mut [&mut a.clone(), &mut b.clone()]);
    match compared.map_err(|it| *it) {
        Ok(answer) => Ok(answer.as_bool().unwrap_or(false)),
        Err(EvalAltResult::ErrorFunctionNotFound(..)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn lists<L: Limits>(
    context: &NativeCallContext<'_>,
    a: &Array,
    b: &Array,
    depth: usize,
) -> Fallible<bool> {
    shallow::<L>(depth)?;
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !compare::<L>(context, a, b, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps<L: Limits>(
    context: &NativeCallContext<'_>,
    a: &Map,
    b: &Map,
    depth: usize,
) -> Fallible<bool> {
    shallow::<L>(depth)?;
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, a) in a {
        let same = b.get(key).map_or(Ok(false), |b| compare::<L>(context, a, b, depth))?;
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Fails if a value is nested deeper than data may be.
fn shallow<L: Limits>(depth: usize) -> Fallible<()> {
    let max = L::DEPTH_MAX;
    if depth <= max {
        return Ok(());
    }
    Err(problem(format!("==: nested deeper than {max} levels")))
}
