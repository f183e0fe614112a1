//! Which resources the cluster has, group by group.
//!
//! A change of a definition has its group read again, and no other. A group that does not answer keeps what it had, is told
//! once, and is asked again and again in the background: a dead aggregated API costs its own resources only.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Events, View, namespaces::LOOK_AGAIN};
use crate::logic::{
    object::Object, peering, reason::EventType, registry::Registry, resource::Resource,
};
use crate::ports::{ApiError, Discovered, ErrorClass, Extent, GroupFilter, StreamEvent, until};
use crate::settings::Settings;

/// The log target of all that is found or missed.
const TARGET: &str = "kopf.observation";

/// A definition changes several times while it comes up; we look once it has been quiet for so long.
const SETTLING: Duration = Duration::from_millis(100);

/// The first pause before a group is read again that did not answer as expected; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of them.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// What a definition promises is there within seconds, or never: no version of it is served.
const PROMISE_PAUSE_MAX: Duration = Duration::from_secs(16);

/// The group of definitions, and their name in it.
const EXTENSIONS: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

/// What the cluster has, as far as the handlers need to know.
pub(super) struct Resources<'a> {
    view: View<'a>,
    /// The groups to look into.
    wanted: GroupFilter,
    /// Whether all of them have been read together at least once, since it is these.
    is_read: bool,
    groups: BTreeMap<String, Vec<Resource>>,
    definitions: Definitions,
    notes: Notes,
    /// Groups to read again later.
    later: BTreeMap<String, Later>,
}

/// What was noticed and is not settled yet.
#[derive(Default)]
struct Notes {
    /// What to read again at once.
    stale: Option<GroupFilter>,
    /// Whether a definition came or went, by group and plural, where the group does not show it yet.
    promised: BTreeMap<(String, String), bool>,
    /// The failures that were told last.
    told: BTreeMap<About, String>,
}

/// What a failure is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// The discovery as a whole.
    Discovery,
    /// One group.
    Group(String),
    /// The stream of definitions.
    Definitions,
}

/// The changes of resource definitions.
enum Definitions {
    /// Nobody wants to know.
    Ignored,
    /// From a stream; whether it has been listed before.
    Stream(Events, bool),
    /// We may not see them; then we look again.
    Denied(Instant),
}

/// When a group is read again.
struct Later {
    at: Instant,
    pause: Duration,
}

impl<'a> Resources<'a> {
    /// Reads them for the first time.
    ///
    /// # Errors
    /// When the cluster cannot be asked what it has.
    pub(super) async fn scan(view: View<'a>, registry: &Registry) -> Result<Self, ApiError> {
        let wanted = wanted(registry, &view.settings);
        let found = view.cluster.discover(&wanted).await?;
        let mut resources = Resources {
            view,
            wanted: wanted.clone(),
            is_read: true,
            groups: BTreeMap::new(),
            definitions: Definitions::Ignored,
            notes: Notes::default(),
            later: BTreeMap::new(),
        };
        resources.take(&wanted, found);
        resources.definitions = resources.watch();
        Ok(resources)
    }

    /// Looks also into those groups that other handlers name and nobody has before. What cannot be read now is read later.
    pub(super) async fn look_for_more(&mut self, registry: &Registry) {
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

    /// Leaves those groups alone that these handlers do not name.
    pub(super) fn keep(&mut self, registry: &Registry) {
        self.wanted = wanted(registry, &self.view.settings);
        if let GroupFilter::Only(groups) = &self.wanted {
            self.groups.retain(|it, _| groups.contains(it));
            self.later.retain(|it, _| groups.contains(it));
        }
    }

    /// All of them.
    pub(super) fn known(&self) -> Vec<Resource> {
        self.groups.values().flatten().cloned().collect()
    }

    /// Whether the cluster has it.
    pub(super) fn has(&self, resource: &Resource) -> bool {
        self.groups.get(&resource.group).is_some_and(|it| it.contains(resource))
    }

    /// One of them, in its preferred version.
    pub(super) fn find(&self, group: &str, plural: &str) -> Option<&Resource> {
        self.groups.get(group)?.iter().find(|it| it.plural == plural && it.preferred)
    }

    /// Waits until they are not what they were. What was noticed is not lost if this is dropped.
    pub(super) async fn changed(&mut self) {
        loop {
            if self.notes.stale.is_some() {
                // Further changes of the same definition, and of others that come with it.
                while timeout(SETTLING, self.notice()).await.is_ok() {}
                if self.refresh().await {
                    return;
                }
            }
            self.notice().await;
        }
    }

    /// Waits until something is worth another look.
    async fn notice(&mut self) {
        let due = self.later.values().map(|it| it.at).min();
        tokio::select! {
            biased; // what happens is worth more than what is awaited
            () = self.definitions.next(&self.wanted, &mut self.notes) => {}
            () = until(due) => {
                let now = Instant::now();
                let due = self.later.iter_mut().filter(|(_, it)| it.at <= now);
                let groups = due.map(|(group, it)| {
                    // What comes of it sets the time anew.
                    it.at = now + PAUSE_MAX;
                    group.clone()
                });
                self.notes.mark(groups.collect::<Vec<_>>());
            }
        }
        if matches!(&self.definitions, Definitions::Denied(again) if *again <= Instant::now()) {
            self.definitions = self.watch();
            self.notes.stale = Some(self.wanted.clone());
        }
    }

    /// Reads again what is stale; tells whether it is not what it was.
    async fn refresh(&mut self) -> bool {
        let Some(stale) = self.notes.stale.clone() else { return false };
        let filter = if self.is_read { stale } else { self.wanted.clone() };
        let before = self.known();
        self.read(&filter).await;
        self.notes.stale = None;
        let after = self.known();
        before.len() != after.len()
            || before.iter().zip(&after).any(|(old, new)| !old.is_described_as(new))
    }

    async fn read(&mut self, filter: &GroupFilter) {
        match self.view.cluster.discover(filter).await {
            Ok(found) => {
                self.notes.told.remove(&About::Discovery);
                self.is_read |= *filter == self.wanted;
                self.take(filter, found);
            }
            Err(error) => {
                self.notes.tell(
                    About::Discovery,
                    &format!("Cannot look for resources, will try again: {error}"),
                );
                for group in self.asked(filter) {
                    self.postpone(&group);
                }
            }
        }
    }

    /// Replaces what the groups have that were asked.
    fn take(&mut self, filter: &GroupFilter, found: Discovered) {
        let Discovered { resources, failed } = found;
        let mut groups = BTreeMap::<String, Vec<Resource>>::new();
        for resource in resources {
            groups.entry(resource.group.clone()).or_default().push(resource);
        }
        let asked = self.asked(filter);
        for group in asked
            .into_iter()
            .chain(groups.keys().cloned())
            .chain(failed.keys().cloned())
            .collect::<BTreeSet<_>>()
        {
            let mut new = groups.remove(&group).unwrap_or_default();
            match failed.get(&group) {
                Some(error) => {
                    let old = self.groups.remove(&group).unwrap_or_default();
                    // Some versions may have answered; the others are as they were.
                    let kept = old.into_iter().filter(|it| !new.contains(it)).collect::<Vec<_>>();
                    new.extend(kept);
                    let text = format!(
                        "Resources of the API group '{group}' are not known, will look again: {error}"
                    );
                    self.notes.tell(About::Group(group.clone()), &text);
                    self.postpone(&group);
                }
                None => self.settle(&group, &mut new),
            }
            self.groups.insert(group, new);
        }
    }

    /// What follows when a group has answered.
    fn settle(&mut self, group: &str, new: &mut Vec<Resource>) {
        if self.notes.told.remove(&About::Group(group.to_owned())).is_some() {
            tracing::info!(target: TARGET, "The API group '{group}' answers again.");
            self.later.remove(group);
        }
        let mut promises = self.notes.promised.iter().filter(|((it, _), _)| it == group);
        let kept = |((_, plural), is_there): (&(String, String), &bool)| {
            new.iter().any(|it| it.plural == *plural) == *is_there
        };
        if promises.all(kept) {
            self.notes.promised.retain(|(it, _), _| it != group);
            self.later.remove(group);
            return;
        }
        let gone = |it: &Resource| {
            self.notes.promised.get(&(group.to_owned(), it.plural.clone())) == Some(&false)
        };
        // Discovery lags behind the definitions, and would have us watch what is not there any more.
        new.retain(|it| !gone(it));
        if self.later.get(group).is_some_and(|it| it.pause >= PROMISE_PAUSE_MAX) {
            self.notes.promised.retain(|(it, _), _| it != group);
            self.later.remove(group);
        } else {
            self.postpone(group);
        }
    }

    /// The groups that a filter names; of all of them, those that are known.
    fn asked(&self, filter: &GroupFilter) -> BTreeSet<String> {
        match filter {
            GroupFilter::All => self.groups.keys().cloned().collect(),
            GroupFilter::Only(groups) => groups.clone(),
        }
    }

    fn postpone(&mut self, group: &str) {
        let pause = self.later.get(group).map_or(PAUSE_MIN, |it| (it.pause * 2).min(PAUSE_MAX));
        self.later.insert(group.to_owned(), Later { at: Instant::now() + pause, pause });
    }

    fn watch(&self) -> Definitions {
        match self.find(EXTENSIONS, DEFINITIONS) {
            Some(it) if !self.view.settings.scanning.disabled => {
                Definitions::Stream(self.view.watch(it, Extent::Metadata), false)
            }
            Some(_) | None => Definitions::Ignored,
        }
    }
}

impl Definitions {
    /// Waits for something; notes what it makes stale.
    async fn next(&mut self, wanted: &GroupFilter, notes: &mut Notes) {
        let (events, was_listed) = match self {
            Definitions::Ignored => return std::future::pending().await,
            Definitions::Denied(again) => return sleep_until(*again).await,
            Definitions::Stream(events, was_listed) => (events, was_listed),
        };
        match events.next().await {
            Some(Ok(StreamEvent::Object(Some(event_type), definition))) => {
                let Some((plural, group)) = names(&definition) else { return };
                let is_wanted = match wanted {
                    GroupFilter::All => true,
                    GroupFilter::Only(groups) => groups.contains(group),
                };
                if is_wanted {
                    let is_there = event_type != EventType::Deleted;
                    notes.promised.insert((group.to_owned(), plural.to_owned()), is_there);
                    notes.mark(vec![group.to_owned()]);
                }
            }
            // Those of the first listing were read before; after another one, nobody knows what was missed.
            Some(Ok(StreamEvent::Listed)) if *was_listed => notes.stale = Some(wanted.clone()),
            Some(Ok(StreamEvent::Listed)) => *was_listed = true,
            Some(Ok(StreamEvent::Alive)) => drop(notes.told.remove(&About::Definitions)),
            Some(Ok(StreamEvent::Object(None, _) | StreamEvent::Listing)) => {}
            Some(Err(error)) if error.class != ErrorClass::Denied => {
                let text = format!("Cannot watch for resources, will try again: {error}");
                notes.tell(About::Definitions, &text);
            }
            Some(Err(_)) | None => {
                notes.tell(
                    About::Definitions,
                    "Not enough permissions to watch for resources: changes (creation/deletion/updates) \
                     will not be noticed; the resources are only refreshed on operator restarts.",
                );
                *self = Definitions::Denied(Instant::now() + LOOK_AGAIN);
            }
        }
    }
}

/// The plural and the group that a definition is named after.
fn names(definition: &Object) -> Option<(&str, &str)> {
    definition.header().name.as_deref()?.split_once('.')
}

impl Notes {
    /// These groups should be read again at once.
    fn mark(&mut self, more: Vec<String>) {
        match &mut self.stale {
            Some(GroupFilter::All) => {}
            Some(GroupFilter::Only(groups)) => groups.extend(more),
            None => self.stale = Some(GroupFilter::Only(more.into_iter().collect())),
        }
    }

    /// Tells a failure, unless it was the last that was told about this.
    fn tell(&mut self, about: About, text: &str) {
        if self.told.get(&about).is_none_or(|it| it != text) {
            tracing::warn!(target: TARGET, "{text}");
            self.told.insert(about, text.to_owned());
        }
    }
}

/// The groups that handlers name, and those that the operator itself needs.
fn wanted(registry: &Registry, settings: &Settings) -> GroupFilter {
    // The core group is needed for namespaces and events, the other for the definitions of resources.
    let own = [String::new(), EXTENSIONS.to_owned()];
    let of_peering = peering::GROUPS.map(str::to_owned).into_iter();
    let of_peering = of_peering.filter(|_| !settings.peering.standalone);
    let own = own.into_iter().chain(of_peering);
    registry
        .groups()
        .map_or(GroupFilter::All, |it| GroupFilter::Only(it.into_iter().chain(own).collect()))
}
