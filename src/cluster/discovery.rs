//! Which resources the cluster serves: the discovery documents, read one by one.
//!
//! A group that does not answer is named, but affects no other: a broken aggregated API must not stop operators that have nothing
//! to do with it.

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt as _, stream};
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    failure::{Action, Failure},
    transport::{Request, Transport},
};
use crate::logic::resource::Resource;
use crate::ports::{ApiError, Discovered, ErrorClass, GroupFilter};
use crate::settings::Networking;

/// Documents read at once. A cluster has some dozens of them.
const READS_MAX: usize = 4;

/// The document of a group must come in this time, and is requested once: the operator waits for it at each start, and reads it again
/// later anyway.
const DOCUMENT_MAX: Duration = Duration::from_secs(5);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Versions {
    versions: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    groups: Vec<Group>,
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entries {
    resources: Vec<Entry>,
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

/// One document to read.
struct Document {
    path: String,
    group: String,
    version: String,
    preferred: bool,
}

/// All resources of these groups.
pub(super) async fn discover(
    transport: &Transport,
    filter: &GroupFilter,
) -> Result<Discovered, ApiError> {
    let settings = transport.settings();
    let documents = documents(transport, filter, &settings.networking).await?;
    let mut networking = settings.networking.clone();
    networking.error_backoffs.clear();
    let mut reads = stream::iter(documents)
        .map(|document| async {
            let read = timeout(DOCUMENT_MAX, resources(transport, &document, &networking)).await;
            let late = |_elapsed| {
                let action = Action::Discover(&document.path);
                transport.fail(Failure::Timeout(DOCUMENT_MAX), &action)
            };
            let read = read.map_err(late);
            (document.group, read)
        })
        .buffered(READS_MAX);
    let mut found = Discovered::default();
    while let Some((group, read)) = reads.next().await {
        match read {
            Ok(Ok(some)) => found.resources.extend(some),
            // Without any response, the cluster is unreachable: that is not the fault of one group.
            Ok(Err(error)) if error.status.is_none() || error.status == Some(401) => {
                return Err(error);
            }
            Ok(Err(error)) | Err(error) => drop(found.failed.insert(group, error)),
        }
    }
    Ok(found)
}

async fn documents(
    transport: &Transport,
    filter: &GroupFilter,
    networking: &Networking,
) -> Result<Vec<Document>, ApiError> {
    let wanted = |group: &str| match filter {
        GroupFilter::All => true,
        GroupFilter::Only(groups) => groups.contains(group),
    };
    let core = async {
        if wanted("") { read(transport, "/api", networking).await } else { Ok(Versions::default()) }
    };
    let (core, others) =
        futures::future::try_join(core, read::<Groups>(transport, "/apis", networking)).await?;
    let core = core.versions.into_iter().map(|version| Document {
        path: format!("/api/{version}"),
        group: String::new(),
        version,
        preferred: true,
    });
    let others = others.groups.into_iter().filter(|it| wanted(&it.name)).flat_map(|group| {
        let Group { name, versions, preferred_version } = group;
        let preferred = preferred_version.unwrap_or_default().version;
        versions.into_iter().map(move |GroupVersion { version }| Document {
            path: format!("/apis/{name}/{version}"),
            group: name.clone(),
            preferred: version == preferred,
            version,
        })
    });
    Ok(core.chain(others).collect())
}

async fn resources(
    transport: &Transport,
    document: &Document,
    networking: &Networking,
) -> Result<Vec<Resource>, ApiError> {
    match read::<Entries>(transport, &document.path, networking).await {
        Ok(entries) => Ok(describe(document, entries.resources)),
        // The last resource of a group was removed in this moment.
        Err(error) if error.class == ErrorClass::Missing => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn read<T: serde::de::DeserializeOwned>(
    transport: &Transport,
    path: &str,
    networking: &Networking,
) -> Result<T, ApiError> {
    let action = Action::Discover(path);
    let body = transport.fetch(&Request::get(path.to_owned(), action), networking).await?;
    serde_json::from_slice(&body)
        .map_err(|error| transport.fail(Failure::Malformed(error.to_string()), &action))
}

/// The resources of one document; entries with a slash are parts of another entry.
fn describe(document: &Document, entries: Vec<Entry>) -> Vec<Resource> {
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
            singular: if entry.singular_name.is_empty() {
                entry.kind.to_lowercase()
            } else {
                entry.singular_name
            },
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
