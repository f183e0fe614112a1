//! Reads the options of `kopf.reconcile`.

use super::{
    Argument, DeclareError,
    values::{self, Options},
};
use crate::logic::{
    handlers::{
        handler::{Named, Reconcile, Watched},
        selector::Selector,
    },
    text::duration,
};
use serde_json::Value;

const WATCHES: &str = "kopf.reconcile: `watches` must be a list of resources, each a name or a name with `map`, a function";

pub(super) fn read(options: &Options<'_>) -> Result<Reconcile, DeclareError> {
    let owns = options.texts("owns")?;
    let owns = owns.iter().map(|it| kind("owns", it)).collect::<Result<Vec<_>, _>>()?;
    let watches = match options.get("watches") {
        None => Vec::new(),
        Some(Argument::Value(Value::String(one))) => {
            vec![Watched { kind: kind("watches", one)?, map: None }]
        }
        Some(Argument::Value(Value::Array(items))) => {
            let items = items.iter().map(|it| watched(&Argument::Value(it.clone())));
            items.collect::<Result<_, _>>()?
        }
        Some(Argument::Value(Value::Object(items))) if items.is_empty() => Vec::new(),
        Some(Argument::List(items)) => items.iter().map(watched).collect::<Result<_, _>>()?,
        Some(
            Argument::Absent
            | Argument::Value(_)
            | Argument::Callback(_)
            | Argument::Marker(_)
            | Argument::Map(_),
        ) => return Err(WATCHES.into()),
    };
    repeated("owns", owns.iter())?;
    repeated("watches", watches.iter().map(|it: &Watched| &it.kind))?;
    let resync = options.duration("resync")?;
    if resync.is_some_and(|it| it.is_zero()) {
        let shown = format!("option `resync` must be {}, and not zero", duration::EXPECTED);
        return Err(shown.into());
    }
    Ok(Reconcile {
        owns,
        watches,
        resync,
        finalize: options.function("finalize")?,
        finalizer: options.flag("finalizer")?,
        formerly: options.texts("formerly")?,
    })
}

/// Reads the kind of the owners that the objects of an event handler must have.
pub(super) fn parent(options: &Options<'_>) -> Result<Option<Named>, DeclareError> {
    let (parent, owner) = (options.text("parent")?, options.text("owner")?);
    if parent.is_some() && owner.is_some() {
        return Err("`parent` and `owner` are the same option: use one of them".into());
    }
    let read = |name: &str, text: Option<String>| text.map(|it| kind(name, &it)).transpose();
    Ok(read("parent", parent)?.or(read("owner", owner)?))
}

fn repeated<'a>(option: &str, kinds: impl Iterator<Item = &'a Named>) -> Result<(), DeclareError> {
    let mut seen = Vec::new();
    for kind in kinds {
        if seen.contains(&&kind.selector) {
            return Err(format!("kopf.reconcile: `{option}` lists {:?} twice", kind.text).into());
        }
        seen.push(&kind.selector);
    }
    Ok(())
}

/// Reads one watched kind: a name, or a list of a name and a map with the function `map`.
fn watched(item: &Argument) -> Result<Watched, DeclareError> {
    let wrong = || DeclareError::from(WATCHES);
    let text = |it: &Argument| values::value(it).and_then(|it| Some(it.as_str()?.to_owned()));
    if let Some(name) = text(item) {
        return Ok(Watched { kind: kind("watches", &name)?, map: None });
    }
    let entry = |fields: &[(String, Argument)]| match fields {
        [(key, it)] if key == "map" => values::function(it).ok_or_else(wrong),
        _ => Err(wrong()),
    };
    match item {
        Argument::List(parts) => match parts.as_slice() {
            [name, Argument::Map(fields)] => {
                let name = text(name).ok_or_else(wrong)?;
                Ok(Watched { kind: kind("watches", &name)?, map: Some(entry(fields)?) })
            }
            _ => Err(wrong()),
        },
        Argument::Value(Value::Array(parts)) => match parts.as_slice() {
            [Value::String(name)] => Ok(Watched { kind: kind("watches", name)?, map: None }),
            _ => Err(wrong()),
        },
        Argument::Absent
        | Argument::Value(_)
        | Argument::Callback(_)
        | Argument::Marker(_)
        | Argument::Map(_) => Err(wrong()),
    }
}

/// Reads a kind: one resource, not all of them.
fn kind(option: &str, text: &str) -> Result<Named, DeclareError> {
    let selector = Selector::of_text(text)?;
    if !selector.is_specific() {
        let hint = "name one resource, such as \"deployments\" or \"apps/v1/deployments\"";
        let message = format!("`{option}` needs a kind, not {text:?}");
        return Err(DeclareError::new(message, hint));
    }
    Ok(Named { text: text.to_owned(), selector })
}
