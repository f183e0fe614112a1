//! From changed sources to generations: with real scripts, and a fake operator that accepts or rejects them.

use std::{path::PathBuf, sync::Arc};

use kopf::{
    logic::{change::registry::Registry, generation::Changes},
    ports::{Candidate, Clock, Rejection},
    scripting::{Placement, ScriptHost},
    sources::{
        LoadAttempt, ScriptFiles, Sources,
        reload::{self, Parts, Reloading},
    },
    telemetry::Health,
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{DEADLINE, Desk};

/// Returns a script with a handler of this id.
fn script(id: &str) -> String {
    format!("kopf.on_create('kopfexamples', {{ id = '{id}' }}, function(ctx) return '{id}' end)\n")
}

/// A running driver, and its counterpart.
struct Stage {
    desk: Desk,
    candidates: mpsc::Receiver<Candidate>,
    health: Health,
    host: Arc<ScriptHost>,
    registry: Registry,
    stop: CancellationToken,
    work: JoinSet<()>,
}

impl Stage {
    /// Creates a driver of these files, all of which are in one directory.
    async fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let desk = Desk::new(test);
        for (name, text) in files {
            desk.file(&format!("ops/{name}"), text);
        }
        let files = ScriptFiles::at(&[PathBuf::from("ops")], &desk.0, None).expect("a path");
        let scripts = files.read().expect("scripts");
        let attempt = LoadAttempt::of(&scripts);
        let host = Arc::new(ScriptHost::new(Placement::Threads));
        let prepared = host.prepare(scripts).await.expect("they load");
        host.take(prepared.scripts);
        let registry = Registry::new(prepared.handlers).expect("a registry");
        let mut sources = Sources::new(Some(files), None);
        sources.tried(attempt);
        sources.took();
        let (sender, candidates) = mpsc::channel(reload::WAITING_MAX);
        let (health, stop) = (Health::default(), CancellationToken::new());
        let parts = Parts {
            sources,
            host: Arc::clone(&host),
            candidates: sender,
            health: health.clone(),
            clock: Clock::system(),
        };
        let mut work = JoinSet::new();
        work.spawn(Reloading::new(parts).follow(stop.clone()));
        Stage { desk, candidates, health, host, registry, stop, work }
    }

    fn edit(&self, name: &str, text: &str) {
        self.desk.file(&format!("ops/{name}"), text);
    }

    /// Returns the next candidate.
    async fn candidate(&mut self) -> Candidate {
        let candidate = timeout(DEADLINE, self.candidates.recv()).await.expect("it comes in time");
        candidate.expect("the driver is there")
    }

    /// Accepts a candidate, as the operator does; returns what it changes.
    fn take(&mut self, candidate: Candidate) -> String {
        let Candidate { generation, verdict, .. } = candidate;
        let changes = Changes::between(&self.registry, &generation.registry);
        let told = format!("generation {}: {changes}", generation.version);
        self.registry = generation.registry;
        verdict.send(Ok(changes)).expect("the driver waits");
        told
    }

    async fn accept(&mut self) -> String {
        let candidate = self.candidate().await;
        self.take(candidate)
    }

    /// Waits until `/readyz` would report this about the scripts.
    async fn until_says(&self, text: &str) {
        let told = || self.health.parts().get("scripts").map(|it| it.text.clone());
        let wait = async {
            while !told().is_some_and(|it| it.contains(text)) {
                sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        assert!(timeout(DEADLINE, wait).await.is_ok(), "{text} is not in {:?}", told());
    }

    async fn end(mut self) {
        self.stop.cancel();
        timeout(DEADLINE, self.work.join_next()).await.expect("it ends in time");
    }
}

#[tokio::test]
async fn an_edit_is_a_generation_and_says_what_it_changes() {
    let mut stage = Stage::new("edit", &[("a.lua", &script("one"))]).await;
    stage.until_says("generation 1 since 2").await;
    stage.edit("a.lua", &format!("{}{}", script("one"), script("two")));
    assert_eq!(stage.accept().await, "generation 2: added on_create 'two'");
    stage.until_says("generation 2 since 2").await;
    stage.edit("b.rhai", "fn three(ctx) {}  kopf::on_update(\"kopfexamples\", three);");
    assert_eq!(stage.accept().await, "generation 3: added on_update 'three'");
    stage.desk.remove("ops/a.lua");
    assert_eq!(stage.accept().await, "generation 4: removed on_create 'one', on_create 'two'");
    stage.end().await;
}

#[tokio::test]
async fn a_broken_edit_is_refused_and_the_next_good_one_is_taken() {
    let mut stage = Stage::new("broken", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", "kopf.on_create('kopfexamples',");
    stage.until_says("generation 1 since 2").await;
    stage.until_says("; the last edit was rejected: ops/a.lua:1: ").await;
    let rejected = kopf::telemetry::ReloadLabels { result: "rejected" };
    let metrics = stage.health.metrics().clone();
    assert_eq!(metrics.reloads.get_or_create(&rejected).get(), 1);
    stage.edit("a.lua", &script("two"));
    assert_eq!(
        stage.accept().await,
        "generation 2: added on_create 'two'; removed on_create 'one'"
    );
    stage.until_says("generation 2 since 2").await;
    assert!(!stage.health.parts()["scripts"].text.contains("refused"));
    assert_eq!(metrics.generation.get(), 2);
    assert_eq!(stage.host.live_scripts(), 1, "what is replaced is gone");
    stage.end().await;
}

#[tokio::test]
async fn an_edit_that_is_taken_back_leaves_the_generation_as_it_is() {
    let mut stage = Stage::new("undone", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", "nonsense(");
    stage.until_says("the last edit was rejected").await;
    stage.edit("a.lua", &script("one"));
    let calm = async {
        while stage.health.parts()["scripts"].text.contains("refused") {
            sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    timeout(DEADLINE, calm).await.expect("it is told in time");
    stage.edit("a.lua", &script("two"));
    let told = stage.accept().await;
    assert!(told.starts_with("generation 2: "), "nothing was proposed meanwhile: {told}");
    stage.end().await;
}

#[tokio::test]
async fn an_edit_during_a_reload_is_not_lost() {
    let mut stage = Stage::new("during", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", &script("two"));
    let candidate = stage.candidate().await;
    stage.edit("a.lua", &script("three"));
    assert_eq!(
        stage.take(candidate),
        "generation 2: added on_create 'two'; removed on_create 'one'"
    );
    assert_eq!(
        stage.accept().await,
        "generation 3: added on_create 'three'; removed on_create 'two'"
    );
    stage.end().await;
}

#[tokio::test]
async fn a_generation_whose_start_up_fails_is_refused() {
    let mut stage = Stage::new("startup", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", &script("two"));
    let Candidate { generation, verdict, .. } = stage.candidate().await;
    assert_eq!(generation.version.number(), 2);
    verdict.send(Err(Rejection::Startup("no database".into()))).expect("the driver waits");
    stage.until_says("generation 1 since 2").await;
    stage.until_says("; the last edit was rejected: no database").await;
    stage.edit("a.lua", &script("three"));
    assert_eq!(
        stage.accept().await,
        "generation 2: added on_create 'three'; removed on_create 'one'"
    );
    stage.end().await;
}

#[tokio::test]
async fn start_up_handlers_of_an_edit_are_not_waited_for_when_there_is_a_newer_one() {
    let mut stage = Stage::new("withdrawn", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", &script("two"));
    let Candidate { verdict, withdrawn, .. } = stage.candidate().await;
    stage.until_says("; the edit of ops/a.lua waits for its startup handlers").await;
    stage.edit("a.lua", &script("three"));
    timeout(DEADLINE, withdrawn.cancelled()).await.expect("it is withdrawn in time");
    verdict.send(Err(Rejection::Withdrawn)).expect("the driver waits");
    assert_eq!(
        stage.accept().await,
        "generation 2: added on_create 'three'; removed on_create 'one'"
    );
    stage.end().await;
}

#[tokio::test]
async fn a_withdrawal_that_comes_too_late_changes_nothing() {
    let mut stage = Stage::new("too-late", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", &script("two"));
    let candidate = stage.candidate().await;
    stage.edit("a.lua", &script("three"));
    timeout(DEADLINE, candidate.withdrawn.cancelled()).await.expect("it is withdrawn in time");
    assert_eq!(
        stage.take(candidate),
        "generation 2: added on_create 'two'; removed on_create 'one'"
    );
    assert_eq!(
        stage.accept().await,
        "generation 3: added on_create 'three'; removed on_create 'two'"
    );
    stage.end().await;
}

#[tokio::test]
async fn modules_are_watched_from_the_moment_they_are_required() {
    let lib = |id: &str| format!("return '{id}'");
    let text = "local id = require('lib.naming')\nkopf.on_create('kopfexamples', { id = id }, function() end)";
    let mut stage =
        Stage::new("modules", &[("a.lua", text), ("lib/naming.lua", &lib("one"))]).await;
    stage.edit("lib/naming.lua", &lib("two"));
    assert_eq!(
        stage.accept().await,
        "generation 2: added on_create 'two'; removed on_create 'one'"
    );
    // Another module, in a directory that was not watched.
    stage.edit("more/deep.lua", &lib("three"));
    stage.edit("a.lua", &text.replace("lib.naming", "more.deep"));
    assert_eq!(
        stage.accept().await,
        "generation 3: added on_create 'three'; removed on_create 'two'"
    );
    stage.edit("more/deep.lua", &lib("four"));
    assert_eq!(
        stage.accept().await,
        "generation 4: added on_create 'four'; removed on_create 'three'"
    );
    stage.end().await;
}

#[tokio::test]
async fn a_module_that_is_missing_is_waited_for() {
    let mut stage = Stage::new("missing", &[("a.lua", &script("one"))]).await;
    stage.edit(
        "a.lua",
        "kopf.on_create('kopfexamples', { id = require('lib.naming') }, function() end)",
    );
    stage.until_says("the last edit was rejected: ops/a.lua:1: ").await;
    stage.edit("lib/naming.lua", "return 'two'");
    assert_eq!(
        stage.accept().await,
        "generation 2: added on_create 'two'; removed on_create 'one'"
    );
    stage.end().await;
}

#[tokio::test]
async fn a_broken_module_is_waited_for() {
    let text =
        "local id = require('lib')\nkopf.on_create('kopfexamples', { id = id }, function() end)";
    let mut stage =
        Stage::new("bad-lib", &[("a.lua", text), ("_x.lua", ""), ("lib.lua", "return 'one'")])
            .await;
    stage.edit("lib.lua", "return 'one");
    stage.until_says("the last edit was rejected: ").await;
    stage.edit("lib.lua", "return 'two'");
    let told = stage.accept().await;
    assert!(told.starts_with("generation 2: added on_create 'two'"), "{told}");
    stage.end().await;
}

#[tokio::test]
async fn an_emptied_directory_is_refused_as_at_the_start() {
    let stage = Stage::new("emptied", &[("a.lua", &script("one"))]).await;
    stage.desk.remove("ops/a.lua");
    stage
        .until_says("the last edit was rejected: there are no scripts in the directory 'ops'")
        .await;
    stage.end().await;
}

#[tokio::test]
async fn the_driver_ends_with_its_operator() {
    let mut stage = Stage::new("ending", &[("a.lua", &script("one"))]).await;
    stage.edit("a.lua", &script("two"));
    let Candidate { verdict, .. } = stage.candidate().await;
    verdict.send(Err(Rejection::Ending)).expect("the driver waits");
    timeout(DEADLINE, stage.work.join_next()).await.expect("it ends in time");
}
