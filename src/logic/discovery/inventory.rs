//! The resources of the cluster by API group: those that discovery shows, and those that it has shown before and should show again.
//!
//! API servers compute discovery in the background, so it lags behind after a restart and misses groups for some seconds. CRDs are
//! stored objects, which are listed and watched like any others. So a kind whose CRD exists is never gone, and a kind that
//! discovery no longer shows is doubtful until several reads in a row have not shown it.

use std::collections::{BTreeMap, BTreeSet};

use crate::logic::object::resource::Resource;

/// The API group and the plural name of a kind, which also name its CRD.
pub type CrdName = (String, String);

/// A kind without a CRD is gone when this many consecutive reads of discovery have not shown it.
const ABSENCES_MAX: u32 = 5;

/// If discovery still shows a kind after this many reads, it is kept although its CRD is gone: another server provides it.
const READS_MAX: u32 = 6;

/// The verbs that CRDs allow. While a CRD is being deleted, discovery shows fewer, but patches that remove finalizers are accepted.
const CRD_VERBS: [&str; 3] = ["list", "watch", "patch"];

/// The resources of the cluster, as far as discovery and the CRDs show them.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    groups: BTreeMap<String, InventoryGroup>,
    crds: BTreeMap<CrdName, Crd>,
}

/// The resources of one API group.
#[derive(Clone, Debug, Default)]
struct InventoryGroup {
    resources: Vec<Resource>,
    /// The number of consecutive reads that have not shown a resource.
    absences: BTreeMap<Resource, u32>,
}

/// The state of a CRD. CRDs that are not listed here do not exist, or are not visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crd {
    Exists,
    /// Discovery may still show its kind.
    Gone {
        /// Whether its deletion was seen; otherwise it was missing from a complete listing.
        is_seen: bool,
        /// The number of reads since then.
        reads: u32,
    },
}

impl Inventory {
    /// Returns all resources that are served, or should be.
    pub fn known(&self) -> Vec<Resource> {
        let resources = self.groups.values().flat_map(|it| &it.resources);
        let described = resources.cloned().map(|mut it| {
            if self.is_promised(&it) {
                it.verbs.extend(CRD_VERBS.map(str::to_owned));
            }
            it
        });
        described.collect()
    }

    /// Returns whether the cluster has this resource.
    pub fn has(&self, resource: &Resource) -> bool {
        self.groups.get(&resource.group).is_some_and(|it| it.resources.contains(resource))
    }

    /// Returns a resource in its preferred version.
    pub fn find(&self, group: &str, plural: &str) -> Option<&Resource> {
        let mut resources = self.groups.get(group)?.resources.iter();
        resources.find(|it| it.plural == plural && it.preferred)
    }

    /// Returns the groups that have resources or CRDs.
    pub fn groups(&self) -> BTreeSet<String> {
        let of_crds = self.crds.keys().map(|(group, _)| group);
        self.groups.keys().chain(of_crds).cloned().collect()
    }

    /// Returns the CRDs whose kinds discovery has not shown yet.
    pub fn unshown(&self) -> Vec<CrdName> {
        let is_shown = |(group, plural): &CrdName| {
            let group = self.groups.get(group);
            group.is_some_and(|it| it.resources.iter().any(|it| it.plural == *plural))
        };
        let existing = self.crds.iter().filter(|(_, it)| **it == Crd::Exists);
        existing.map(|(name, _)| name).filter(|it| !is_shown(it)).cloned().collect()
    }

    /// Removes all groups but these.
    pub fn keep(&mut self, groups: &BTreeSet<String>) {
        self.groups.retain(|it, _| groups.contains(it));
    }

    /// Records the discovery of a whole group. Returns whether nothing is doubtful; otherwise the group should be read again.
    pub fn read(&mut self, group: &str, mut found: Vec<Resource>) -> bool {
        self.count_reads(group, &found);
        self.admit(group, &mut found);
        let InventoryGroup { resources, absences } = self.groups.remove(group).unwrap_or_default();
        let mut new = InventoryGroup::default();
        for old in resources {
            if found.contains(&old) {
                continue;
            }
            let count = absences.get(&old).map_or(1, |it| it + 1);
            let has_other_version = found.iter().any(|it| it.plural == old.plural);
            if count >= ABSENCES_MAX && (has_other_version || !self.is_promised(&old)) {
                continue;
            }
            // Selectors without a version keep the version that is served now.
            let others = found.iter_mut().filter(|it| old.preferred && it.plural == old.plural);
            others.for_each(|it| it.preferred = false);
            new.absences.insert(old.clone(), count);
            new.resources.push(old);
        }
        new.resources.splice(..0, found);
        let is_complete = new.absences.is_empty();
        self.groups.insert(group.to_owned(), new);
        let is_gone = |(name, it): (&CrdName, &Crd)| name.0 == group && *it != Crd::Exists;
        is_complete
            && !self.crds.iter().any(is_gone)
            && !self.unshown().iter().any(|(it, _)| it == group)
    }

    /// Records the discovery of some versions of a group, while others do not respond.
    pub fn read_partly(&mut self, group: &str, mut found: Vec<Resource>) {
        self.admit(group, &mut found);
        let known = self.groups.entry(group.to_owned()).or_default();
        known.resources.retain(|it| !found.contains(it));
        known.absences.retain(|it, _| !found.contains(it));
        known.resources.splice(..0, found);
    }

    /// Records a CRD that was created or changed.
    pub fn crd_exists(&mut self, name: CrdName) {
        self.crds.insert(name, Crd::Exists);
    }

    /// Records the deletion of a CRD: its kind is gone, whatever discovery shows.
    pub fn crd_deleted(&mut self, name: CrdName) {
        if let Some(group) = self.groups.get_mut(&name.0) {
            group.resources.retain(|it| it.plural != name.1);
            group.absences.retain(|it, _| it.plural != name.1);
        }
        self.crds.insert(name, Crd::Gone { is_seen: true, reads: 0 });
    }

    /// Records a complete listing of the CRDs.
    pub fn crds_listed(&mut self, names: BTreeSet<CrdName>) {
        for crd in self.crds.values_mut().filter(|it| **it == Crd::Exists) {
            *crd = Crd::Gone { is_seen: false, reads: 0 };
        }
        self.crds.extend(names.into_iter().map(|it| (it, Crd::Exists)));
    }

    /// Removes the CRDs, because they are no longer visible.
    pub fn forget_crds(&mut self) {
        self.crds.clear();
    }

    /// Removes the CRDs of this group that are gone and that discovery does not show, or still shows after many reads.
    fn count_reads(&mut self, group: &str, found: &[Resource]) {
        self.crds.retain(|(of, plural), crd| match crd {
            Crd::Gone { reads, .. } if of == group => {
                *reads += 1;
                *reads < READS_MAX && found.iter().any(|it| it.plural == *plural)
            }
            Crd::Gone { .. } | Crd::Exists => true,
        });
    }

    /// Removes the kinds of deleted CRDs, which discovery shows for a while. A known resource keeps its verbs: they decide whether
    /// a stream starts, not whether it ends.
    fn admit(&self, group: &str, found: &mut Vec<Resource>) {
        let is_deleted = |it: &Resource| {
            let crd = self.crds.get(&(it.group.clone(), it.plural.clone()));
            matches!(crd, Some(Crd::Gone { is_seen: true, .. }))
        };
        found.retain(|it| !is_deleted(it));
        let Some(known) = self.groups.get(group) else { return };
        for new in found {
            let old = known.resources.iter().find(|it| *it == new);
            new.verbs.extend(old.into_iter().flat_map(|it| it.verbs.iter().cloned()));
        }
    }

    fn is_promised(&self, resource: &Resource) -> bool {
        let name = (resource.group.clone(), resource.plural.clone());
        self.crds.get(&name) == Some(&Crd::Exists)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ABSENCES_MAX, CrdName, Inventory, READS_MAX};
    use crate::logic::object::resource::Resource;

    fn apples(version: &str, verbs: &str) -> Resource {
        Resource {
            group: "a.dev".into(),
            version: version.into(),
            plural: "apples".into(),
            preferred: version == "v1",
            verbs: verbs.split(' ').map(str::to_owned).collect(),
            ..Resource::default()
        }
    }

    fn name() -> CrdName {
        ("a.dev".into(), "apples".into())
    }

    fn with_crd() -> Inventory {
        let mut inventory = Inventory::default();
        inventory.crd_exists(name());
        assert!(inventory.read("a.dev", vec![apples("v1", "list watch patch")]));
        inventory
    }

    #[test]
    fn a_kind_whose_crd_exists_is_never_gone() {
        let mut inventory = with_crd();
        for _read in 0..100 {
            assert!(!inventory.read("a.dev", Vec::new()));
        }
        assert!(inventory.has(&apples("v1", "")));
        assert!(inventory.read("a.dev", vec![apples("v1", "list")]));
    }

    #[test]
    fn a_kind_without_a_crd_is_gone_after_several_absences_in_a_row() {
        let mut inventory = with_crd();
        inventory.crds_listed(BTreeSet::new());
        for _read in 1..ABSENCES_MAX {
            assert!(!inventory.read("a.dev", Vec::new()));
        }
        assert!(inventory.read("a.dev", vec![apples("v1", "list")]), "the count begins again");
        for _read in 1..ABSENCES_MAX {
            assert!(!inventory.read("a.dev", Vec::new()) && inventory.has(&apples("v1", "")));
        }
        assert!(inventory.read("a.dev", Vec::new()));
        assert!(inventory.known().is_empty());
    }

    #[test]
    fn a_kind_whose_crd_is_deleted_is_gone_at_once_unless_discovery_keeps_showing_it() {
        let mut inventory = with_crd();
        inventory.crd_deleted(name());
        assert!(inventory.known().is_empty());
        for _read in 1..READS_MAX {
            assert!(!inventory.read("a.dev", vec![apples("v1", "list")]));
            assert!(inventory.known().is_empty());
        }
        assert!(inventory.read("a.dev", vec![apples("v1", "list")]));
        assert!(inventory.has(&apples("v1", "")), "something else provides it");
    }

    #[test]
    fn a_crd_that_discovery_does_not_show_is_waited_for() {
        let mut inventory = Inventory::default();
        inventory.crds_listed(BTreeSet::from([name()]));
        assert_eq!(inventory.unshown(), [name()]);
        assert!(!inventory.read("a.dev", Vec::new()));
        assert!(inventory.read("a.dev", vec![apples("v1", "list")]));
        assert!(inventory.unshown().is_empty());
    }

    #[test]
    fn verbs_of_a_known_resource_stay_and_those_of_crds_are_known() {
        let mut inventory = Inventory::default();
        assert!(inventory.read("a.dev", vec![apples("v1", "delete get list watch")]));
        assert!(!inventory.known()[0].verbs.contains("patch"));
        inventory.crd_exists(name());
        assert!(inventory.known()[0].verbs.contains("patch"));
        let mut without = Inventory::default();
        assert!(without.read("a.dev", vec![apples("v1", "list watch patch")]));
        assert!(without.read("a.dev", vec![apples("v1", "list")]));
        assert_eq!(without.known()[0].verbs.len(), 3);
    }

    #[test]
    fn the_version_in_use_stays_preferred_until_it_is_gone() {
        let mut inventory = with_crd();
        let second = || vec![Resource { preferred: true, ..apples("v2", "list") }];
        for _read in 1..ABSENCES_MAX {
            assert!(!inventory.read("a.dev", second()));
            assert_eq!(inventory.find("a.dev", "apples"), Some(&apples("v1", "")));
        }
        assert!(inventory.read("a.dev", second()), "the CRD exists with the other version");
        assert_eq!(inventory.find("a.dev", "apples"), Some(&apples("v2", "")));
    }

    #[test]
    fn versions_that_do_not_respond_are_as_before() {
        let mut inventory = with_crd();
        inventory.read_partly("a.dev", vec![apples("v2", "list")]);
        assert_eq!(inventory.known().len(), 2);
    }
}
