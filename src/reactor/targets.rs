//! Which resources are watched, and in which namespaces.

use std::{collections::BTreeSet, sync::Arc};

use super::Scope;
use crate::logic::{namespaces::NamespacePattern, registry::Registry, resource::Resource, served};
use crate::ports::{ApiError, Cluster, GroupFilter};

/// A resource and the namespaces to watch it in; `None` is the whole cluster.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) resource: Resource,
    pub(super) namespaces: Vec<Option<Arc<str>>>,
}

/// Asks the cluster what there is, and chooses what the handlers want.
///
/// # Errors
/// When the cluster cannot be asked.
pub(super) async fn find(
    cluster: &dyn Cluster,
    registry: &Registry,
    scope: &Scope,
) -> Result<Vec<Target>, ApiError> {
    let known = cluster.discover(&groups(registry)).await?;
    let chosen = served::choose(registry, &known);
    for warning in &chosen.warnings {
        tracing::warn!(target: "kopf.observation", "{warning}");
    }
    let namespaces = namespaces_of(cluster, scope, &known).await?;
    let namespaces =
        namespaces.map(|it| it.into_iter().map(|name| Some(name.into())).collect::<Vec<_>>());
    let target = |resource: Resource| {
        let namespaces =
            namespaces.clone().filter(|_| resource.namespaced).unwrap_or_else(|| vec![None]);
        Target { resource, namespaces }
    };
    Ok(chosen.resources.into_iter().map(target).collect())
}

fn groups(registry: &Registry) -> GroupFilter {
    match registry.groups() {
        None => GroupFilter::All,
        // The core group is needed for namespaces and for posted events.
        Some(groups) => GroupFilter::Only(groups.into_iter().chain([String::new()]).collect()),
    }
}

/// `None` is the whole cluster.
async fn namespaces_of(
    cluster: &dyn Cluster,
    scope: &Scope,
    known: &[Resource],
) -> Result<Option<BTreeSet<String>>, ApiError> {
    let Scope::Namespaces(patterns) = scope else { return Ok(None) };
    let patterns = patterns.iter().map(NamespacePattern::new).collect::<Vec<_>>();
    let exact = patterns
        .iter()
        .filter_map(NamespacePattern::exact)
        .map(str::to_owned)
        .collect::<BTreeSet<_>>();
    if patterns.iter().all(|it| it.exact().is_some()) {
        return Ok(Some(exact));
    }
    let is_namespaces = |it: &&Resource| it.group.is_empty() && it.plural == "namespaces";
    let Some(resource) = known.iter().find(is_namespaces) else { return Ok(Some(exact)) };
    let objects = cluster.list(resource, None).await?;
    let names = objects.iter().filter_map(|it| it.header().name.clone());
    Ok(Some(names.filter(|name| patterns.iter().any(|it| it.matches(name))).collect()))
}
