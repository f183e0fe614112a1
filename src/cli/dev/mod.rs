//! `kopf dev`: an operator and a Kubernetes API server for it in one process.
//!
//! The operator calls the server directly; the socket is for `kubectl` and other clients. All errors that can be detected early
//! (scripts, files, the port) are reported before anything runs.

mod access;
mod apply;
mod data;
pub(super) mod documents;
mod files;
mod kinds;
mod options;
#[cfg(test)]
mod tests;
pub(super) mod webhooks;

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    apply::{Api, AppliedObject},
    data::DataFile,
    documents::text,
    options::{DevOptions, KubeconfigOption},
};
use crate::cli::{
    health_server::HealthServer,
    logging::Log,
    options::ScopeOption,
    report::{Exit, Report},
    run,
    scripts::{First, UnloadedScripts},
};
use crate::cluster::KubeCluster;
use crate::handling::choosing::Choices;
use crate::logic::{
    discovery::{namespaces::NamespacePattern, served},
    object::resource::Resource,
};
use crate::ports::{Clock, Cluster, GroupFilter};
use crate::reactor::{Connect, Connecting, NamespaceScope};
use crate::settings::Settings;
use crate::sources;
use crate::telemetry::Metrics;
use crate::webhooks::LocalWebhooks;
use kopf_apiserver::{
    ApiServer, User,
    controllers::{self, Controllers},
    kubeconfig::{self, Kubeconfig},
    serve::{self, BindError, Listener},
};

pub(super) use self::{
    access::{DevAccess, client},
    documents::{FileObject, NAMESPACE},
    files::ManifestFiles,
    options::resolve,
};

/// Runs an operator with its own server. Returns the exit code, or why it could not run.
pub(super) fn run(options: &DevOptions) -> Result<Exit, Report> {
    let clock = Clock::system();
    let read = UnloadedScripts::files(&options.run).map_err(not_a_script)?;
    let files = ManifestFiles::read(&options.definitions, &options.objects)?;
    let log = run::start_log(&options.run.log, &options.run.notes, clock)?;
    run::on_runtime(&options.run.log, develop(options, read, files, (clock, &log)))
}

async fn develop(
    options: &DevOptions,
    read: UnloadedScripts,
    files: ManifestFiles,
    (clock, log): (Clock, &Log),
) -> Result<Exit, Report> {
    let signals = run::listen()?;
    let health_server = HealthServer::open(&options.run, clock, log.control()).await?;
    let stamp = move || clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let access = &options.access;
    let local = LocalWebhooks::default();
    let builder = ApiServer::builder().clock(stamp).cluster(true).rbac(access.is_enabled());
    let server = builder.seed(fastrand::u64(..)).webhooks(webhooks::post(&local)).build();
    let data = options.data.as_deref().map(|it| DataFile::open(it, &server)).transpose()?;
    access.apply(&server).await?;
    let read = with_maps(read, options, &server, &files, clock).await?;
    let plan =
        run::load(read, &options.run, scope(&options.run.scope), (clock, &health_server.health))
            .await?;
    let listener = listen(options.port).await?;
    let filled = fill(&server, &plan.first, &files).await?;
    let mut kubeconfig = take(&options.kubeconfig)?;
    let written = kubeconfig.write(&listener.url());
    written.map_err(|it| Report::failure(it.to_string()))?;

    let kept = options.data.as_deref().zip(data.as_ref().map(|(_, count)| *count));
    StartMessage { url: listener.url(), kubeconfig: kubeconfig.path(), kept, filled: &filled }
        .print();
    filled.log();
    access.log();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(listener.serve(server.clone(), stop.clone()));
    tasks.spawn(files.follow(Api::new(server.clone()), stop.clone()));
    if options.controllers {
        tasks.spawn(run_controllers(server.clone(), stop.clone()));
    }
    if let Some((data, _)) = &data {
        tasks.spawn(data.clone().keep(server.clone(), stop.clone()));
    }
    let plan = plan.with_webhooks(Arc::new(local));
    let metrics = health_server.health.metrics().clone();
    let connecting = connect(server.clone(), access.user(), metrics);
    let ended = run::operate(plan, connecting, health_server, signals).await;
    stop.cancel();
    if !matches!(ended, Ok(Exit::Killed(_))) {
        while tasks.join_next().await.is_some() {}
    }
    let saved = data.map_or(Ok(()), |(data, _)| data.finish(&server));
    ended.and_then(|exit| saved.map(|()| exit))
}

/// Runs the controllers of pods, deployments and the like, until `stop`.
async fn run_controllers(server: ApiServer, stop: CancellationToken) {
    tokio::select! {
        biased; // the stop signal first
        () = stop.cancelled() => {}
        () = controllers::run(server, Controllers::ALL) => {}
    }
}

/// Returns the error for a CRD or an object where scripts are expected.
fn not_a_script(error: sources::Error) -> Report {
    let is_data = |path: &Path| {
        path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json")
    };
    if let sources::Error::UnknownLanguage(path) = &error
        && is_data(path)
    {
        let hint = "pass CRD files with --crd, and files of objects with --apply";
        return Report::failure(error.to_string()).with_hint(hint);
    }
    error.into()
}

/// Serves all namespaces without a warning: they belong to the user.
pub(super) fn scope(option: &ScopeOption) -> NamespaceScope {
    match option {
        ScopeOption::Cluster | ScopeOption::Unsaid => NamespaceScope::Cluster,
        ScopeOption::Namespaces(patterns) => {
            NamespaceScope::Namespaces(patterns.iter().map(NamespacePattern::new).collect())
        }
    }
}

/// Connects to a server in this process, as this user.
pub(super) fn connect(server: ApiServer, user: Option<&User>, metrics: Metrics) -> Connect {
    let user = user.cloned();
    Box::new(move |Connecting { settings, login }| {
        let client = client(server.clone(), user.as_ref());
        let metrics = metrics.clone();
        Box::pin(async move {
            if login.is_some() {
                tracing::info!(
                    target: "kopf.dev",
                    "The local server needs no authentication: login handlers are not called."
                );
            }
            let cluster = KubeCluster::counted(client, Arc::new(settings), metrics);
            Ok(Arc::new(cluster) as Arc<dyn Cluster>)
        })
    })
}

async fn listen(port: u16) -> Result<Listener, Report> {
    let options = serve::ServeOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        beyond_loopback: false,
    };
    Listener::bind(options).await.map_err(|problem| {
        let report = Report::failure(problem.to_string());
        match problem {
            BindError::Taken(_) => {
                report.with_hint("choose another --port, or omit it to use a free one")
            }
            BindError::Exposed(_) | BindError::Refused { .. } => report,
        }
    })
}

fn take(option: &KubeconfigOption) -> Result<Kubeconfig, Report> {
    let taken = match option {
        KubeconfigOption::File(path) => Kubeconfig::at(path),
        KubeconfigOption::Within(directory) => Kubeconfig::within(directory),
    };
    taken.map_err(|problem| {
        let report = Report::failure(problem.to_string());
        match problem {
            kubeconfig::Error::Foreign(_) | kubeconfig::Error::InUse(_) => {
                report.with_hint("choose another file with --write-kubeconfig, or omit the option")
            }
            kubeconfig::Error::Unusable { .. } => report,
        }
    })
}

/// The content of the server before the operator starts.
pub(super) struct Filled {
    /// The applied objects, with their documents.
    applied: Vec<(AppliedObject, FileObject)>,
    made_up: Vec<kinds::Definition>,
    /// The resources that handlers are called for.
    resources: Vec<Resource>,
}

/// Applies the namespaces and `ConfigMap`s of the files, and reads the scripts in them: they determine which CRDs are missing.
async fn with_maps(
    read: UnloadedScripts,
    options: &DevOptions,
    server: &ApiServer,
    files: &ManifestFiles,
    clock: Clock,
) -> Result<UnloadedScripts, Report> {
    if options.run.scripts.maps.is_empty() {
        return Ok(read);
    }
    let api = Api::new(server.clone());
    let is_needed =
        |it: &&FileObject| matches!(text(&it.object, "/kind"), "Namespace" | "ConfigMap");
    for document in files.documents().iter().filter(is_needed) {
        api.apply(document).await?;
    }
    read.maps(&options.run, Some(&cluster(server)), clock).await
}

/// Creates the CRDs first, then the missing ones, then the objects.
pub(super) async fn fill(
    server: &ApiServer,
    first: &First,
    files: &ManifestFiles,
) -> Result<Filled, Report> {
    let api = Api::new(server.clone());
    let cluster = cluster(server);
    files.warn_of_empty();
    let (definitions, objects) = files.by_rank();
    let mut applied = Vec::new();
    for document in definitions {
        applied.push((api.apply(document).await?, document.clone()));
    }
    let made_up = kinds::missing(&first.registry, &known(&cluster).await?, files.documents());
    for definition in &made_up {
        let place = definition.name();
        api.apply(&FileObject { place, object: definition.to_crd() }).await?;
    }
    for document in objects {
        applied.push((api.apply(document).await?, document.clone()));
    }
    let resources = choose(first, &known(&cluster).await?).await;
    Ok(Filled { applied, made_up, resources })
}

/// The resources of a cluster with the CRDs of an operator.
pub(super) struct Kinds {
    pub(super) known: Vec<Resource>,
    /// The names of resources whose group is unknown.
    pub(super) assumed: Vec<String>,
}

/// Returns the resources that the handlers of scripts can have, without a cluster.
pub(super) async fn kinds_for(first: &First, files: &ManifestFiles) -> Result<Kinds, Report> {
    let server = ApiServer::builder().cluster(true).build();
    let filled = fill(&server, first, files).await?;
    let assumed = filled.made_up.iter().filter(|it| !it.has_group).map(kinds::Definition::name);
    Ok(Kinds { known: known(&cluster(&server)).await?, assumed: assumed.collect() })
}

fn cluster(server: &ApiServer) -> KubeCluster {
    KubeCluster::over(Client::new(server.clone(), NAMESPACE), Arc::new(Settings::default()))
}

async fn known(cluster: &KubeCluster) -> Result<Vec<Resource>, Report> {
    let known = cluster.discover(&GroupFilter::All).await.map(|it| it.resources);
    known.map_err(|problem| Report::failure(problem.message))
}

async fn choose(first: &First, known: &[Resource]) -> Vec<Resource> {
    let mut choices = Choices::default();
    let First { host, registry, .. } = first;
    choices.ask(host.as_ref(), registry, known).await;
    let served = served::choose(registry, known, &|function, it| choices.of(function, it));
    if !served.resources.is_empty() {
        return served.resources.into_iter().collect();
    }
    // Handlers that only review requests are not called for events.
    let handlers = registry.handlers().iter();
    let selectors = handlers.filter_map(|it| it.selector.as_ref());
    let reviewed = selectors.flat_map(|it| it.select(known, &|_, _| false));
    reviewed.cloned().collect()
}

impl Filled {
    fn log(&self) {
        for definition in &self.made_up {
            let (name, kind) = (definition.name(), &definition.kind);
            let versions = definition.versions.iter().map(String::as_str).collect::<Vec<_>>();
            let versions = versions.join(", ");
            tracing::info!(
                target: "kopf.dev",
                "No CRD for {name}: serving a permissive one ({kind}, {versions}). Pass --crd FILE to use your own."
            );
        }
        for (applied, document) in &self.applied {
            files::log(applied, document);
        }
    }
}

/// The output for the user at the start.
struct StartMessage<'a> {
    url: String,
    kubeconfig: &'a Path,
    /// The data file, and the number of objects in it.
    kept: Option<(&'a Path, usize)>,
    filled: &'a Filled,
}

impl StartMessage<'_> {
    /// Writes to stdout, to keep the log separate. A closed stdout is ignored.
    fn print(&self) {
        let _closed = write!(std::io::stdout(), "{}", self.text()).is_err();
    }

    fn text(&self) -> String {
        let objects = match self.kept {
            Some((path, 0)) => format!("Objects are persisted in {}.", path.display()),
            Some((path, count)) => {
                format!("Objects are persisted in {}; {count} were loaded.", path.display())
            }
            None => "Objects are kept in memory; use --data FILE to persist them.".to_owned(),
        };
        let plurals = self.filled.resources.iter().map(|it| it.plural.as_str());
        let example = plurals.take(1).collect::<String>();
        let example = if example.is_empty() { "all" } else { &example };
        let (url, kubeconfig) = (&self.url, quoted(&self.kubeconfig.display().to_string()));
        format!(
            "Local Kubernetes API server: {url}. {objects}\n\
             To use it in another terminal:\n\n  \
               export KUBECONFIG={kubeconfig}\n  \
               kubectl get {example}\n\n\
             Press Ctrl+C to stop.\n\n"
        )
    }
}

/// Returns a word quoted for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:@%".contains(it);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
