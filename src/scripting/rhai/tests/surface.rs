//! Scripts can use everything that the surface documents.

use super::refusal;
use crate::scripting::surface::{Item, ItemShape, Language, Spoken, Surface};

fn items<'a>(surface: &'a Surface, global: &str) -> impl Iterator<Item = &'a Item> {
    let section = surface.globals.iter().find(|it| it.name == global).expect("a global");
    section
        .items
        .iter()
        .filter(|it| it.spoken.in_language(Language::Rhai) || it.spoken == Spoken::Later)
}

#[tokio::test]
async fn every_function_takes_as_many_arguments_as_are_documented() {
    let surface = Surface::new();
    for global in &surface.globals {
        for item in items(&surface, global.name) {
            let Some(signature) = item.signature() else { continue };
            let least = signature.parameters.iter().filter(|it| it.required).count();
            for count in [least, signature.parameters.len()] {
                let arguments = vec!["()"; count].join(", ");
                let path = format!("{}::{}", global.name, item.name);
                let problem =
                    refusal(&format!("{path}({arguments}); throw \"fine\"")).await.message;
                let is_known =
                    !problem.contains("number of arguments") && !problem.contains("there is no");
                assert!(is_known, "{path} with {count} arguments: {problem}");
            }
        }
    }
}

#[tokio::test]
async fn every_value_and_every_table_is_there() {
    let surface = Surface::new();
    for item in items(&surface, "kopf") {
        let names: Vec<String> = match &item.shape {
            ItemShape::Value(_) => vec![format!("kopf::{0} kopf.{0}", item.name)],
            ItemShape::Table(inner) => inner
                .iter()
                .filter(|it| matches!(it.shape, ItemShape::Value(_)))
                .map(|it| format!("kopf::{0}::{1} kopf.{0}.{1}", item.name, it.name))
                .collect(),
            ItemShape::Function(_) | ItemShape::Method(_) => Vec::new(),
        };
        for path in names.iter().flat_map(|it| it.split(' ')) {
            let problem = refusal(&format!("let it = {path}; throw \"fine\"")).await.message;
            assert!(problem.contains("fine"), "{path}: {problem}");
        }
    }
}
