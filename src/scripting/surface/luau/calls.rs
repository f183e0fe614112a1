//! The types of functions in Luau: one type for all forms of a call.

use super::{Item, Parameter, RESERVED, Signature, Ty, types};
use crate::logic::handlers::handler::Kind;
use crate::scripting::surface::ctx_class;

/// Returns the type of a function that declares no handler. Options can take the position of omitted parameters.
pub(super) fn function(
    path: &str,
    item: &Item,
    signature: &Signature,
    receiver: Option<&str>,
) -> String {
    let has_function = signature.parameters.iter().any(|it| matches!(it.ty, Ty::Function(_)));
    if has_function && signature.rest.is_some() {
        // It calls the function with the rest, and returns what the function returns.
        return "(function_: (...any) -> ...any, ...any) -> ...any".to_owned();
    }
    let mut parameters: Vec<String> =
        receiver.map(|it| format!("self: {it}")).into_iter().collect();
    let (required, optional): (Vec<&Parameter>, Vec<&Parameter>) =
        signature.parameters.iter().partition(|it| it.required);
    let taken = |it: &Parameter| types::taken(it.ty);
    parameters.extend(required.into_iter().map(|it| format!("{}: {}", named(it.name), taken(it))));
    if signature.options.is_empty() {
        let left_out =
            |it: &Parameter| format!("{}: {}", named(it.name), types::optional(&taken(it)));
        parameters.extend(optional.into_iter().map(left_out));
    } else {
        let options = types::options_name(&[path, item.name]);
        if signature.options.iter().any(|it| it.required) {
            parameters.push(format!("options: {options}"));
        } else {
            // Variadic, because the new solver requires all parameters of a function that is passed to `pcall`.
            let mut rest: Vec<String> = optional.into_iter().map(taken).collect();
            rest.push(options);
            rest.dedup();
            parameters.push(format!("...{}", types::optional(&rest.join(" | "))));
        }
    }
    parameters.extend(signature.rest.iter().map(|it| format!("...{}", types::taken(it.ty))));
    let returns = signature.returns.map_or_else(|| "()".to_owned(), types::returned);
    // Members of classes cannot have this attribute.
    let checked = if receiver.is_none() && is_plain(signature) { "@checked " } else { "" };
    format!("{checked}({}) -> {returns}", parameters.join(", "))
}

/// Returns whether the new solver can check its calls without `--!strict`: it does not check tables and functions then, and fails
/// if the attribute requests it.
fn is_plain(signature: &Signature) -> bool {
    let plain = |it: &Parameter| match it.ty {
        Ty::Text | Ty::Integer | Ty::Number | Ty::Boolean | Ty::Duration => true,
        Ty::Any
        | Ty::Nothing
        | Ty::Words(_)
        | Ty::Map
        | Ty::List
        | Ty::ListOf(_)
        | Ty::Object
        | Ty::Class(_)
        | Ty::Iterator
        | Ty::Maybe(_)
        | Ty::Either(_)
        | Ty::Function(_)
        | Ty::Handler(_) => false,
    };
    let parameters = &signature.parameters;
    signature.options.is_empty()
        && signature.rest.is_none()
        && !parameters.is_empty()
        && parameters.iter().all(plain)
}

/// Returns the type of a declaring function: up to three strings or equivalent selectors, optional options, the handler function.
pub(super) fn declaring(signature: &Signature, kind: Kind) -> String {
    let handler = types::handler_name(ctx_class(kind.category()));
    let options = types::options_name(&["kopf", kind.declared_by()]);
    let mut parameters: Vec<String> = signature
        .parameters
        .iter()
        .map(|it| format!("{}: {}", named(it.name), types::taken(it.ty)))
        .collect();
    if signature.selects {
        parameters.push(format!("selector: KopfSelector | {options}"));
        parameters.push(format!("options: string | KopfMarker | {options} | {handler}"));
        parameters.push(format!("handler: (string | KopfMarker | {options} | {handler})?"));
        parameters.push(format!("({options} | {handler})?"));
        parameters.push(format!("({handler})?"));
    } else {
        parameters.push(format!("options: {options} | {handler}"));
        parameters.push(format!("handler: ({handler})?"));
    }
    format!("({}) -> ()", parameters.join(", "))
}

/// Returns the name of a parameter.
fn named(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}
