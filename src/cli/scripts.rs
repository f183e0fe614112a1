//! Loads the first set of scripts from the options, and creates the sources of later changes.

use std::{path::Path, sync::Arc};

use crate::checker;
use crate::cli::{args::LogFormat, env::variables, options::RunOptions, report::Report};
use crate::cluster::{ConnectOptions, KubeCluster, pod_namespace};
use crate::logic::{
    access::grants::Grants,
    admission::{
        guard::{Guarded, GuardedMaps},
        own_objects::{OwnObject, OwnObjects},
    },
    change::registry::Registry,
    handlers::handler::Kind,
};
use crate::ports::{Clock, Cluster};
use crate::scripting::{Placement, Prepared, ScriptHost, Source, Terms};
use crate::sources::{self, LoadAttempt, MapGuard, Maps, ScriptFiles, Sources};

/// Scripts that were read, but not loaded yet.
pub(super) struct UnloadedScripts {
    /// In the order of loading.
    pub(super) scripts: Vec<Source>,
    files: Option<ScriptFiles>,
    maps: Option<Maps>,
}

/// The first generation: the loaded scripts, and the sources of their changes.
pub(super) struct First {
    /// The host of the scripts.
    pub(super) host: Arc<ScriptHost>,
    /// The handlers of all scripts, by resource.
    pub(super) registry: Registry,
    /// The number of scripts.
    pub(super) scripts: usize,
    /// The sources of changes, if hot reload is enabled.
    pub(super) sources: Option<Sources>,
}

/// Returns the terms for the scripts: limits, permissions, environment.
pub(super) fn terms(options: &RunOptions) -> Terms {
    let grants = Arc::new(options.grants.clone());
    // The process keeps only those variables in memory that scripts may read.
    let environment = Arc::new(variables(|name| grants.concern_env(name)));
    let terms = Terms::of(Placement::Threads, &options.settings);
    let logs_prints = options.log.format == LogFormat::Json;
    Terms { grants, environment, logs_prints, ..terms }
}

/// Returns warnings about an operator that runs, but probably not as intended.
pub(super) fn operator_warnings(grants: &Grants, scripts: &[&str], handlers: usize) -> Vec<String> {
    let unused = grants.unused(scripts).into_iter();
    let mut told: Vec<_> = unused
        .map(|name| {
            format!("Permissions are granted to {name}, but there is no script with this name.")
        })
        .collect();
    if handlers == 0 {
        told.push(
            "The scripts declare no handlers. \
             Declare handlers at the top level, for example with kopf.on_create(\"RESOURCE\", FUNCTION)."
                .into(),
        );
    }
    told
}

impl UnloadedScripts {
    /// Reads the files. Their errors are reported before there is a log.
    pub(super) fn files(options: &RunOptions) -> Result<Self, sources::Error> {
        if options.paths.is_empty() && !options.scripts.maps.is_empty() {
            return Ok(UnloadedScripts { scripts: Vec::new(), files: None, maps: None });
        }
        let files = ScriptFiles::at(&options.paths, Path::new(""), options.scripts.poll)?;
        Ok(UnloadedScripts { scripts: files.read()?, files: Some(files), maps: None })
    }

    /// Reads the `ConfigMap`s, from `cluster` or from a new connection.
    pub(super) async fn maps(
        mut self,
        options: &RunOptions,
        cluster: Option<&dyn Cluster>,
        clock: Clock,
    ) -> Result<Self, Report> {
        let wanted = &options.scripts.maps;
        if wanted.is_empty() {
            return Ok(self);
        }
        let maps = if let Some(cluster) = cluster {
            Maps::open(cluster, wanted, &options.settings).await?
        } else {
            let cluster = connect(options, clock).await?;
            Maps::open(&cluster, wanted, &options.settings).await?
        };
        self.scripts.extend(maps.read()?);
        self.maps = Some(maps);
        Ok(self)
    }

    /// Returns the guard of the scripts in `ConfigMap`s, if the options enable it.
    pub(super) fn guard(&self, options: &RunOptions) -> Option<MapGuard> {
        let maps = self.maps.as_ref().filter(|_| options.scripts.guard)?;
        Some(MapGuard::new(maps.guarded(), terms(options)))
    }

    /// Returns the objects that the webhooks of the operator do not review: its namespace, and the `ConfigMap`s of its scripts.
    pub(super) fn own_objects(&self) -> OwnObjects {
        let guarded = self.maps.iter().flat_map(Maps::guarded);
        let objects = guarded.map(|Guarded { namespace, maps }| match maps {
            GuardedMaps::Named(name) => OwnObject::config_map(&namespace, &name),
            GuardedMaps::Labelled(labels) => OwnObject::labelled_config_maps(&namespace, &labels),
        });
        OwnObjects { namespace: pod_namespace(), objects: objects.collect() }
    }

    /// Loads the scripts that were read.
    pub(super) async fn load(self, terms: Terms, reload: bool) -> Result<First, Report> {
        let UnloadedScripts { scripts, files, maps } = self;
        let names: Vec<_> = scripts.iter().map(|it| it.name.clone()).collect();
        let grants = Arc::clone(&terms.grants);
        let attempt = LoadAttempt::of(&scripts);
        let host = ScriptHost::new(terms).inspecting(checker::inspect);
        let prepared = host.prepare(scripts).await.map_err(|it| Report::of_scripts(&it))?;
        let Prepared { handlers, lifecycle: _, scripts } = prepared;
        let registry = Registry::new(handlers).map_err(|it| Report::failure(it.to_string()))?;
        host.take(scripts);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let tests = registry.handlers().iter().filter(|it| it.kind == Kind::Test).count();
        let mut warnings = operator_warnings(&grants, &names, registry.handlers().len() - tests);
        if tests > 0 {
            warnings.push(
                "The scripts declare tests, which the operator ignores: run them with `kopf test`."
                    .into(),
            );
        }
        for warning in warnings {
            tracing::warn!(target: "kopf.reactor", "{warning}");
        }
        let sources = reload.then(|| {
            let mut sources = Sources::new(files, maps);
            sources.tried(attempt);
            sources.took();
            sources
        });
        Ok(First { host: Arc::new(host), registry, scripts: names.len(), sources })
    }
}

/// Connects with the kubeconfig or the service account: the login handlers are in the scripts.
async fn connect(options: &RunOptions, clock: Clock) -> Result<KubeCluster, Report> {
    let settings = Arc::new(options.settings.clone());
    let overrides = options.cluster.clone();
    let options = ConnectOptions { settings, overrides, clock, ..ConnectOptions::default() };
    KubeCluster::connect(options).await.map_err(|error| {
        let report = Report::failure(format!("cannot read scripts from ConfigMaps: {error}"));
        match error.hint {
            Some(hint) => report.with_hint(hint),
            None => report,
        }
    })
}
