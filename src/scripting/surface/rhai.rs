//! The surface as definitions of Rhai, in the form that Rhai itself writes.

use super::{Item, Language, Section, Shape, Signature, Surface, Ty};

const HEADER: &str = "\
module static;

// What Rhai scripts of kopf can use, for editors: made by `kopf stubs rhai`, not to be edited.
// Every name is there in both spellings, `kopf::on_create(…)` and `kopf.on_create(…)`.
";

/// The most positional texts of a selector.
const SELECTORS_MAX: usize = 3;

/// The definitions.
pub fn stubs(surface: &Surface) -> String {
    let mut text = HEADER.to_owned();
    for class in &surface.classes {
        of_class(&mut text, class);
    }
    for global in &surface.globals {
        of_module(&mut text, (global.name, global.doc), &global.items, 0);
    }
    text
}

fn put(text: &mut String, indent: usize, line: &str) {
    text.push_str(&"    ".repeat(indent));
    text.push_str(line);
    text.push('\n');
}

fn comment(text: &mut String, indent: usize, doc: &str) {
    for line in doc.lines() {
        put(text, indent, &format!("/// {line}"));
    }
}

/// The name of a class: `Logger`, `SettingsPosting`. The argument of all handlers is one type.
fn class_name(name: &str) -> String {
    if name.ends_with("Ctx") {
        return "Ctx".to_owned();
    }
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if first.is_ascii_lowercase() => {
            format!("Settings{}{}", first.to_ascii_uppercase(), letters.as_str())
        }
        Some(_) | None => name.to_owned(),
    }
}

fn of_class(text: &mut String, class: &Section) {
    let own = class_name(class.name);
    for item in class.items.iter().filter(|it| it.spoken.in_language(Language::Rhai)) {
        match &item.shape {
            Shape::Value(ty) => {
                text.push('\n');
                comment(text, 0, item.doc);
                put(text, 0, &format!("fn get {}(_: {own}) -> {};", item.name, of(*ty)));
            }
            Shape::Function(signature) | Shape::Method(signature) => {
                functions(text, 0, item, signature, Some(&own));
            }
            Shape::Table(_) => {}
        }
    }
}

fn of_module(text: &mut String, (name, doc): (&str, &str), items: &[Item], indent: usize) {
    text.push('\n');
    comment(text, indent, doc);
    put(text, indent, &format!("module {name} {{"));
    for item in items.iter().filter(|it| it.spoken.in_language(Language::Rhai)) {
        match &item.shape {
            Shape::Value(ty) => {
                text.push('\n');
                comment(text, indent + 1, item.doc);
                put(text, indent + 1, &format!("const {}: {};", item.name, of(*ty)));
            }
            Shape::Table(items) => of_module(text, (item.name, item.doc), items, indent + 1),
            Shape::Function(signature) | Shape::Method(signature) => {
                functions(text, indent + 1, item, signature, None);
            }
        }
    }
    put(text, indent, "}");
}

/// Rhai tells functions apart by the number of their arguments: one definition for each.
fn functions(
    text: &mut String,
    indent: usize,
    item: &Item,
    signature: &Signature,
    receiver: Option<&str>,
) {
    let returns = signature.returns.map_or_else(|| "()".to_owned(), of);
    for parameters in forms(signature) {
        text.push('\n');
        comment(text, indent, item.doc);
        let receiver = receiver.map(|it| format!("_: {it}"));
        let all: Vec<_> = receiver.into_iter().chain(parameters).collect();
        put(text, indent, &format!("fn {}({}) -> {returns};", item.name, all.join(", ")));
    }
}

/// The lists of parameters, the shortest first.
fn forms(signature: &Signature) -> Vec<Vec<String>> {
    let parameter = |it: &super::Parameter| format!("{}: {}", named(it.name), of(it.ty));
    let options = (!signature.options.is_empty()).then(|| "options: Map".to_owned());
    let mut forms: Vec<Vec<String>> = Vec::new();
    if signature.handler.is_some() {
        let handler = || Some("handler: FnPtr".to_owned());
        let counts = if signature.selects { 1..=SELECTORS_MAX } else { 0..=0 };
        for count in counts {
            let selectors = || match count {
                1 => vec!["selector: ?".to_owned()],
                2 => vec!["group: String".to_owned(), "resource: String".to_owned()],
                _ if count == 0 => signature.parameters.iter().map(parameter).collect(),
                _ => ["group", "version", "resource"].map(|it| format!("{it}: String")).to_vec(),
            };
            forms.push(selectors().into_iter().chain(handler()).collect());
            forms.push(selectors().into_iter().chain(options.clone()).chain(handler()).collect());
        }
        return forms;
    }
    let required = signature.parameters.iter().filter(|it| it.required).count();
    for count in required..=signature.parameters.len() {
        let placed: Vec<_> = signature.parameters.iter().take(count).map(parameter).collect();
        let more = options.clone().into_iter().chain(signature.rest.iter().map(parameter));
        forms.push(placed.clone());
        forms.extend(more.map(|it| placed.iter().cloned().chain([it]).collect()));
    }
    forms.sort_by_key(Vec::len);
    forms.dedup();
    forms
}

/// A name that Rhai does not reserve.
fn named(name: &str) -> String {
    const RESERVED: &[&str] =
        &["default", "new", "function", "type", "value", "is", "in", "fn", "match", "with"];
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A type in the words of Rhai; `?` is any.
fn of(ty: Ty) -> String {
    match ty {
        Ty::Any | Ty::Maybe(_) | Ty::Either(_) | Ty::Duration | Ty::Iterator => "?".into(),
        Ty::Nothing => "()".into(),
        Ty::Boolean => "bool".into(),
        Ty::Text | Ty::Words(_) => "String".into(),
        Ty::Integer => "int".into(),
        Ty::Number => "float".into(),
        Ty::Map | Ty::Object => "Map".into(),
        Ty::List | Ty::ListOf(_) => "Array".into(),
        Ty::Class(name) => class_name(name),
        Ty::Function(_) | Ty::Handler(_) => "FnPtr".into(),
    }
}
