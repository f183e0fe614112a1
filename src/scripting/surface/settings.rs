//! The settings as fields of `ctx.settings`, from their table.

use super::{Item, ItemShape, Section, Spoken, Ty};
use crate::logic::{
    configure::{self, TABLE},
    text::{duration, size},
};

/// The documentation of a group, which marks it as one.
pub(super) const GROUP: &str = "A group of settings.";

/// Returns the section of the settings, and a class for each group.
pub(super) fn sections() -> Vec<Section> {
    let groups: Vec<&'static str> = configure::groups().collect();
    let group = |name: &'static str| item(name, Ty::Class(name), GROUP);
    let all = Section {
        name: "Settings",
        doc: "The settings of the operator, by group. A startup handler can change them, except the limits of scripts.",
        items: groups.iter().map(|it| group(it)).collect(),
        others: None,
        parent: None,
    };
    let sections = groups.iter().map(|group| Section {
        name: group,
        doc: GROUP,
        items: TABLE
            .iter()
            .filter(|it| it.group == *group)
            .map(|it| item(it.name, of(it.takes), it.doc))
            .collect(),
        others: None,
        parent: None,
    });
    [all].into_iter().chain(sections).collect()
}

fn item(name: &'static str, ty: Ty, doc: &'static str) -> Item {
    Item { name, doc, shape: ItemShape::Value(ty), spoken: Spoken::Both }
}

/// Returns the type of a setting, from the description in its table.
fn of(takes: &str) -> Ty {
    match takes {
        "true or false" => Ty::Boolean,
        "a string" => Ty::Maybe(&Ty::Text),
        "an integer" | "a non-negative integer" | "a positive integer" => Ty::Maybe(&Ty::Integer),
        duration::EXPECTED => Ty::Maybe(&Ty::Duration),
        size::EXPECTED => Ty::Either(&[Ty::Integer, Ty::Text]),
        "a map from resource selectors to strings" => Ty::Map,
        _ => Ty::Any,
    }
}
