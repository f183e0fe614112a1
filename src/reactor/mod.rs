//! The main flow: streams → queues → workers; start and shutdown of an operator.

mod background;
mod backlog;
mod change;
mod companions;
mod conclusion;
mod cycle;
mod error;
mod expectation;
mod memory;
mod observer;
mod place;
mod poster;
mod probing;
mod queue;
mod replicas;
mod roster;
mod seen;
mod serving;
mod standby;
mod stream_log;
mod streams;
mod worker;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    companions::Companions,
    memory::Memories,
    observer::{Observer, Target, Targets},
    poster::Poster,
    probing::Probing,
    replicas::Replicas,
    roster::Roster,
    serving::Serving,
};
use crate::features::{
    daemons,
    indexes::{self, Hold, Readiness},
    leadership::Leadership,
    probes::{self, BindError, Counted, Endpoint},
};
use crate::handling::{
    activities::{self, Activity, ActivityError, Standing},
    run::Runner,
};
use crate::logic::{
    handler::Kind,
    lifecycle::{Chooser, Lifecycle},
    peering::Identity,
    registry::{Registry, ResourceHandlers},
    resource::Resource,
};
use crate::ports::{
    ApiError, AskLogin, BoxFuture, Clock, Cluster, Facilities, Health, HealthState, Indexes, Memo,
    NativeLogins, Pauses, Posts, Scripts,
};
use crate::settings::Settings;

/// The parts of the health that are of the operator itself.
const STARTUP: &str = "startup";
const STOPPING: &str = "shutdown";

/// Everything an operator is made of.
pub struct Operator {
    /// The scripts, loaded.
    pub scripts: Arc<dyn Scripts>,
    /// Their handlers.
    pub registry: Registry,
    /// The settings; start-up handlers change them.
    pub settings: Arc<Mutex<Settings>>,
    /// The time.
    pub clock: Clock,
    /// Which namespaces are served.
    pub scope: Scope,
    /// The order in which the handlers of one object run, unless the scripts set another.
    pub lifecycle: Lifecycle,
    /// Logs in; called once, after the start-up handlers.
    pub connect: Connect,
    /// Where its parts tell how they are.
    pub health: Health,
    /// Where the probe handlers are asked, if anywhere.
    pub liveness: Option<Endpoint>,
    /// How other operators and replicas know it.
    pub identity: Identity,
}

/// Which namespaces are served.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// All of them, with streams of the whole cluster.
    Cluster,
    /// Those that match any of these patterns.
    Namespaces(Vec<String>),
}

/// Makes the connection to the cluster.
pub type Connect =
    Box<dyn FnOnce(Connecting) -> BoxFuture<'static, Result<Arc<dyn Cluster>, ApiError>> + Send>;

/// What a connection is made with.
pub struct Connecting {
    /// As they are after start-up.
    pub settings: Settings,
    /// The login handlers of the scripts, if there are any: nobody else is asked then.
    pub login: Option<AskLogin>,
}

/// Why an operator ended other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A start-up or clean-up handler failed for good.
    #[error("{0}")]
    Activity(#[from] ActivityError),
    /// The cluster cannot be used.
    #[error("{0}")]
    Cluster(#[from] ApiError),
    /// The liveness endpoint cannot be served.
    #[error("the liveness endpoint: {0}")]
    Liveness(#[from] BindError),
    /// The settings make no sense together.
    #[error("{0}")]
    Settings(String),
    /// Another replica may lead now: nothing was done any more from that moment on.
    #[error("the leadership is lost: {0}")]
    Leadership(String),
}

impl Failure {
    /// What the user could do next, if we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Failure::Activity(error) if error.activity == "cleanup" => {
                Some("see the errors of the handlers above; everything else has ended".into())
            }
            Failure::Activity(_) => {
                Some("see the errors of the handlers above; nothing else was started".into())
            }
            Failure::Cluster(error) => error.hint.clone(),
            Failure::Liveness(_) => Some("choose another address with -L/--liveness".into()),
            Failure::Settings(_) => None,
            Failure::Leadership(_) => {
                Some("nothing is to be done: started again, this replica is a standby".into())
            }
        }
    }
}

/// Runs an operator until `stop`, or until it cannot go on.
///
/// # Errors
/// When start-up handlers fail (nothing else happens then), when the cluster cannot be used, when clean-up handlers fail,
/// and when the leadership is lost: then clean-up handlers are not called, for they could act where another replica acts.
pub async fn run(operator: Operator, stop: CancellationToken) -> Result<(), Failure> {
    let Operator {
        scripts,
        registry,
        settings,
        clock,
        scope,
        lifecycle,
        connect,
        health,
        liveness,
        identity,
    } = operator;
    let scripts: Arc<dyn Scripts> = Arc::new(Counted::new(scripts, health.metrics().clone()));
    let memo = Memo::default();
    let facilities = Arc::new(Facilities {
        indexes: Indexes::new(registry.indexes()),
        posts: Posts::new(Arc::clone(&settings)),
    });
    let activity = |kind| Activity {
        kind,
        handlers: registry.activities(kind),
        settings: Arc::clone(&settings),
        memo: memo.clone(),
        logins: NativeLogins::default(),
    };
    tracing::debug!(target: "kopf.running", "Starting kopf {}.", env!("CARGO_PKG_VERSION"));
    let execution = snapshot(&settings).execution;
    let runner =
        Runner { scripts: &*scripts, clock, settings: &execution, facilities: &facilities };
    let startup = activity(Kind::Startup);
    health.note(STARTUP, HealthState::Unready, "the start-up handlers are running");
    let Some(started) = unless_stopped(&stop, activities::run(runner, &startup)).await else {
        tracing::warn!(target: "kopf.running", "Startup activity is only partially executed due to cancellation.");
        return Ok(());
    };
    started?;
    health.note(STARTUP, HealthState::Ready, "");

    let current = Arc::new(snapshot(&settings));
    scripts.configure(&current);
    facilities.posts.listen();
    let (connect, poster) = Poster::start(connect, &facilities.posts, &current, clock);
    let standing = |kind| Standing {
        activity: activity(kind),
        scripts: Arc::clone(&scripts),
        clock,
        execution: current.execution.clone(),
        facilities: Arc::clone(&facilities),
    };
    let login = standing(Kind::Login);
    let login = (!login.activity.handlers.is_empty()).then(|| login.into_login());
    let connecting = Connecting { settings: Settings::clone(&current), login };
    let probe = standing(Kind::Probe);
    let serving = Serve {
        scripts: Arc::clone(&scripts),
        settings: Arc::clone(&current),
        clock,
        lifecycle: scripts.lifecycle().unwrap_or_else(|| lifecycle.into()),
        memo: memo.clone(),
        facilities: Arc::clone(&facilities),
        health: health.clone(),
        identity,
    };
    let served = async {
        let probing = Probing::start(liveness, probe, &health).await?;
        let served = serving.run(&registry, &scope, connect(connecting), &stop).await;
        probing.end().await;
        served
    };
    let served = served.await;
    health.note(STOPPING, HealthState::Unready, "the operator is stopping");
    if let Err(Failure::Leadership(_)) = &served {
        return served;
    }
    let runner =
        Runner { scripts: &*scripts, clock, settings: &current.execution, facilities: &facilities };
    let limit = match &served {
        // Whoever sent the signal has this limit already.
        Ok(()) => None,
        Err(_) => current.process.ultimate_exiting_timeout,
    };
    let cleaned = clean_up(runner, &activity(Kind::Cleanup), limit).await;
    // Last: clean-up handlers post events too.
    poster.end().await;
    served?;
    cleaned?;
    Ok(())
}

/// Runs the clean-up handlers, but no longer than that: an operator that hangs would never be restarted.
async fn clean_up(
    runner: Runner<'_>,
    cleanup: &Activity,
    limit: Option<Duration>,
) -> Result<(), ActivityError> {
    let cleaning = activities::run(runner, cleanup);
    let Some(limit) = limit else { return cleaning.await.map(drop) };
    timeout(limit, cleaning).await.map_or_else(
        |_late| {
            tracing::error!(
                target: "kopf.running",
                "Cleanup activity is only partially executed: it takes too long (settings.process.ultimate_exiting_timeout)."
            );
            Ok(())
        },
        |cleaned| cleaned.map(drop),
    )
}

/// What the streams of an operator need, before the cluster is known.
struct Serve {
    scripts: Arc<dyn Scripts>,
    settings: Arc<Settings>,
    clock: Clock,
    lifecycle: Chooser,
    memo: Memo,
    facilities: Arc<Facilities>,
    health: Health,
    identity: Identity,
}

impl Serve {
    /// From the login to the end of the last stream.
    async fn run(
        self,
        registry: &Registry,
        scope: &Scope,
        connect: impl Future<Output = Result<Arc<dyn Cluster>, ApiError>>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        tracing::info!(target: "kopf.authentication", "Initial authentication has been initiated.");
        let Some(cluster) = unless_stopped(stop, connect).await else { return Ok(()) };
        let cluster = cluster?;
        tracing::info!(target: "kopf.authentication", "Initial authentication has finished.");
        let settings = Arc::clone(&self.settings);
        let observer = Observer::start(&*cluster, &*self.scripts, registry, scope, settings);
        let Some(observer) = unless_stopped(stop, observer).await else { return Ok(()) };
        let observer = observer?;
        let replicas = Replicas::start(&self, &cluster)?;
        let team = Arc::default();
        let shared = Shared {
            cluster: &cluster,
            start: Instant::now(),
            memories: Arc::default(),
            pauses: Pauses::default(),
            leadership: replicas.leadership(),
            readiness: Readiness::new(registry.has_indexes()),
            team: Arc::clone(&team),
        };
        let lost = tokio::select! {
            biased; // the loss first: whatever runs is dropped in this moment, and nothing begins any more
            reason = replicas.lost() => Some(reason),
            () = self.serve(registry, shared, (observer, &replicas), stop) => None,
        };
        if let Some(reason) = lost {
            team.cut().await;
            return Err(Failure::Leadership(reason));
        }
        replicas.end().await;
        Ok(())
    }

    /// Runs the streams and what is beside them, until `stop`.
    async fn serve(
        &self,
        registry: &Registry,
        shared: Shared<'_>,
        (mut observer, replicas): (Observer<'_>, &Replicas),
        stop: &CancellationToken,
    ) {
        let mut companions = self.companions(registry, &shared);
        let venues = self.meet(replicas, &shared, &mut companions);
        let mut roster = Roster::new();
        if let Some(venues) = &venues {
            let (places, is_known) = observer.peerings();
            venues.set(places, is_known);
            tokio::select! {
                biased; // a stop during the start is obeyed at once
                () = stop.cancelled() => {}
                () = venues.looked() => {}
            }
        }
        loop {
            if let Some(venues) = &venues {
                let (places, is_known) = observer.peerings();
                venues.set(places, is_known);
            }
            let targets = observer.targets();
            roster.adjust(
                &targets,
                |target| observer.is_gone(target),
                |target, all| self.serving(target, all, &shared),
            );
            shared.readiness.started();
            tokio::select! {
                biased; // stop first: nothing new begins after it
                () = stop.cancelled() => break,
                () = observer.changed() => {}
                () = roster.attend() => {}
            }
        }
        self.health.note(STOPPING, HealthState::Unready, "the operator is stopping");
        // Side by side: workers finish what they do, daemons and timers what they can.
        future::join(roster.end(), shared.team.end(&self.settings.background)).await;
        companions.end().await;
    }

    /// Those that live as long as the streams.
    fn companions(&self, registry: &Registry, shared: &Shared<'_>) -> Companions {
        let known = Arc::clone(&shared.memories);
        let help = "Objects that the operator remembers";
        self.health.metrics().sample("kopf_objects_known", help, move || known.count());
        let mut companions = Companions::new();
        companions
            .add(|stop| probes::follow_pauses(shared.pauses.clone(), self.health.clone(), stop));
        companions.add(|stop| {
            let (team, pauses) = (Arc::clone(&shared.team), shared.pauses.clone());
            let settings = Arc::clone(&self.settings);
            async move { team.heed(&pauses, &settings.background, stop).await }
        });
        if registry.has_indexes() {
            let (readiness, health) = (shared.readiness.clone(), self.health.clone());
            companions.add(|stop| indexes::watch(readiness, health, stop));
        }
        companions
    }

    fn serving(&self, target: &Target, all: &Targets, shared: &Shared<'_>) -> Serving {
        let handlers = all.get(target).map(Arc::clone).unwrap_or_default();
        let resource = Arc::clone(&target.0);
        let background = Arc::new(daemons::Base {
            resource: Arc::clone(&resource),
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.scripts),
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            facilities: Arc::clone(&self.facilities),
            team: Arc::clone(&shared.team),
        });
        Serving {
            hold: shared.hold(&handlers, &resource, target.1.as_deref()),
            handlers,
            resource,
            cluster: Arc::clone(shared.cluster),
            scripts: Arc::clone(&self.scripts),
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            lifecycle: self.lifecycle.clone(),
            memo: self.memo.clone(),
            start: shared.start,
            memories: Arc::clone(&shared.memories),
            facilities: Arc::clone(&self.facilities),
            background,
            pauses: shared.pauses.clone(),
            leadership: shared.leadership.clone(),
            health: self.health.clone(),
        }
    }
}

/// The result, or nothing if it is not wanted any more.
async fn unless_stopped<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased; // a stop is obeyed at once
        () = stop.cancelled() => None,
        done = work => Some(done),
    }
}

/// What all streams share, once the cluster is known.
struct Shared<'a> {
    cluster: &'a Arc<dyn Cluster>,
    start: Instant,
    memories: Arc<Memories>,
    pauses: Pauses,
    leadership: Leadership,
    readiness: Readiness,
    team: Arc<daemons::Team>,
}

impl Shared<'_> {
    /// The share of a stream in the readiness of the indexes.
    fn hold(&self, handlers: &ResourceHandlers, resource: &Resource, place: Option<&str>) -> Hold {
        if handlers.indexing.is_empty() {
            return self.readiness.bystander();
        }
        let place = place.map_or_else(String::new, |it| format!(" in '{it}'"));
        self.readiness.indexed(format!("{resource}{place}"))
    }
}

/// The settings as they are now.
fn snapshot(settings: &Mutex<Settings>) -> Settings {
    settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
