//! Which of the cluster's resources are served, and which wishes cannot be.

use std::collections::BTreeSet;

use super::{
    handler::{Category, Handler},
    nearest::nearest,
    registry::Registry,
    resource::Resource,
    selector::{AnyName, Picks, Selector},
};

/// Functions that choose resources are refused when scripts are loaded, so there is none to ask.
pub const NO_FUNCTIONS: Picks<'static> = &|_, _| false;

/// The choice, with warnings for the user.
#[derive(Debug, Default)]
pub struct Served {
    /// What to watch.
    pub resources: BTreeSet<Resource>,
    /// What cannot be watched, and why.
    pub warnings: Vec<String>,
}

/// Chooses what the handlers want from what there is.
pub fn choose(registry: &Registry, known: &[Resource]) -> Served {
    let handlers = registry.handlers();
    let watching = |it: &&Handler| {
        let category = it.kind.category();
        category != Category::Activity && category != Category::Admission
    };
    let wishes = handlers.iter().map(|it| &**it).filter(watching).collect::<Vec<_>>();
    let mut selectors = Vec::<&Selector>::new();
    for selector in wishes.iter().filter_map(|it| it.selector.as_ref()) {
        if !selectors.contains(&selector) {
            selectors.push(selector);
        }
    }
    let mut served = Served::default();
    for selector in &selectors {
        served.resources.extend(selector.select(known, NO_FUNCTIONS).into_iter().cloned());
    }
    served.drop_ambiguous(&selectors, known);
    served.name_unresolved(&selectors, known);
    served.drop_unusable(&wishes);
    served
}

impl Served {
    fn drop_ambiguous(&mut self, selectors: &[&Selector], known: &[Resource]) {
        for selector in selectors.iter().filter(|it| it.is_specific()) {
            let matching = selector.select(known, NO_FUNCTIONS);
            if matching.len() > 1 {
                let names = names(matching.iter().copied());
                self.warnings.push(format!(
                    "Ambiguous resources will not be served (try specifying API groups): {selector} => {names}"
                ));
                self.resources.retain(|it| !matching.contains(&it));
            }
        }
    }

    fn name_unresolved(&mut self, selectors: &[&Selector], known: &[Resource]) {
        let is_unresolved = |it: &&&Selector| {
            !self.resources.iter().any(|resource| it.check(resource, NO_FUNCTIONS))
        };
        let text = |it: &&Selector| match meant(it, known) {
            Some(name) => format!("{it} (did you mean {name}?)"),
            None => it.to_string(),
        };
        let unresolved = selectors.iter().filter(is_unresolved).map(text).collect::<Vec<_>>();
        if !unresolved.is_empty() {
            let list = unresolved.join(", ");
            self.warnings.push(format!(
                "Unresolved resources cannot be served (try creating their CRDs): {list}"
            ));
        }
    }

    fn drop_unusable(&mut self, wishes: &[&Handler]) {
        let lacks = |it: &Resource, verb: &str| !it.verbs.contains(verb);
        let unwatchable = |it: &Resource| lacks(it, "watch") || lacks(it, "list");
        self.drop_if("Non-watchable", unwatchable);
        let patching =
            |it: &&&Handler| matches!(it.kind.category(), Category::Changing | Category::Spawning);
        let patching = wishes
            .iter()
            .filter(patching)
            .filter_map(|it| it.selector.as_ref())
            .collect::<Vec<_>>();
        self.drop_if("Non-patchable", |it| {
            lacks(it, "patch") && patching.iter().any(|selector| selector.check(it, NO_FUNCTIONS))
        });
    }

    fn drop_if(&mut self, what: &str, is_bad: impl Fn(&Resource) -> bool) {
        let bad = self.resources.iter().filter(|it| is_bad(it)).collect::<Vec<_>>();
        if !bad.is_empty() {
            self.warnings
                .push(format!("{what} resources will not be served: {}", names(bad.into_iter())));
            self.resources.retain(|it| !is_bad(it));
        }
    }
}

/// The resource that was probably meant by a name that is none.
fn meant(selector: &Selector, known: &[Resource]) -> Option<String> {
    let Some(AnyName::Named(name)) = &selector.any_name else { return None };
    let plurals = known.iter().map(|it| it.plural.as_str());
    nearest(name, plurals).filter(|it| it != name).map(|it| format!("'{it}'"))
}

fn names<'a>(resources: impl Iterator<Item = &'a Resource>) -> String {
    format!("{{{}}}", resources.map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
