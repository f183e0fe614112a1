//! Runs a scenario: an API server, an operator of scripts, and a user, on one paused clock.

use std::sync::Arc;

use parking_lot::Mutex;

use kopf::{
    logic::{change::registry::Registry, generation::Generation},
    reactor::Operator,
    scripting::{Prepared, ScriptHost, Source},
    settings::Settings,
    testing::{self, EXAMPLES, Environment, RunningOperator, run_paused},
};
use kopf_apiserver::ApiServer;

use super::{
    containers::containers,
    steps::{Action, Cast, NAMESPACE, Scenario, complete},
    transcript::{self, Transcript},
};

/// Runs a scenario to the end. Returns the transcript.
pub(super) fn run(scenario: &Scenario, cast: &Cast) -> String {
    run_paused(async {
        let run = ScenarioRun::new();
        let _capturing = transcript::capture(&run.transcript, scenario.plot.verbose);
        run.run(scenario, cast).await
    })
}

struct ScenarioRun {
    env: Environment,
    transcript: Transcript,
}

/// A running operator and its scripts.
struct ScriptedOperator {
    host: Arc<ScriptHost>,
    running: RunningOperator,
}

impl ScenarioRun {
    fn new() -> Self {
        let mut resource = testing::examples();
        resource.short_names = vec!["kex".into(), "kexes".into()];
        resource.categories = vec!["all".into()];
        let env = Environment::new(
            ApiServer::builder().bookmarks(None).pods(containers()).resource(resource),
        );
        let transcript = Transcript::new(env.clone());
        ScenarioRun { env, transcript }
    }

    async fn run(self, scenario: &Scenario, cast: &Cast) -> String {
        let (before, after): (Vec<_>, Vec<_>) =
            scenario.plot.steps.iter().partition(|it| it.at().is_zero());
        let mut operator = None;
        for step in before {
            self.act(&step.action, (scenario, cast), &mut operator).await;
        }
        if operator.is_none() {
            operator = Some(self.start(scenario, cast).await);
        }
        for step in after {
            self.env.until_moment(step.at()).await;
            self.act(&step.action, (scenario, cast), &mut operator).await;
        }
        self.env.until_moment(scenario.plot.until()).await;
        stop(operator.take()).await;
        self.transcript.finish(&self.env.server.list(EXAMPLES))
    }

    /// Performs an action. A refusal is a part of the transcript.
    async fn act(
        &self,
        action: &Action,
        (scenario, cast): (&Scenario, &Cast),
        operator: &mut Option<ScriptedOperator>,
    ) {
        let server = &self.env.server;
        let refused = match action {
            Action::Create(body) => {
                let body = complete(body);
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                self.transcript.note("user", &format!("creates {name}"));
                server.create(&self.env.resource_of(&body), body).err()
            }
            Action::Edit(name, merge) => {
                self.transcript.note("user", &format!("edits {name}: {merge}"));
                let (collection, name) = place(name);
                server.merge(collection, NAMESPACE, name, merge.clone()).err()
            }
            Action::Delete(name) => {
                self.transcript.note("user", &format!("deletes {name}"));
                let (collection, name) = place(name);
                server.delete(collection, NAMESPACE, name).err()
            }
            Action::Stop(()) => {
                self.transcript.note("user", "stops the operator");
                stop(operator.take()).await;
                None
            }
            Action::Start(()) => {
                self.transcript.note("user", "starts the operator");
                *operator = Some(self.start(scenario, cast).await);
                None
            }
            Action::Reload(folder) => {
                self.transcript.note("user", &format!("saves the scripts of '{folder}'"));
                let operator = operator.as_ref().expect("an operator runs");
                self.transcript.note("operator", &operator.reload(cast.edited(folder)).await);
                None
            }
        };
        if let Some(refusal) = refused {
            self.transcript.note("server", &format!("refuses: {refusal:?}"));
        }
    }

    async fn start(&self, scenario: &Scenario, cast: &Cast) -> ScriptedOperator {
        let (host, handlers) = self.env.load(cast.sources(), scenario.plot.terms()).await;
        let mut settings = Settings::default();
        settings.networking.error_backoffs = Vec::new();
        settings.posting.failures = false;
        settings.persistence.digest_secret = None;
        let operator = Operator {
            settings: Arc::new(Mutex::new(settings)),
            ..self.env.operator(Arc::<ScriptHost>::clone(&host), handlers)
        };
        let transcript = self.transcript.clone();
        let running = RunningOperator::start_reporting(operator, move |failure| {
            transcript.note("operator", &format!("ends: {failure}"));
        });
        ScriptedOperator { host, running }
    }
}

impl ScriptedOperator {
    /// Reloads the scripts. Returns the result.
    async fn reload(&self, sources: Vec<Source>) -> String {
        let prepared = match self.host.prepare(sources).await {
            Ok(prepared) => prepared,
            Err(errors) => return format!("refuses: {}", errors[0].message),
        };
        let Prepared { handlers, lifecycle, scripts } = prepared;
        let registry = Registry::new(handlers).expect("ids are unique");
        match self.running.reload(Generation::new(registry, lifecycle)).await {
            Ok(changes) => {
                self.host.take(scripts);
                format!("takes it: {changes}")
            }
            Err(rejection) => format!("refuses: {rejection}"),
        }
    }
}

/// Returns the collection and the name of an object: `configmaps/settings`, or only the name.
fn place(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((EXAMPLES, name))
}

/// Ends an operator, and waits until it has ended. Its failure is in the transcript.
async fn stop(operator: Option<ScriptedOperator>) {
    if let Some(operator) = operator {
        operator.running.cancel();
        drop(operator.running.end().await);
    }
}
