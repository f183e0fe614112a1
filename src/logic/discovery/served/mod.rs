//! Chooses which of the cluster's resources are served, and reports which selectors cannot be.

use std::collections::BTreeSet;

use super::inventory::CrdName;
use crate::logic::{
    change::registry::{Registry, ResourceHandlers},
    handlers::{
        handler::{Category, Handler},
        selector::{AnyName, Picks, Selector},
    },
    object::resource::Resource,
    text::{listed::listed, nearest::nearest},
};

/// Maximum number of selectors to list in a warning: the nearest name of each is determined.
const LISTED_MAX: usize = 20;

/// The choice, with warnings for the user.
#[derive(Debug, Default)]
pub struct ServedResources {
    /// The resources to watch.
    pub resources: BTreeSet<Resource>,
    /// The resources that cannot be watched, and why.
    pub warnings: Vec<String>,
    /// The selectors that match a resource.
    pub resolved: Vec<Selector>,
    /// The selectors that match none.
    pub unresolved: Vec<Selector>,
}

/// The gaps in discovery: resources may exist that it does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// The API groups that do not respond.
    pub failed: BTreeSet<String>,
    /// The CRDs whose kinds discovery does not show yet.
    pub unshown: Vec<CrdName>,
}

/// Chooses the resources that the handlers select.
pub fn choose(registry: &Registry, known: &[Resource], picks: Picks<'_>) -> ServedResources {
    let handlers = registry.handlers();
    let watching = |it: &&Handler| {
        let unwatched = [Category::Activity, Category::Admission, Category::Conversion];
        !unwatched.contains(&it.kind.category())
    };
    let wishes = handlers.iter().map(|it| &**it).filter(watching).collect::<Vec<_>>();
    let mut known_selectors = BTreeSet::new();
    let selectors = wishes.iter().filter_map(|it| it.selector.as_ref());
    let selectors: Vec<_> = selectors.filter(|it| known_selectors.insert(*it)).collect();
    let mut served = ServedResources::default();
    for selector in &selectors {
        served.resources.extend(selector.select(known, picks).into_iter().cloned());
    }
    served.drop_ambiguous(&selectors, known, picks);
    served.name_unresolved(&selectors, known, picks);
    served.drop_unusable(&wishes, picks);
    served
}

/// Returns why selectors without a resource should have one: they had one before, or discovery is incomplete. A selector that has
/// never had one in a completely known cluster is no problem: its kind may be created later.
pub fn problem(
    unresolved: &[Selector],
    resolved_before: &[Selector],
    unknown: &Unknown,
) -> Option<String> {
    let is_of = |it: &Selector, group: &str| it.group.as_deref().is_none_or(|it| it == group);
    let mut reasons = Vec::new();
    for selector in unresolved {
        let failed = unknown.failed.iter().find(|group| is_of(selector, group));
        let unshown = unknown.unshown.iter().find(|(group, plural)| {
            is_of(selector, group)
                && (selector.plural.as_ref() == Some(plural)
                    || matches!(&selector.any_name, Some(AnyName::Named(it)) if it == plural))
        });
        if let Some((group, plural)) = unshown {
            reasons
                .push(format!("the CRD {plural}.{group} exists, but discovery does not show it"));
        } else if let Some(group) = failed {
            reasons.push(format!(
                "{selector} has no resource, and the API group '{group}' does not respond"
            ));
        } else if resolved_before.contains(selector) {
            reasons.push(format!("{selector} no longer has any resource"));
        }
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns the handlers of a resource: those that select it among all known resources.
///
/// If handlers select `pods`, the pods of a metrics API are only for the handlers that name its group.
pub fn handlers(
    registry: &Registry,
    resource: &Resource,
    known: &[Resource],
    picks: Picks<'_>,
) -> ResourceHandlers {
    let means = |it: &Selector| it.means(resource, known, picks);
    let handlers = registry.handlers().iter();
    let handlers = handlers.filter(|it| it.selector.as_ref().is_some_and(means)).cloned();
    ResourceHandlers::among(&handlers.collect::<Vec<_>>(), resource, picks)
}

/// Returns whether the function of a selector must be called for a resource: nothing else in the selector excludes it.
pub fn may_select(selector: &Selector, resource: &Resource) -> bool {
    selector.check(resource, &|_, _| true)
}

impl ServedResources {
    fn drop_ambiguous(&mut self, selectors: &[&Selector], known: &[Resource], picks: Picks<'_>) {
        for selector in selectors.iter().filter(|it| it.is_specific()) {
            let matching = selector.select(known, picks);
            if matching.len() > 1 {
                let names = names(matching.iter().copied());
                self.warnings.push(format!(
                    "Ambiguous resources will not be served (try specifying API groups): {selector} => {names}"
                ));
                self.resources.retain(|it| !matching.contains(&it));
            }
        }
    }

    fn name_unresolved(&mut self, selectors: &[&Selector], known: &[Resource], picks: Picks<'_>) {
        let is_resolved =
            |it: &&&Selector| self.resources.iter().any(|resource| it.check(resource, picks));
        let (resolved, unresolved) = selectors.iter().partition::<Vec<&Selector>, _>(is_resolved);
        let text = |it: &&Selector| match suggestion(it, known) {
            Some(name) => format!("{} (did you mean {name}?)", it.described()),
            None => it.described(),
        };
        if !unresolved.is_empty() {
            let list = listed(unresolved.iter().map(text), LISTED_MAX);
            self.warnings.push(format!(
                "The cluster has no resource for {list}: these handlers are not called until it has. Apply the CRD, or correct the name."
            ));
        }
        self.resolved = resolved.into_iter().cloned().collect();
        self.unresolved = unresolved.into_iter().cloned().collect();
    }

    fn drop_unusable(&mut self, wishes: &[&Handler], picks: Picks<'_>) {
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
            lacks(it, "patch") && patching.iter().any(|selector| selector.check(it, picks))
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

/// Returns the most similar resource for a name that does not exist.
fn suggestion(selector: &Selector, known: &[Resource]) -> Option<String> {
    let Some(AnyName::Named(name)) = &selector.any_name else { return None };
    let plurals = known.iter().map(|it| it.plural.as_str());
    nearest(name, plurals).filter(|it| it != name).map(|it| format!("'{it}'"))
}

fn names<'a>(resources: impl Iterator<Item = &'a Resource>) -> String {
    format!("{{{}}}", resources.map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
