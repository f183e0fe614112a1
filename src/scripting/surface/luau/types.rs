//! Types in the syntax of Luau: of values that scripts receive, of arguments, and of options, which are fields of arguments.

use crate::scripting::surface::{Callback, Ty, ctx_class};

/// Any table. A type with certain keys would reject tables that a script has created before the call.
const ANY_TABLE: &str = "{}";

/// Returns the name of a class: `KopfLogger`, `KopfSettingsPosting`.
pub(in crate::scripting::surface) fn class_name(name: &str) -> String {
    if name.starts_with(|it: char| it.is_ascii_lowercase()) {
        format!("KopfSettings{}", capital(name))
    } else {
        format!("Kopf{name}")
    }
}

/// Returns the name of a handler type: `KopfChangeHandler`, for functions of a `ChangeCtx`.
pub(super) fn handler_name(ctx: &str) -> String {
    format!("{}Handler", class_name(ctx.strip_suffix("Ctx").unwrap_or(ctx)))
}

/// Returns the name of the options of a function: `KopfOnCreateOptions` of `kopf.on_create`, `KopfKubeGetOptions` of `kube.get`.
pub(super) fn options_name(path: &[&str]) -> String {
    let words = path.iter().filter(|it| **it != "kopf").flat_map(|it| it.split(['_', '.']));
    format!("Kopf{}Options", words.map(capital).collect::<String>())
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns an optional type.
pub(super) fn optional(ty: &str) -> String {
    format!("{}?", grouped(ty))
}

/// Returns the type of a value that scripts receive.
pub(super) fn given(ty: Ty) -> String {
    match ty {
        Ty::Any | Ty::Maybe(Ty::Any) => "any".into(),
        Ty::Nothing => "nil".into(),
        Ty::Boolean => "boolean".into(),
        Ty::Text => "string".into(),
        Ty::Words(words) => {
            words.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(" | ")
        }
        Ty::Integer | Ty::Number => "number".into(),
        Ty::Duration => "KopfDuration".into(),
        Ty::Map => "{ [string]: any }".into(),
        Ty::List => "{ any }".into(),
        // Luau's old solver rejects a table of literals where a table of words is expected.
        Ty::ListOf(Ty::Words(_)) => "{ string }".into(),
        Ty::ListOf(item) => format!("{{ {} }}", given(*item)),
        Ty::Object => "KopfObject".into(),
        Ty::Class(name) => class_name(name),
        Ty::Iterator => "() -> any".into(),
        Ty::Maybe(inner) => optional(&given(*inner)),
        Ty::Either(all) => {
            all.iter().map(|it| grouped(&given(*it))).collect::<Vec<_>>().join(" | ")
        }
        Ty::Function(callback) => function(callback),
        Ty::Handler(kind) => handler_name(ctx_class(kind.category())),
    }
}

/// Returns the type of a result.
pub(super) fn returned(ty: Ty) -> String {
    if matches!(ty, Ty::Nothing) {
        "()".to_owned()
    } else if matches!(ty, Ty::Class("Error")) {
        // Luau's checker rejects a class as an argument of error functions: `pcall(error, problem)`.
        "any".to_owned()
    } else {
        given(ty)
    }
}

/// Returns the type of a positional argument.
pub(super) fn taken(ty: Ty) -> String {
    match ty {
        Ty::Map | Ty::Object => ANY_TABLE.to_owned(),
        Ty::Maybe(inner) => optional(&taken(*inner)),
        Ty::Either(all) => {
            let mut parts: Vec<String> = all.iter().map(|it| grouped(&taken(*it))).collect();
            if parts.iter().any(|it| it == ANY_TABLE) {
                // A list is a table, too.
                parts.retain(|it| it == ANY_TABLE || !it.starts_with('{'));
            }
            parts.dedup();
            parts.join(" | ")
        }
        Ty::Any
        | Ty::Nothing
        | Ty::Boolean
        | Ty::Text
        | Ty::Words(_)
        | Ty::Integer
        | Ty::Number
        | Ty::Duration
        | Ty::List
        | Ty::ListOf(_)
        | Ty::Class(_)
        | Ty::Iterator
        | Ty::Function(_)
        | Ty::Handler(_) => given(ty),
    }
}

/// Returns the type of an option. The fields of tables are compared exactly, so no table type matches a table that a script has
/// created before the call: such options have the type `any`.
pub(super) fn option(ty: Ty) -> String {
    let text = taken(ty);
    if text.contains(ANY_TABLE) { "any".to_owned() } else { grouped(&text) }
}

/// Returns a type that can be followed by a question mark or be part of a union.
fn grouped(text: &str) -> String {
    let is_long = text.contains(" | ") || text.contains(" & ") || text.contains("->");
    let is_enclosed = text.starts_with('{') && text.ends_with('}');
    if is_long && !is_enclosed { format!("({text})") } else { text.to_owned() }
}

fn function(callback: &Callback) -> String {
    let parameters = callback.parameters.iter().map(|(name, ty)| format!("{name}: {}", given(*ty)));
    let parameters: Vec<_> = parameters.collect();
    // A function that can return anything can also return nothing, which is not a value.
    let gives_anything = matches!(callback.returns, Ty::Any);
    let returns = if gives_anything { "...any".to_owned() } else { returned(callback.returns) };
    let text = format!("({}) -> {returns}", parameters.join(", "));
    let of_ctx = callback
        .parameters
        .iter()
        .any(|(_, ty)| matches!(ty, Ty::Class(name) if name.ends_with("Ctx")));
    if of_ctx { format!("({text}) | KopfFunction") } else { text }
}
