//! Discovers the resources of the cluster, group by group.
//!
//! A change of a CRD causes a discovery of its group only. A group that does not respond keeps its known resources, is reported
//! once, and is read again with growing pauses; so is a group that shows less than before, or less than its CRDs promise. The
//! consequences are decided in `logic/discovery/inventory.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    deletions::{self, Deletions},
    namespaces::ACCESS_RETRY,
    view::{ObserverEvents, ObserverView},
};
use crate::logic::{
    change::registry::Registry,
    discovery::{
        inventory::{CrdName, Inventory},
        served::Unknown,
    },
    object::{Object, reason::EventType, resource::Resource},
    replicas::peering,
};
use crate::ports::{ApiError, Discovered, ErrorClass, Extent, GroupFilter, StreamEvent, until};
use crate::settings::Settings;

/// The log target of the discovery.
const TARGET: &str = "kopf.discovery";

/// A CRD changes several times during its creation: its group is read after this long without further changes.
const SETTLING: Duration = Duration::from_millis(100);
/// Maximum delay of a discovery by CRDs that keep changing.
const SETTLING_MAX: Duration = Duration::from_secs(1);

/// The first pause before a group that failed is read again; each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The maximum of these pauses.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The API group of CRDs, and their plural name.
const EXTENSIONS: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// The resources of the cluster that the handlers need.
pub(super) struct Resources<'a> {
    view: ObserverView<'a>,
    /// The groups to read.
    wanted: GroupFilter,
    /// Whether all of these groups were read together at least once.
    is_read: bool,
    inventory: Inventory,
    /// The result that [`Resources::changed`] has reported last.
    reported: (Vec<Resource>, Unknown),
    definitions: CrdSource,
    /// The CRDs of the listing in progress.
    listed: BTreeSet<CrdName>,
    deletions: Deletions,
    notes: Notes,
    /// Groups to read again later.
    retries: BTreeMap<String, Retry>,
}

/// Pending work and reported failures.
#[derive(Default)]
struct Notes {
    /// The groups to read again at once.
    stale: Option<GroupFilter>,
    /// Whether there may be a change to report.
    is_new: bool,
    /// The failures that were logged last.
    logged: BTreeMap<FailureSubject, String>,
}

/// The subject of a failure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FailureSubject {
    /// The discovery as a whole.
    Discovery,
    /// One group.
    Group(String),
    /// The stream of CRDs.
    Definitions,
}

/// The source of changes of CRDs.
enum CrdSource {
    /// CRDs are not watched.
    Ignored,
    /// A watch stream; true if it was listed before.
    Stream(ObserverEvents, bool),
    /// Access is denied; the next attempt is at this time.
    Denied(Instant),
}

/// The time of the next read of a group.
struct Retry {
    at: Instant,
    pause: Duration,
}

impl<'a> Resources<'a> {
    /// Runs the first discovery.
    ///
    /// # Errors
    /// If the discovery fails.
    pub(super) async fn scan(
        view: ObserverView<'a>,
        registry: &Registry,
    ) -> Result<Self, ApiError> {
        let wanted = wanted(registry, &view.settings);
        let found = view.cluster.discover(&wanted).await?;
        let mut resources = Resources {
            view,
            wanted: wanted.clone(),
            is_read: true,
            inventory: Inventory::default(),
            reported: (Vec::new(), Unknown::default()),
            definitions: CrdSource::Ignored,
            listed: BTreeSet::new(),
            deletions: Deletions::new(),
            notes: Notes::default(),
            retries: BTreeMap::new(),
        };
        resources.take(&wanted, found);
        resources.reported = (resources.known(), resources.unknown());
        Ok(resources)
    }

    /// Reads the groups that a new registry names and no earlier one did. Groups that cannot be read now are read later.
    pub(super) async fn discover_more(&mut self, registry: &Registry) {
        let wanted = wanted(registry, &self.view.settings);
        let missing = match (&mut self.wanted, wanted) {
            (GroupFilter::All, _) => None,
            (all @ GroupFilter::Only(_), GroupFilter::All) => {
                *all = GroupFilter::All;
                Some(GroupFilter::All)
            }
            (GroupFilter::Only(known), GroupFilter::Only(new)) => {
                let missing = new.difference(known).cloned().collect::<BTreeSet<_>>();
                known.extend(new);
                (!missing.is_empty()).then_some(GroupFilter::Only(missing))
            }
        };
        if let Some(missing) = missing {
            self.is_read &= missing != GroupFilter::All;
            self.read(&missing).await;
        }
    }

    /// Drops the groups that these handlers do not name.
    pub(super) fn keep(&mut self, registry: &Registry) {
        self.wanted = wanted(registry, &self.view.settings);
        if let GroupFilter::Only(groups) = &self.wanted {
            self.inventory.keep(groups);
            self.retries.retain(|it, _| groups.contains(it));
            self.notes.logged.retain(|it, _| match it {
                FailureSubject::Group(group) => groups.contains(group),
                FailureSubject::Discovery | FailureSubject::Definitions => true,
            });
        }
    }

    /// Returns all known resources.
    pub(super) fn known(&self) -> Vec<Resource> {
        self.inventory.known()
    }

    /// Returns the groups that do not respond, and the CRDs whose kinds discovery has not shown yet.
    pub(super) fn unknown(&self) -> Unknown {
        let failed = self.notes.logged.keys().filter_map(|it| match it {
            FailureSubject::Group(group) => Some(group.clone()),
            FailureSubject::Discovery | FailureSubject::Definitions => None,
        });
        let mut unshown = self.inventory.unshown();
        unshown.retain(|(group, _)| self.wants(group));
        Unknown { failed: failed.collect(), unshown }
    }

    /// Returns whether a resource has disappeared from the cluster. Nothing is known about groups that no handler names.
    pub(super) fn lacks(&self, resource: &Resource) -> bool {
        self.wants(&resource.group) && !self.inventory.has(resource)
    }

    /// Returns a resource in its preferred version.
    pub(super) fn find(&self, group: &str, plural: &str) -> Option<&Resource> {
        self.inventory.find(group, plural)
    }

    /// Waits until the resources have changed. Cancel-safe: events that were processed are not lost.
    pub(super) async fn changed(&mut self) {
        loop {
            if self.notes.stale.is_some() {
                // Waits for further changes of the same CRD, and of others that come with it.
                let limit = Instant::now() + SETTLING_MAX;
                while timeout_at(limit.min(Instant::now() + SETTLING), self.notice()).await.is_ok()
                {
                }
                self.confirm_deletions().await;
                // The kind of a deleted CRD is gone, whether discovery succeeds or not.
                if !self.is_as_reported() {
                    return;
                }
                self.refresh().await;
                self.notes.is_new = true;
            }
            if std::mem::take(&mut self.notes.is_new) {
                let unknown = self.unknown();
                let before = std::mem::replace(&mut self.reported.1, unknown);
                if !self.is_as_reported() || before != self.reported.1 {
                    return;
                }
            }
            self.notice().await;
        }
    }

    /// Stores the resources as reported. Returns whether they are the same as those reported last.
    fn is_as_reported(&mut self) -> bool {
        let known = self.known();
        let before = std::mem::replace(&mut self.reported.0, known);
        let now = &self.reported.0;
        before.len() == now.len()
            && before.iter().zip(now).all(|(old, new)| old.is_described_as(new))
    }

    /// Waits until a group must be read again.
    async fn notice(&mut self) {
        let due = self.retries.values().map(|it| it.at).min();
        tokio::select! {
            biased; // an event comes before a timer
            event = self.definitions.next() => self.note(event),
            () = until(due) => {
                let now = Instant::now();
                let due = self.retries.iter_mut().filter(|(_, it)| it.at <= now);
                let groups = due.map(|(group, it)| {
                    // The next read sets the time again.
                    it.at = now + PAUSE_MAX;
                    group.clone()
                });
                self.notes.mark(groups.collect::<Vec<_>>());
            }
        }
    }

    /// Processes an event of the CRDs, and marks the groups that it makes outdated.
    fn note(&mut self, event: Option<Result<StreamEvent, ApiError>>) {
        match event {
            Some(Ok(StreamEvent::Object(event_type, crd))) => {
                let Some(name) = name_of(&crd) else { return };
                let group = name.0.clone();
                match event_type {
                    None => {
                        self.listed.insert(name);
                        return;
                    }
                    Some(EventType::Deleted) => {
                        self.deletions.insert(name, crd.header().uid.clone());
                    }
                    Some(EventType::Added | EventType::Modified) => {
                        self.deletions.remove(&name);
                        self.inventory.crd_exists(name);
                    }
                }
                self.mark([group]);
            }
            Some(Ok(StreamEvent::Listing)) => self.listed.clear(),
            Some(Ok(StreamEvent::Listed)) => self.note_listing(),
            Some(Ok(StreamEvent::Alive)) => {
                drop(self.notes.logged.remove(&FailureSubject::Definitions));
            }
            Some(Err(error)) if error.class != ErrorClass::Denied => {
                let text = format!("Cannot watch CRDs, retrying: {error}");
                self.notes.log(FailureSubject::Definitions, &text);
            }
            Some(Err(_)) | None if matches!(self.definitions, CrdSource::Denied(_)) => {
                self.definitions = self.watch();
                self.notes.stale = Some(self.wanted.clone());
            }
            Some(Err(_)) | None => {
                self.notes.log(
                    FailureSubject::Definitions,
                    "Not enough permissions to watch for resources: changes (creation/deletion/updates) \
                     will not be noticed; the resources are only refreshed on operator restarts.",
                );
                self.inventory.forget_crds();
                self.notes.is_new = true;
                self.definitions = CrdSource::Denied(Instant::now() + ACCESS_RETRY);
            }
        }
    }

    /// Removes the kinds of deleted CRDs that were not created again.
    async fn confirm_deletions(&mut self) {
        while let Some((name, uid)) = self.deletions.first_key_value() {
            let is_gone = match self.find(EXTENSIONS, DEFINITIONS) {
                Some(it) => deletions::is_confirmed(&self.view, it, name, uid).await,
                None => true,
            };
            let Some((name, _)) = self.deletions.pop_first() else { return };
            if is_gone {
                self.inventory.crd_deleted(name);
            }
        }
    }

    /// Processes a complete listing of the CRDs. After the first one, CRDs created since the discovery make their groups outdated;
    /// after any other one, every group is outdated, because changes may have been missed.
    fn note_listing(&mut self) {
        self.inventory.crds_listed(std::mem::take(&mut self.listed));
        self.notes.is_new = true;
        let CrdSource::Stream(_, was_listed) = &mut self.definitions else { return };
        if std::mem::replace(was_listed, true) {
            self.retries.clear();
            self.notes.stale = Some(self.wanted.clone());
        } else {
            let unshown = self.inventory.unshown().into_iter().map(|(group, _)| group);
            self.mark(unshown.collect::<Vec<_>>());
        }
    }

    /// Marks these groups to be read at once, and then with short pauses, if handlers name them.
    fn mark(&mut self, groups: impl IntoIterator<Item = String>) {
        let wanted = groups.into_iter().filter(|it| self.wants(it)).collect::<Vec<_>>();
        self.retries.retain(|it, _| !wanted.contains(it));
        if !wanted.is_empty() {
            self.notes.mark(wanted);
        }
    }

    /// Reads the marked groups again.
    async fn refresh(&mut self) {
        let Some(stale) = self.notes.stale.clone() else { return };
        let filter = if self.is_read { stale } else { self.wanted.clone() };
        self.read(&filter).await;
        self.notes.stale = None;
    }

    async fn read(&mut self, filter: &GroupFilter) {
        match self.view.cluster.discover(filter).await {
            Ok(found) => {
                self.notes.logged.remove(&FailureSubject::Discovery);
                self.is_read |= *filter == self.wanted;
                self.take(filter, found);
            }
            Err(error) => {
                self.notes.log(
                    FailureSubject::Discovery,
                    &format!("Cannot discover resources, retrying: {error}"),
                );
                for group in self.groups_of(filter) {
                    self.schedule_retry(&group);
                }
            }
        }
    }

    /// Processes the discovery of the groups that were read.
    fn take(&mut self, filter: &GroupFilter, found: Discovered) {
        let Discovered { resources, failed } = found;
        let mut groups = BTreeMap::<String, Vec<Resource>>::new();
        for resource in resources {
            groups.entry(resource.group.clone()).or_default().push(resource);
        }
        let all = self.groups_of(filter).into_iter().chain(groups.keys().cloned());
        for group in all.chain(failed.keys().cloned()).collect::<BTreeSet<_>>() {
            let new = groups.remove(&group).unwrap_or_default();
            let about = FailureSubject::Group(group.clone());
            let is_settled = if let Some(error) = failed.get(&group) {
                self.inventory.read_partly(&group, new);
                let text = format!(
                    "Cannot discover the resources of API group '{group}', retrying: {error}"
                );
                self.notes.log(about, &text);
                false
            } else {
                if self.notes.logged.remove(&about).is_some() {
                    tracing::info!(target: TARGET, "The API group '{group}' responds again.");
                    self.retries.remove(&group);
                }
                self.inventory.read(&group, new)
            };
            if is_settled {
                self.retries.remove(&group);
            } else {
                self.schedule_retry(&group);
            }
        }
        if matches!(self.definitions, CrdSource::Ignored) {
            self.definitions = self.watch();
        }
    }

    /// Returns the groups that a filter names; for all groups, the known ones.
    fn groups_of(&self, filter: &GroupFilter) -> BTreeSet<String> {
        match filter {
            GroupFilter::All => self.inventory.groups(),
            GroupFilter::Only(groups) => groups.clone(),
        }
    }

    fn wants(&self, group: &str) -> bool {
        match &self.wanted {
            GroupFilter::All => true,
            GroupFilter::Only(groups) => groups.contains(group),
        }
    }

    fn schedule_retry(&mut self, group: &str) {
        let pause = self.retries.get(group).map_or(PAUSE_MIN, |it| (it.pause * 2).min(PAUSE_MAX));
        self.retries.insert(group.to_owned(), Retry { at: Instant::now() + pause, pause });
    }

    fn watch(&self) -> CrdSource {
        match self.find(EXTENSIONS, DEFINITIONS) {
            Some(it) if !self.view.settings.scanning.disabled => {
                CrdSource::Stream(self.view.watch(it, Extent::Metadata), false)
            }
            Some(_) | None => CrdSource::Ignored,
        }
    }
}

impl CrdSource {
    /// Waits for the next event; `None` when the stream has ended, or when a denied access must be tried again.
    async fn next(&mut self) -> Option<Result<StreamEvent, ApiError>> {
        match self {
            CrdSource::Ignored => std::future::pending().await,
            CrdSource::Denied(again) => {
                sleep_until(*again).await;
                None
            }
            CrdSource::Stream(events, _) => events.next().await,
        }
    }
}

/// Returns the group and the plural name in the name of a CRD.
fn name_of(crd: &Object) -> Option<CrdName> {
    let (plural, group) = crd.header().name.as_deref()?.split_once('.')?;
    Some((group.to_owned(), plural.to_owned()))
}

impl Notes {
    /// Marks these groups to be read at once.
    fn mark(&mut self, more: Vec<String>) {
        match &mut self.stale {
            Some(GroupFilter::All) => {}
            Some(GroupFilter::Only(groups)) => groups.extend(more),
            None => self.stale = Some(GroupFilter::Only(more.into_iter().collect())),
        }
    }

    /// Logs a failure, unless the last one about the same subject is equal.
    fn log(&mut self, about: FailureSubject, text: &str) {
        if self.logged.get(&about).is_none_or(|it| it != text) {
            tracing::warn!(target: TARGET, "{text}");
            self.logged.insert(about, text.to_owned());
        }
    }
}

/// Returns the groups that handlers name, and those that the operator itself needs.
fn wanted(registry: &Registry, settings: &Settings) -> GroupFilter {
    // The core group is needed for namespaces and events, the other one for CRDs.
    let own = [String::new(), EXTENSIONS.to_owned()];
    let of_peering = peering::GROUPS.map(str::to_owned).into_iter();
    let of_peering = of_peering.filter(|_| !settings.peering.standalone);
    let own = own.into_iter().chain(of_peering);
    registry
        .groups()
        .map_or(GroupFilter::All, |it| GroupFilter::Only(it.into_iter().chain(own).collect()))
}
