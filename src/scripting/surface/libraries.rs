//! The sections of the libraries, from their table.

use super::{Item, ItemShape, Parameter, Section, Signature, Spoken, Ty, types::COMBINING};
use crate::scripting::functions::{self, LIBRARIES, types::Body};

/// Returns a section for each library.
pub(super) fn sections() -> Vec<Section> {
    let section = |it: &functions::types::Library| Section {
        name: it.name,
        doc: it.doc,
        items: it.functions.iter().map(item).collect(),
        others: None,
        parent: None,
    };
    LIBRARIES.iter().map(section).collect()
}

fn item(function: &functions::types::Function) -> Item {
    let all = |it: &[functions::types::Parameter]| it.iter().map(parameter).collect();
    let signature = Signature {
        parameters: all(function.parameters),
        options: all(function.options),
        returns: Some(match function.body {
            Body::Immediate(_) | Body::Waiting(_) | Body::Script | Body::Faking(_) => {
                function.returns.into()
            }
            Body::Streaming(_) => Ty::Iterator,
        }),
        ..Signature::default()
    };
    Item {
        name: function.name,
        doc: function.doc,
        shape: ItemShape::Function(signature),
        spoken: Spoken::Both,
    }
}

fn parameter(it: &functions::types::Parameter) -> Parameter {
    // The only function with two arguments.
    let ty = if it.name == "combine" { Ty::Function(&COMBINING) } else { it.kind.into() };
    Parameter { name: it.name, ty, required: it.required, doc: it.doc }
}
