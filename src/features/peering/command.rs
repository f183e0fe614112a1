//! `kopf freeze` and `kopf resume`: write a peering record on behalf of a user, and remove it.

use std::{collections::BTreeSet, sync::Arc};

use super::TARGET;
use crate::logic::{
    discovery::namespaces::NamespacePattern,
    object::resource::Resource,
    replicas::peering::{self, Peer, PeeringRecord, PeeringScope},
};
use crate::ports::{
    Address, ApiError, Clock, Cluster, ErrorClass, GroupFilter, PatchKind, PatchRequest,
};
use crate::sorted::CollectSorted as _;

/// One `kopf freeze` or `kopf resume`.
pub struct Command {
    /// The cluster that contains the peering objects.
    pub cluster: Arc<dyn Cluster>,
    /// The clock for the record.
    pub clock: Clock,
    /// The name of the peering objects.
    pub name: String,
    /// The namespaces whose operators are addressed; `None` addresses cluster-wide operators.
    pub namespaces: Option<Vec<String>>,
    /// The identity that keys the record.
    pub identity: String,
    /// The record to write; `None` removes it.
    pub record: Option<PeeringRecord>,
}

/// The reason why the command failed, completely or partly.
#[derive(Debug, thiserror::Error)]
pub enum CommandProblem {
    /// The cluster does not have the resource.
    #[error(
        "cannot find the peering resource: the cluster has no {kind} in kopf.dev/v1 or zalando.org/v1"
    )]
    NoResource {
        /// The kind that is missing: cluster-wide or namespaced.
        kind: &'static str,
    },
    /// The resource exists, but not its object.
    #[error("there is no {kind} '{name}' {}", place(.namespace.as_deref()))]
    NoObject {
        /// The kind of the missing object.
        kind: &'static str,
        /// The name of the missing object.
        name: String,
        /// The namespace, or a pattern of namespaces.
        namespace: Option<String>,
        /// The group and version of the kind.
        api_version: String,
    },
    /// A request failed for any other reason.
    #[error("{0}")]
    Api(#[from] ApiError),
}

impl CommandProblem {
    /// Returns the next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            CommandProblem::NoResource { .. } => Some(
                "operators of this cluster cannot see each other: install the peering CRDs of Kopf (kopf.dev/v1) first"
                    .into(),
            ),
            CommandProblem::NoObject { kind, name, namespace, api_version } => {
                let namespace = namespace.as_deref().map(|it| format!(", namespace: {it}"));
                Some(format!(
                    "create it, then try again: echo '{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: {name}{}}}}}' \
                     | kubectl apply -f -",
                    namespace.unwrap_or_default()
                ))
            }
            CommandProblem::Api(error) => error.hint.clone(),
        }
    }
}

/// The result for one object.
enum CommandOutcome {
    Written,
    /// The record to remove does not exist; these records do.
    Nothing(Vec<Peer>),
    Missing,
}

impl Command {
    /// Writes or removes the records.
    ///
    /// # Errors
    /// If a request fails, if there is no object at all, or if a namespace given by its exact name has none.
    pub async fn run(&self) -> Result<(), CommandProblem> {
        let clusterwide = self.namespaces.is_none();
        let groups = peering::GROUPS.map(str::to_owned);
        let groups = GroupFilter::Only(groups.into_iter().collect());
        let discovered = self.cluster.discover(&groups).await?;
        if let Some(error) = discovered.failed.into_values().next() {
            return Err(error.into());
        }
        let known = discovered.resources;
        let kind = peering::kind(clusterwide);
        let resources = peering::resources(&known, clusterwide);
        let Some(api_version) = resources.first().map(|it| it.api_version()) else {
            return Err(CommandProblem::NoResource { kind });
        };
        let names = self.present().await?;
        let mut found = BTreeSet::new();
        for place in peering::places(&known, clusterwide, names.as_ref()) {
            match self.visit(&place).await? {
                CommandOutcome::Written => {
                    self.log_success(kind, &place);
                    found.insert(place.1);
                }
                CommandOutcome::Nothing(peers) => {
                    self.log_nothing(kind, &place, &peers);
                    found.insert(place.1);
                }
                CommandOutcome::Missing => {
                    let text = format!(
                        "Keep-alive in '{}' {}: not found.",
                        self.name,
                        whereabouts(&place)
                    );
                    tracing::debug!(target: TARGET, "{text}");
                }
            }
        }
        let missing = |namespace: Option<&str>| CommandProblem::NoObject {
            kind,
            name: self.name.clone(),
            namespace: namespace.map(str::to_owned),
            api_version: api_version.clone(),
        };
        let Some(patterns) = &self.namespaces else {
            return if found.is_empty() { Err(missing(None)) } else { Ok(()) };
        };
        let is_unseen = |it: &&String| !found.iter().flatten().any(|known| **known == ***it);
        let exact =
            patterns.iter().filter(|it| NamespacePattern::new(it.as_str()).exact().is_some());
        if let Some(namespace) = exact.clone().find(is_unseen) {
            return Err(missing(Some(namespace)));
        }
        if found.is_empty() { Err(missing(patterns.first().map(String::as_str))) } else { Ok(()) }
    }

    /// Returns the addressed namespaces. A list of exact names needs no permission to list namespaces.
    async fn present(&self) -> Result<Option<BTreeSet<Arc<str>>>, ApiError> {
        let Some(patterns) = &self.namespaces else { return Ok(None) };
        let patterns: Vec<_> = patterns.iter().map(NamespacePattern::new).collect();
        let exact = patterns.iter().map(NamespacePattern::exact).collect::<Option<Vec<_>>>();
        if let Some(names) = exact {
            return Ok(Some(names.into_iter().map(Arc::from).collect()));
        }
        let resource = Resource {
            version: "v1".into(),
            plural: "namespaces".into(),
            kind: "Namespace".into(),
            singular: "namespace".into(),
            ..Resource::default()
        };
        let all = self.cluster.list(&resource, None).await?;
        let names = all.iter().filter_map(|it| it.header().name.clone());
        let names = names.filter(|name| patterns.iter().any(|it| it.matches(name)));
        Ok(Some(names.map(Arc::from).collect_set()))
    }

    async fn visit(&self, place: &PeeringScope) -> Result<CommandOutcome, ApiError> {
        let (resource, namespace) = place;
        let namespace = namespace.as_deref();
        let now = self.clock.now();
        let payload = if let Some(record) = &self.record {
            peering::announcement(&self.identity, record, now)
        } else {
            let address = Address { resource, namespace, name: &self.name };
            let found = absent(self.cluster.get(address).await)?;
            let Some(object) = found else { return Ok(CommandOutcome::Missing) };
            let peers = Peer::all_of(object.body(), now);
            if !peers.iter().any(|it| it.identity == self.identity) {
                return Ok(CommandOutcome::Nothing(peers));
            }
            peering::removal([self.identity.as_str()])
        };
        let request = PatchRequest {
            resource,
            namespace,
            name: &self.name,
            subresource: resource.subresources.contains("status").then_some("status"),
            kind: PatchKind::Merge,
            payload: payload.to_string().into(),
            interrupt: None,
        };
        let patched = absent(self.cluster.patch(request).await)?;
        Ok(if patched.is_some() { CommandOutcome::Written } else { CommandOutcome::Missing })
    }

    fn log_success(&self, kind: &str, place: &PeeringScope) {
        let (name, identity, place) = (&self.name, &self.identity, whereabouts(place));
        tracing::debug!(target: TARGET, "Keep-alive in '{name}' {place}: ok.");
        let text = if let Some(PeeringRecord { priority, lifetime, .. }) = &self.record {
            let seconds = lifetime.as_secs();
            format!(
                "Frozen for {seconds} s: operators with a priority below {priority} pause because of the record of '{identity}' \
                 in the {kind} '{name}' {place}."
            )
        } else {
            format!("Resumed: removed the record of '{identity}' from the {kind} '{name}' {place}.")
        };
        tracing::info!(target: TARGET, "{text}");
    }

    fn log_nothing(&self, kind: &str, place: &PeeringScope, peers: &[Peer]) {
        let texts: Vec<_> = peers.iter().map(ToString::to_string).collect();
        tracing::warn!(
            target: TARGET,
            "Nothing to resume: the {kind} '{}' {} has no record of '{}'. Its records: [{}]; choose one with --id.",
            self.name,
            whereabouts(place),
            self.identity,
            texts.join(", ")
        );
    }
}

fn absent<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.class == ErrorClass::Missing => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the namespace, and the API version if the group is the old one.
fn whereabouts((resource, namespace): &PeeringScope) -> String {
    let place = place(namespace.as_deref());
    if resource.group == peering::GROUPS[0] {
        place
    } else {
        format!("{place} ({})", resource.api_version())
    }
}

fn place(namespace: Option<&str>) -> String {
    peering::scope_text(namespace)
}
