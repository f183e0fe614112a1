//! The permissions that an operator needs, because of its handlers, its options, and the calls of `kube.*` in its scripts.

use std::{collections::BTreeSet, path::Path};

use super::{
    permissions::{PermissionScope, PermissionTarget, Permissions},
    survey::Survey,
    templates::{templates_of, texts_of},
};
use crate::cli::{args::InstallArgs, options::ScopeOption, report::Report};
use crate::logic::{
    handlers::{
        handler::{Category, Handler, Kind, Role},
        selector::Selector,
    },
    object::resource::Resource,
};
use crate::reactor::stores_digests;
use crate::scripting::{KubeCall, KubeCalls, KubeTarget, Source, kinds_in_yaml, kube_calls};
use crate::sorted::CollectSorted as _;

/// The needs of the functions of `kube`: verbs, and a subresource.
pub(super) const CALLS: [(&str, &[&str], &str); 23] = [
    ("get", &["get"], ""),
    ("secret", &["get"], ""),
    ("apply_crd", &["get", "patch", "create"], ""),
    ("list", &["list"], ""),
    ("create", &["create"], ""),
    // Server-side apply creates objects that do not exist.
    ("apply", &["patch", "create"], ""),
    ("patch", &["patch"], ""),
    ("replace", &["update"], ""),
    ("delete", &["delete"], ""),
    ("watch", &["list", "watch"], ""),
    ("wait", &["list", "watch"], ""),
    ("logs", &["get"], "log"),
    // The upgrade to a WebSocket is a GET; since Kubernetes 1.35 it needs both.
    ("exec", &["get", "create"], "exec"),
    ("copy_to", &["get", "create"], "exec"),
    ("copy_from", &["get", "create"], "exec"),
    ("run", &["get", "create", "delete"], ""),
    ("run (pods)", &["list"], ""),
    ("run (log)", &["get"], "log"),
    ("run (files)", &["get", "create", "delete"], ""),
    ("scale", &["patch"], "scale"),
    ("evict", &["create"], "eviction"),
    // Every authenticated user may send these requests.
    ("can_i", &[], ""),
    ("version", &[], ""),
];

/// The verbs that a reconcile handler needs for its children: server-side apply creates objects that do not exist.
const CHILDREN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// Resources that grant permissions, and the verbs for users who do not have these permissions themselves.
const GRANTING: [(&str, &str); 4] = [
    ("clusterrolebindings", "bind"),
    ("clusterroles", "escalate"),
    ("rolebindings", "bind"),
    ("roles", "escalate"),
];

/// The installer of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Installer {
    /// The operator configures its webhooks itself.
    Kopf,
    /// The Operator Lifecycle Manager configures its webhooks.
    Olm,
}

/// The needs of an operator.
pub(in crate::cli) struct Needs {
    pub(in crate::cli) permissions: Permissions,
    /// Messages about needs that could not be determined.
    pub(in crate::cli) warnings: Vec<String>,
    /// The code that writes roles or bindings of roles: its description, the resource, and the verb that it needs.
    granting: BTreeSet<(String, String, &'static str)>,
}

impl Needs {
    /// Returns the needs of these scripts with these options, with the permissions that the user adds.
    pub(in crate::cli) fn of(survey: &Survey, args: &InstallArgs) -> Result<Self, Report> {
        Needs::by(Installer::Kopf, survey, args)
    }

    /// Returns the needs of these scripts if this installer installs them.
    pub(in crate::cli) fn by(
        installer: Installer,
        survey: &Survey,
        args: &InstallArgs,
    ) -> Result<Self, Report> {
        let mut needs = Needs {
            permissions: Permissions::default(),
            warnings: survey.warnings.clone(),
            granting: BTreeSet::new(),
        };
        needs.add_reactor(survey, args.replicas);
        if installer == Installer::Kopf {
            needs.add_webhooks(survey);
        }
        for handler in survey.registry.handlers() {
            needs.add_handler(survey, handler);
        }
        for source in &survey.sources {
            needs.add_script(survey, source);
        }
        for text in &args.also {
            needs.add_given(survey, text)?;
        }
        let is_given = |verb: &str| args.also.iter().any(|it| it.contains(verb));
        let left = needs.granting.iter().filter(|(_, _, verb)| !is_given(verb));
        needs.warnings.extend(left.map(|(what, resource, verb)| {
            let of = if *verb == "bind" { "clusterroles" } else { resource };
            format!(
                "{what} writes {resource}: an API server accepts only permissions that the operator has. \
                 Add them, or --also {verb}:{of}.rbac.authorization.k8s.io."
            )
        }));
        Ok(needs)
    }

    /// Adds a permission of a resource.
    fn add(&mut self, resource: &Resource, subresource: &str, verbs: &[&str], reason: &str) {
        let place =
            if resource.namespaced { PermissionScope::Served } else { PermissionScope::Cluster };
        let mut name = resource.plural.clone();
        if !subresource.is_empty() {
            name = format!("{name}/{subresource}");
        }
        self.permissions.add(PermissionTarget::new(place, &resource.group, &name), verbs, reason);
    }

    /// Records that something writes roles or bindings of roles.
    fn note_granting(&mut self, resource: &Resource, verbs: &[&str], what: &str) {
        let writes = verbs.iter().any(|it| ["create", "patch", "update"].contains(it));
        let granting = GRANTING.iter().find(|it| it.0 == resource.plural).filter(|_| writes);
        if let Some((plural, verb)) = granting {
            self.granting.insert((what.to_owned(), (*plural).to_owned(), verb));
        }
    }

    /// Adds the needs of every operator with these options.
    fn add_reactor(&mut self, survey: &Survey, replicas: u16) {
        use PermissionScope::{Cluster, Own, Served};
        let settings = &survey.options.settings;
        let all = &mut self.permissions;
        let mut add = |place, group: &str, resource: &str, verbs: &[&str], reason: &str| {
            all.add(PermissionTarget::new(place, group, resource), verbs, reason);
        };
        let crds = ("apiextensions.k8s.io", "customresourcedefinitions");
        add(Cluster, crds.0, crds.1, &["list", "watch"], "which kinds exist");
        if matches!(survey.options.scope, ScopeOption::Namespaces(_)) {
            add(Cluster, "", "namespaces", &["list", "watch"], "which namespaces exist");
        }
        if settings.posting.enabled {
            add(Served, "", "events", &["create", "patch"], "events about objects and failures");
        }
        if settings.leadership.enabled || replicas > 1 {
            let verbs = &["get", "create", "update"];
            add(Own, "coordination.k8s.io", "leases", verbs, "leader election");
        }
        if survey.registry.handlers().iter().any(|it| it.kind.is_scheduled()) {
            let verbs = &["get", "create", "update"];
            add(Own, "coordination.k8s.io", "leases", verbs, "slots of schedules");
        }
        let peering = &settings.peering;
        if peering.detect_duplicates && !settings.leadership.enabled && replicas <= 1 {
            let verbs = &["get", "create", "update"];
            add(Own, "coordination.k8s.io", "leases", verbs, "notice of a second operator");
        }
        if peering.mandatory && !peering.standalone {
            let (place, plural) = if peering.clusterwide {
                (Cluster, "clusterkopfpeerings")
            } else {
                (Served, "kopfpeerings")
            };
            add(place, "kopf.dev", plural, &["get", "list", "watch", "patch"], "peering");
        }
        if stores_digests(&survey.options.settings.persistence, &survey.registry) {
            add(Own, "", "secrets", &["get", "create"], "the key for digests of secret values");
        }
    }

    /// Adds the needs of an operator that configures its webhooks.
    fn add_webhooks(&mut self, survey: &Survey) {
        use PermissionScope::{Cluster, Own};
        let all = &mut self.permissions;
        let mut add = |place, group: &str, resource: &str, verbs: &[&str], reason: &str| {
            all.add(PermissionTarget::new(place, group, resource), verbs, reason);
        };
        let has =
            |category| survey.registry.handlers().iter().any(|it| it.kind.category() == category);
        if has(Category::Admission) {
            let verbs = &["get", "list", "watch", "create", "patch"];
            for plural in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
                add(Cluster, "admissionregistration.k8s.io", plural, verbs, "admission webhooks");
            }
        } else if has(Category::Conversion) {
            for plural in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
                let reason = "webhooks of earlier handlers";
                add(Cluster, "admissionregistration.k8s.io", plural, &["list", "watch"], reason);
            }
        }
        if has(Category::Conversion) {
            add(
                Cluster,
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                &["get", "patch"],
                "conversion webhooks",
            );
        }
        if has(Category::Admission) || has(Category::Conversion) {
            let verbs = &["get", "create", "update"];
            add(Own, "", "secrets", verbs, "certificates of webhooks");
        }
    }

    /// Adds the needs of the operator for the objects of a handler.
    fn add_handler(&mut self, survey: &Survey, handler: &Handler) {
        let relation = handler.relation.as_ref();
        let id = relation.map_or(&*handler.id, |it| {
            it.reconciler.split_once('@').map_or(&*it.reconciler, |(id, _)| id)
        });
        let reason = format!("handler '{id}' ({})", handler.location);
        if relation.is_some_and(|it| it.role == Role::Owned) {
            for resource in survey.resources_of(handler) {
                self.note_granting(
                    resource,
                    CHILDREN,
                    &format!("{}: handler '{id}'", handler.location),
                );
                self.add(resource, "", CHILDREN, &reason);
            }
            return;
        }
        let (writes, writes_status) = match handler.kind.category() {
            Category::Spawning if handler.kind == Kind::Reconcile => {
                let patches = mentions(survey, handler, &[".patch"]);
                let is_told = patches || mentions(survey, handler, &["status", "conditions"]);
                (patches || handler.requires_finalizer(), is_told)
            }
            // Results of handlers, and records of older operators, are in the status.
            Category::Changing | Category::Spawning => (true, true),
            Category::Watching => {
                let patches = mentions(survey, handler, &[".patch"]);
                (patches, patches)
            }
            Category::Indexing => (false, false),
            Category::Activity | Category::Admission | Category::Conversion => return,
        };
        for resource in survey.resources_of(handler) {
            let has_status = resource.subresources.contains("status");
            let mut verbs = vec!["list", "watch"];
            if writes || (writes_status && !has_status) {
                verbs.push("patch");
            }
            if writes || writes_status {
                // An object is read again after a conflict.
                verbs.push("get");
            }
            self.add(resource, "", &verbs, &reason);
            if writes_status && has_status {
                self.add(resource, "status", &["patch"], &reason);
            }
        }
    }

    /// Adds the needs of the calls of `kube.*` in a script and its modules.
    fn add_script(&mut self, survey: &Survey, source: &Source) {
        let files: BTreeSet<KubeTarget> =
            templates_of(source).values().flat_map(|it| kinds_in_yaml(it)).collect_set();
        for (name, text) in texts_of(source) {
            let extension = Path::new(&name).extension().and_then(|it| it.to_str());
            let mut found = kube_calls(extension.unwrap_or_default(), &text);
            let targets = found.calls.iter_mut().map(|it| &mut it.targets);
            for targets in targets.chain([&mut found.objects]) {
                if targets.remove(&KubeTarget::Files) {
                    targets.extend(files.iter().cloned());
                }
            }
            for call in &found.calls {
                self.add_call(survey, &name, call, &found);
            }
        }
    }

    fn add_call(&mut self, survey: &Survey, name: &str, call: &KubeCall, all: &KubeCalls) {
        let KubeCall { function, line, subresource, targets } = call;
        let Some((_, verbs, fixed)) = CALLS.iter().find(|(it, ..)| it == function) else { return };
        if verbs.is_empty() {
            return;
        }
        let place = format!("{name}:{line}");
        let reason = format!("kube.{function} ({place})");
        let below =
            if fixed.is_empty() { subresource.as_deref().unwrap_or_default() } else { fixed };
        if targets.is_empty() {
            let known = if all.objects.is_empty() {
                "Add its permissions with --also"
            } else {
                "Permissions were added for all kinds that are literals in the script; add others with --also"
            };
            self.warnings.push(format!(
                "{place}: the kind that kube.{function} uses is only known when it is called. {known}, such as --also {}:RESOURCE.",
                verbs.join(",")
            ));
        }
        for target in if targets.is_empty() { &all.objects } else { targets } {
            let resources = resources(survey, target);
            if resources.is_empty() {
                self.warnings.push(format!(
                    "{place}: kube.{function} uses {}, which no CRD defines. Pass --crd FILE, or add --also {}:RESOURCE.",
                    told(target),
                    verbs.join(",")
                ));
            }
            for resource in resources {
                self.note_granting(resource, verbs, &format!("{place}: kube.{function}"));
                self.add(resource, below, verbs, &reason);
            }
        }
    }

    /// Adds the permissions that the user has given: `get,list:secrets`, `patch:deployments.apps/scale`.
    fn add_given(&mut self, survey: &Survey, text: &str) -> Result<(), Report> {
        let wrong = |problem: &str| {
            Report::usage(format!("--also {text}: {problem}")).with_hint(
                "write it as VERBS:RESOURCE, such as get,list:secrets or create:jobs.batch",
            )
        };
        let (verbs, name) = text.split_once(':').ok_or_else(|| wrong("no resource is named"))?;
        let verbs: Vec<_> = verbs.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if verbs.is_empty() {
            return Err(wrong("no verb is named"));
        }
        let (name, below) = name.split_once('/').unwrap_or((name, ""));
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let known = survey.known.iter().find(|it| it.plural == plural && it.group == group);
        let assumed = Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            ..Resource::default()
        };
        self.add(known.unwrap_or(&assumed), below, &verbs, "--also");
        Ok(())
    }
}

/// Returns whether the script of a handler, or a module of it, contains one of these words.
fn mentions(survey: &Survey, handler: &Handler, words: &[&str]) -> bool {
    let sources = survey.sources.iter().filter(|it| it.name == handler.file());
    let mut texts = sources.flat_map(texts_of);
    texts.any(|(_, text)| words.iter().any(|it| text.contains(it)))
}

/// Returns the resources of a target.
fn resources<'a>(survey: &'a Survey, target: &KubeTarget) -> Vec<&'a Resource> {
    match target {
        KubeTarget::Handled => {
            let handlers = survey.registry.handlers().iter();
            handlers.flat_map(|it| survey.resources_of(it)).collect()
        }
        KubeTarget::Object { api_version, kind } => {
            let is_it = |it: &&Resource| it.api_version() == *api_version && it.kind == *kind;
            survey.known.iter().filter(is_it).collect()
        }
        // The caller adds the kinds in the files.
        KubeTarget::Files => Vec::new(),
        KubeTarget::Resource(words) => {
            let selector = Selector::of_text(&words.join("/"));
            let found = selector.map(|it| it.select(&survey.known, &|_, _| false));
            found.unwrap_or_default().into_iter().filter(|it| it.preferred).collect()
        }
    }
}

fn told(target: &KubeTarget) -> String {
    match target {
        KubeTarget::Handled => "the object of the handler".into(),
        KubeTarget::Object { api_version, kind } => format!("{kind} of {api_version}"),
        KubeTarget::Files => "the objects of its templates".into(),
        KubeTarget::Resource(words) => format!("'{}'", words.join("/")),
    }
}
