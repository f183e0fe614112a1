//! Types in the words of Luau: of what scripts get, of what they pass, and of options, which are fields of what they pass.

use crate::scripting::surface::{Callback, Ty, ctx_class};

/// Any table. The type of tables with certain keys would refuse tables that a script has made before it passes them.
const ANY_TABLE: &str = "{}";

/// `KopfLogger`, `KopfSettingsPosting`
pub(in crate::scripting::surface) fn class_name(name: &str) -> String {
    if name.starts_with(|it: char| it.is_ascii_lowercase()) {
        format!("KopfSettings{}", capital(name))
    } else {
        format!("Kopf{name}")
    }
}

/// `KopfChangeHandler`, for functions of a `ChangeCtx`.
pub(super) fn handler_name(ctx: &str) -> String {
    format!("{}Handler", class_name(ctx.strip_suffix("Ctx").unwrap_or(ctx)))
}

/// `KopfOnCreateOptions`, `KopfKubeGetOptions`: the function `kopf.on_create`, `kube.get`.
pub(super) fn options_name(path: &[&str]) -> String {
    let words = path.iter().filter(|it| **it != "kopf").flat_map(|it| it.split(['_', '.']));
    format!("Kopf{}Options", words.map(capital).collect::<String>())
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A type, or nothing.
pub(super) fn optional(ty: &str) -> String {
    format!("{}?", grouped(ty))
}

/// What scripts get.
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

/// What a function gives.
pub(super) fn returned(ty: Ty) -> String {
    if matches!(ty, Ty::Nothing) {
        "()".to_owned()
    } else if matches!(ty, Ty::Class("Error")) {
        // The checker knows no function of errors that takes a type of its own: `pcall(error, problem)`.
        "any".to_owned()
    } else {
        given(ty)
    }
}

/// What scripts pass by place.
pub(super) fn taken(ty: Ty) -> String {
    match ty {
        Ty::Map | Ty::Object => ANY_TABLE.to_owned(),
        Ty::Maybe(inner) => optional(&taken(*inner)),
        Ty::Either(all) => {
            let mut parts: Vec<String> = all.iter().map(|it| grouped(&taken(*it))).collect();
            if parts.iter().any(|it| it == ANY_TABLE) {
                // A list is a table too.
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

/// What scripts pass as an option. The fields of tables are compared exactly, so that no table type fits a table that a script
/// has made before: such options may be anything.
pub(super) fn option(ty: Ty) -> String {
    let text = taken(ty);
    if text.contains(ANY_TABLE) { "any".to_owned() } else { grouped(&text) }
}

/// A type that can stand before a question mark or beside others.
fn grouped(text: &str) -> String {
    let is_long = text.contains(" | ") || text.contains(" & ") || text.contains("->");
    let is_enclosed = text.starts_with('{') && text.ends_with('}');
    if is_long && !is_enclosed { format!("({text})") } else { text.to_owned() }
}

fn function(callback: &Callback) -> String {
    let parameters = callback.parameters.iter().map(|(name, ty)| format!("{name}: {}", given(*ty)));
    let parameters: Vec<_> = parameters.collect();
    // A function that may give anything may also give nothing, which is no value.
    let gives_anything = matches!(callback.returns, Ty::Any);
    let returns = if gives_anything { "...any".to_owned() } else { returned(callback.returns) };
    let text = format!("({}) -> {returns}", parameters.join(", "));
    let of_ctx = callback
        .parameters
        .iter()
        .any(|(_, ty)| matches!(ty, Ty::Class(name) if name.ends_with("Ctx")));
    if of_ctx { format!("({text}) | KopfFunction") } else { text }
}
