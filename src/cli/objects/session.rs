//! The connection of the commands about objects, and how they find the objects.

use std::sync::Arc;

use serde_json::Value;

use super::args::ObjectArgs;
use crate::cli::{
    options::{self, LogOptions},
    report::{Exit, Report},
    run,
    shared_args::ClusterArgs,
};
use crate::cluster::ConnectOptions;
use crate::logic::{
    access::kube::{KnownResources, ResourceRef, read_raw_list},
    handlers::selector::Selector,
    object::{Object, resource::Resource},
};
use crate::ports::{Address, ApiError, Clock, Cluster, Demand, ErrorClass, GroupFilter, Verb};
use crate::reactor::Connecting;
use crate::settings::Settings;

/// Maximum number of objects in one response to a list: in a large cluster, more would exceed the limit of a response.
const PAGE: &str = "500";

/// A connected command with its objects.
pub(in crate::cli) struct ObjectSession {
    pub(in crate::cli) cluster: Arc<dyn Cluster>,
    pub(in crate::cli) resource: Resource,
    /// The objects, in the order of the server.
    pub(in crate::cli) objects: Vec<Object>,
}

/// The target as typed: a kind, and perhaps a name.
#[derive(Debug, PartialEq)]
pub(super) struct ObjectTarget<'a> {
    pub(super) kind: &'a str,
    pub(super) name: Option<&'a str>,
}

impl<'a> ObjectTarget<'a> {
    /// Reads `KIND` or `KIND/NAME`.
    pub(super) fn of(text: &'a str) -> Result<Self, Report> {
        let (kind, name) = match text.split_once('/') {
            None => (text, None),
            Some((kind, name)) => (kind, Some(name)),
        };
        let is_wrong = |it: &str| it.is_empty() || it.contains(['/', ' ']);
        if is_wrong(kind) || name.is_some_and(is_wrong) {
            let report = Report::usage(format!("'{}' is not an object", text.escape_debug()));
            return Err(report.with_hint("write KIND or KIND/NAME, such as kopfexamples/my-object"));
        }
        Ok(ObjectTarget { kind, name })
    }
}

impl ObjectSession {
    /// Connects, and reads the objects.
    pub(super) async fn open(args: &ObjectArgs) -> Result<Self, Report> {
        let target = ObjectTarget::of(&args.target)?;
        let wanted = Selector::of_text(target.kind).map_err(|it| Report::usage(it.to_string()))?;
        let cluster = connect(&args.cluster).await?;
        let resource = resource(&*cluster, wanted).await?;
        let objects = objects(&*cluster, &resource, args, target.name).await?;
        Ok(ObjectSession { cluster, resource, objects })
    }

    /// Reads the objects again.
    pub(super) async fn refresh(&mut self, args: &ObjectArgs) -> Result<(), Report> {
        let name = ObjectTarget::of(&args.target)?.name;
        self.objects = objects(&*self.cluster, &self.resource, args, name).await?;
        Ok(())
    }

    /// Returns the object for messages: `kopfexamples/NAME`, with the namespace if there is one.
    pub(in crate::cli) fn shown(&self, object: &Object) -> String {
        let header = object.header();
        let name = header.name.as_deref().unwrap_or_default();
        let place = header.namespace.as_deref().map(|it| format!(" -n {it}")).unwrap_or_default();
        format!("{}/{name}{place}", self.resource.plural)
    }

    /// Returns the address of an object.
    pub(super) fn address<'a>(&'a self, object: &'a Object) -> Address<'a> {
        let header = object.header();
        Address {
            resource: &self.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
        }
    }
}

/// Runs a command that connects to a cluster. Only problems are logged.
pub(in crate::cli) fn connected(
    work: impl Future<Output = Result<Exit, Report>>,
) -> Result<Exit, Report> {
    let log = LogOptions::of_commands();
    let _log = run::start_log(&log, &[], Clock::system())?;
    run::on_runtime(&log, work)
}

/// Connects to the cluster that the options name.
pub(in crate::cli) async fn connect(args: &ClusterArgs) -> Result<Arc<dyn Cluster>, Report> {
    let overrides = options::overrides(args.clone());
    if let Some((name, files)) = overrides.ambiguous_context() {
        let files = files.iter().map(|it| it.display().to_string()).collect::<Vec<_>>();
        let text = format!("several files define the context '{name}': {}", files.join(", "));
        return Err(Report::usage(text).with_hint("choose one of them with --kubeconfig"));
    }
    let connect = run::connect(ConnectOptions { overrides, ..ConnectOptions::default() }, None);
    let mut settings = Settings::default();
    // Does not retry failed requests, because a person waits for the response.
    settings.networking.error_backoffs = Vec::new();
    connect(Connecting { settings, login: None }).await.map_err(report)
}

async fn resource(cluster: &dyn Cluster, wanted: Selector) -> Result<Resource, Report> {
    let discovered = cluster.discover(&GroupFilter::All).await.map_err(report)?;
    let mut known = KnownResources::default();
    known.learn(None, discovered.resources);
    let wanted = ResourceRef::Selector(wanted);
    match known.find(&wanted) {
        Some(Ok(resource)) => Ok(Resource::clone(&resource)),
        Some(Err(unresolved)) => Err(Report::failure(unresolved.message(&wanted))),
        None => Err(Report::failure(format!("the cluster has no resource {wanted}"))),
    }
}

async fn objects(
    cluster: &dyn Cluster,
    resource: &Resource,
    args: &ObjectArgs,
    name: Option<&str>,
) -> Result<Vec<Object>, Report> {
    let own = args.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
    let namespace = (resource.namespaced && !args.all_namespaces).then_some(own);
    let Some(name) = name else {
        return cluster.list(resource, namespace).await.map_err(report);
    };
    if resource.namespaced && args.all_namespaces {
        let report = Report::usage("-A cannot be used with the name of an object");
        return Err(report.with_hint("name its namespace with -n"));
    }
    match cluster.get(Address { resource, namespace, name }).await {
        Ok(object) => Ok(vec![object]),
        Err(error) if error.class == ErrorClass::Missing => {
            let place = namespace.map(|it| format!(" in the namespace '{it}'")).unwrap_or_default();
            let text = format!("{}/{name} does not exist{place}", resource.plural);
            Err(Report::failure(text).with_hint("name another namespace with -n"))
        }
        Err(error) => Err(report(error)),
    }
}

/// Returns all objects of a collection, as the server has them, with `metadata.managedFields`. `options` are query parameters.
pub(in crate::cli) async fn pages(
    cluster: &dyn Cluster,
    resource: &Arc<Resource>,
    (namespace, options): (Option<&str>, &[(&'static str, String)]),
) -> Result<Vec<Value>, ApiError> {
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let mut query = options.to_vec();
        query.push(("limit", PAGE.to_owned()));
        if !next.is_empty() {
            query.push(("continue", next));
        }
        let demand = Demand {
            verb: Verb::List,
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            name: None,
            subresource: None,
            query,
            content: None,
        };
        let response = cluster.ask(demand).await?;
        let page = read_raw_list(&response).map_err(|it| unexpected(&it))?;
        found.extend(page.objects);
        let Some(token) = page.token else { return Ok(found) };
        next = token;
    }
}

/// Returns the error of a response that cannot be read.
pub(in crate::cli) fn unexpected(problem: &serde_json::Error) -> ApiError {
    let message = format!("unexpected response of the server: {problem}");
    let hint = Some("is there a proxy between kopf and the API server?".to_owned());
    ApiError { class: ErrorClass::Fatal, status: None, message, hint, answer: None }
}

/// Returns the resource of events.
pub(super) fn events() -> Resource {
    Resource {
        version: "v1".into(),
        plural: "events".into(),
        kind: "Event".into(),
        namespaced: true,
        ..Resource::default()
    }
}

/// Returns the report of a failed request.
pub(in crate::cli) fn report(error: ApiError) -> Report {
    // A message of a server must not look like several lines.
    let report = Report::failure(error.message.replace('\n', "\n    "));
    match error.hint {
        Some(hint) => report.with_hint(hint),
        None => report,
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectTarget;

    #[test]
    fn a_target_is_a_kind_or_one_object() {
        let of =
            |text| ObjectTarget::of(text).map(|it| (it.kind, it.name)).map_err(|it| it.message);
        assert_eq!(of("kex"), Ok(("kex", None)));
        assert_eq!(of("databases.example.com/a"), Ok(("databases.example.com", Some("a"))));
        for wrong in ["", "/", "kex/", "/a", "a/b/c", "a b", "kex/a b\u{1b}"] {
            assert!(of(wrong).is_err_and(|it| it.ends_with("is not an object")), "{wrong:?}");
        }
    }
}
