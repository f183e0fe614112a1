//! Finds entries by the name that a user enters: `kopf.on_create`, `on_create`, `kube.get`, `ctx.spec`, `logger.info`,
//! `settings.posting.level`.

use super::{Item, ItemShape, Section, Surface};
use crate::logic::text::nearest::nearest;

/// An entry with documentation.
#[derive(Debug)]
pub enum Documented<'a> {
    /// A global or a class.
    Section(&'a Section),
    /// An item of a global or a class, with its path.
    Item(String, &'a Item),
}

impl Surface {
    /// Returns the section with this name, otherwise the items with this path, otherwise all items with this name. Ignores case.
    pub fn find(&self, wanted: &str) -> Vec<Documented<'_>> {
        let wanted = wanted.replace("::", ".").replace(':', ".").to_lowercase();
        let sections = self.sections().filter(|it| spoken(it).contains(&wanted));
        let mut found: Vec<_> = sections.map(Documented::Section).collect();
        if found.is_empty() {
            let all = self.items();
            let by_path = all.iter().filter(|(path, _)| path.to_lowercase() == wanted);
            found = by_path.map(|(path, it)| Documented::Item(path.clone(), it)).collect();
        }
        if found.is_empty() && !wanted.contains('.') {
            let all = self.items();
            let by_name = all.iter().filter(|(_, it)| it.name.to_lowercase() == wanted);
            found = by_name.map(|(path, it)| Documented::Item(path.clone(), it)).collect();
        }
        found
    }

    /// Returns the known name that is nearest to an unknown one.
    pub fn nearest(&self, unknown: &str) -> Option<String> {
        let unknown = unknown.replace("::", ".").replace(':', ".");
        let sections = self.sections().flat_map(spoken);
        let paths: Vec<String> =
            sections.chain(self.items().into_iter().map(|(path, _)| path)).collect();
        if unknown.contains('.') {
            return nearest(&unknown, paths.iter().map(String::as_str)).map(str::to_owned);
        }
        let bare = |path: &str| path.rsplit_once('.').map_or(path, |(_, name)| name).to_owned();
        let names: Vec<String> = paths.iter().map(|it| bare(it)).collect();
        let near = nearest(&unknown, names.iter().map(String::as_str))?;
        paths.iter().zip(&names).find(|(_, name)| *name == near).map(|(path, _)| path.clone())
    }

    /// Returns all names with their paths: `kopf.on.create`, `ctx.spec`, `logger.info`, `settings.posting.level`.
    pub fn items(&self) -> Vec<(String, &Item)> {
        let mut items = Vec::new();
        for section in self.sections() {
            for prefix in spoken(section) {
                put(&mut items, &prefix, &section.items);
            }
        }
        items
    }
}

fn put<'a>(items: &mut Vec<(String, &'a Item)>, prefix: &str, more: &'a [Item]) {
    for item in more {
        let path = format!("{prefix}.{}", item.name);
        if let ItemShape::Table(inner) = &item.shape {
            put(items, &path, inner);
        }
        items.push((path, item));
    }
}

/// Returns the names that users have for a section: a class is named after the value in scripts.
fn spoken(section: &Section) -> Vec<String> {
    let name = section.name;
    if name.ends_with("Ctx") {
        return vec!["ctx".to_owned()];
    }
    if name.starts_with(|it: char| it.is_ascii_uppercase()) {
        return vec![name.to_lowercase()];
    }
    if section.doc == super::settings::GROUP {
        return vec![format!("settings.{name}")];
    }
    vec![name.to_owned()]
}
