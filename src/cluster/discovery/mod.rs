//! Discovers the resources of the cluster.
//!
//! Two aggregated documents contain everything (`aggregated.rs`). The documents of the groups are read if the server does not
//! support them, if it could not refresh a group, and if only one group is needed, as after a change of a CRD: that takes fewer
//! bytes.
//!
//! A group that does not respond is reported, but affects no other: a broken aggregated API must not stop operators that do not use
//! it.

mod aggregated;
mod document;

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt as _, stream};
use serde::Deserialize;
use tokio::time::timeout;

use self::{
    aggregated::{AggregatedVersion, GroupDiscovery},
    document::{DiscoveryDocument, singular},
};
use super::{
    failure::{Action, RequestFailure},
    request::{JSON, KubeRequest},
    transport::Transport,
};
use crate::logic::object::resource::Resource;
use crate::ports::{ApiError, Discovered, ErrorClass, GroupFilter};
use crate::settings::NetworkingSettings;

/// Maximum number of documents that are read at once. A cluster has some dozens of them.
const READS_MAX: usize = 4;

/// Time limit of the document of a group, which is requested once: the operator waits for it at each start, and reads it again later
/// anyway.
const DOCUMENT_MAX: Duration = Duration::from_secs(5);

/// `/api` or `/apis`, in either form: at least one of the lists is there.
#[derive(Default, Deserialize)]
struct Index {
    /// The versions of the core group.
    versions: Option<Vec<String>>,
    /// All groups except the core group.
    groups: Option<Vec<Group>>,
    /// All of these with their resources.
    items: Option<Vec<GroupDiscovery>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Entries {
    /// Required, but null in a group without resources.
    #[serde(deserialize_with = "Option::deserialize")]
    resources: Option<Vec<Entry>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    name: String,
    kind: String,
    singular_name: String,
    short_names: Option<BTreeSet<String>>,
    categories: Option<BTreeSet<String>>,
    namespaced: bool,
    verbs: Option<BTreeSet<String>>,
}

/// Returns all resources of these groups.
pub(super) async fn discover(
    transport: &Transport,
    filter: &GroupFilter,
) -> Result<Discovered, ApiError> {
    let settings = transport.settings();
    let mut found = Discovered::default();
    let mut documents = Vec::new();
    for version in versions(transport, filter, &settings.networking).await? {
        match version {
            AggregatedVersion::Fresh(resources) => found.resources.extend(resources),
            AggregatedVersion::Stale(document) => documents.push(document),
        }
    }
    let mut networking = settings.networking.clone();
    networking.error_backoffs.clear();
    let mut reads = stream::iter(documents)
        .map(|document| async {
            let read = timeout(DOCUMENT_MAX, resources(transport, &document, &networking)).await;
            let late = |_elapsed| {
                let action = Action::Discover(&document.path);
                transport.fail(RequestFailure::Timeout(DOCUMENT_MAX), &action)
            };
            let read = read.map_err(late);
            (document.group, read)
        })
        .buffered(READS_MAX);
    while let Some((group, read)) = reads.next().await {
        match read {
            Ok(Ok(some)) => found.resources.extend(some),
            // Without any response, the cluster is unreachable: the group is not the cause.
            Ok(Err(error)) if error.status.is_none() || error.status == Some(401) => {
                return Err(error);
            }
            Ok(Err(error)) | Err(error) => drop(found.failed.insert(group, error)),
        }
    }
    Ok(found)
}

/// Reads the versions, with their resources if the server includes them.
async fn versions(
    transport: &Transport,
    filter: &GroupFilter,
    networking: &NetworkingSettings,
) -> Result<Vec<AggregatedVersion>, ApiError> {
    let wanted = |group: &str| match filter {
        GroupFilter::All => true,
        GroupFilter::Only(groups) => groups.contains(group),
    };
    let is_single = matches!(filter, GroupFilter::Only(groups) if groups.len() == 1);
    let accept = if is_single { JSON } else { aggregated::ACCEPT };
    let index = async |path| match Box::pin(read(transport, path, accept, networking)).await? {
        // The page of a proxy does not mean that the cluster has no resources.
        Index { versions: None, groups: None, items: None } => {
            let failure = RequestFailure::Malformed("it lists no API groups".into());
            Err(transport.fail(failure, &Action::Discover(path)))
        }
        index => Ok(index),
    };
    let core = async { if wanted("") { index("/api").await } else { Ok(Index::default()) } };
    let (core, others) = futures::future::try_join(core, index("/apis")).await?;
    let plain = core.versions.into_iter().flatten().map(|it| DiscoveryDocument::new("", it, true));
    let of_groups =
        others.groups.into_iter().flatten().filter(|it| wanted(&it.name)).flat_map(|group| {
            let Group { name, versions, preferred_version } = group;
            let preferred = preferred_version.unwrap_or_default().version;
            versions.into_iter().map(move |GroupVersion { version }| {
                let preferred = version == preferred;
                DiscoveryDocument::new(&name, version, preferred)
            })
        });
    let plain = plain.chain(of_groups).map(AggregatedVersion::Stale);
    let aggregated =
        core.items.into_iter().chain(others.items).flatten().filter(|it| wanted(it.name()));
    Ok(plain.chain(aggregated.flat_map(GroupDiscovery::into_versions)).collect())
}

async fn resources(
    transport: &Transport,
    document: &DiscoveryDocument,
    networking: &NetworkingSettings,
) -> Result<Vec<Resource>, ApiError> {
    match read::<Entries>(transport, &document.path, JSON, networking).await {
        Ok(entries) => Ok(describe(document, entries.resources.unwrap_or_default())),
        // The last resource of the group was removed at this moment.
        Err(error) if error.class == ErrorClass::Missing => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn read<T: serde::de::DeserializeOwned>(
    transport: &Transport,
    path: &str,
    accept: &'static str,
    networking: &NetworkingSettings,
) -> Result<T, ApiError> {
    let action = Action::Discover(path);
    let request = KubeRequest::get(path.to_owned(), action).accepting(accept);
    let body = transport.fetch(&request, networking).await?;
    serde_json::from_slice(&body)
        .map_err(|error| transport.fail(RequestFailure::Malformed(error.to_string()), &action))
}

/// Returns the resources of one document; entries with a slash are subresources of another entry.
fn describe(document: &DiscoveryDocument, entries: Vec<Entry>) -> Vec<Resource> {
    let parts: Vec<(String, String)> = entries
        .iter()
        .filter_map(|it| it.name.split_once('/'))
        .map(|(plural, part)| (plural.to_owned(), part.to_owned()))
        .collect();
    let wholes = entries.into_iter().filter(|it| !it.name.contains('/'));
    wholes
        .map(|entry| Resource {
            group: document.group.clone(),
            version: document.version.clone(),
            subresources: parts
                .iter()
                .filter(|(plural, _)| *plural == entry.name)
                .map(|(_, part)| part.clone())
                .collect(),
            singular: singular(entry.singular_name, &entry.kind),
            plural: entry.name,
            kind: entry.kind,
            shortcuts: entry.short_names.unwrap_or_default(),
            categories: entry.categories.unwrap_or_default(),
            namespaced: entry.namespaced,
            preferred: document.preferred,
            verbs: entry.verbs.unwrap_or_default(),
        })
        .collect()
}
