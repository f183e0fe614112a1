//! The real kubectl against the embedded server: commands must have the same output as against the real server.
//!
//! The commands are in `tests/exchanges/kubectl/*.yaml`, with the recorded output for the real server next to them. The tests need
//! a kubectl of the version of the recordings: `KUBECTL`, or the one in `KUBEBUILDER_ASSETS`; they are skipped without it. With
//! `E2E=1` and a `KUBECONFIG`, they run against the real server again; with `UPDATE_EXPECT=1` too, the output is recorded.

use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use indexmap::IndexMap;
use kopf_apiserver::{
    ApiServer,
    serve::{Listener, ServeOptions},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::differential::{
    compare::{self, Difference, KnownDifferences},
    mask::Mask,
    own_controllers,
    script::{self, Vars, fill_in},
    variable,
};
use crate::say;

/// The version of kubectl in the recordings.
const VERSION: &str = "v1.36.3";

/// The minimum size of the suite.
const COMMANDS_MIN: usize = 180;

/// Time limit of one command; `wait` and `-w` are the slow ones.
const PATIENCE: Duration = Duration::from_secs(20);

/// Commands against one server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KubectlScript {
    #[expect(dead_code, reason = "it is for readers of the file, and must not be missing")]
    about: String,
    #[serde(default)]
    vars: Vars,
    /// Files by name, in the directory in which commands run.
    #[serde(default)]
    files: IndexMap<String, String>,
    /// Commands before the others; their output is not compared.
    #[serde(default)]
    setup: Vec<KubectlStep>,
    steps: Vec<KubectlStep>,
    /// Commands at the end; their output is not compared.
    #[serde(default)]
    cleanup: Vec<KubectlStep>,
}

/// One command and what surrounds it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KubectlStep {
    /// The arguments as in a shell: words, with quotes.
    run: String,
    #[serde(default)]
    stdin: Option<String>,
    /// Another command that must succeed first; it is repeated, because a real server takes time for some changes.
    #[serde(default)]
    once: Option<String>,
    /// A shell command that edits the file in its first argument.
    #[serde(default)]
    editor: Option<String>,
    /// Runs after the first `after` lines of output; the command ends after `lines`.
    #[serde(default)]
    meanwhile: Vec<String>,
    #[serde(default)]
    after: usize,
    #[serde(default)]
    lines: usize,
}

/// The directory in which commands run, and their server.
struct Shell<'a> {
    kubectl: &'a Path,
    kubeconfig: &'a Path,
    /// Also contains the caches of kubectl.
    directory: PathBuf,
    vars: Vars,
    mask: Mask,
}

fn kubectl() -> Option<PathBuf> {
    let assets = || Some(PathBuf::from(variable("KUBEBUILDER_ASSETS")?).join("kubectl"));
    variable("KUBECTL").map(PathBuf::from).or_else(assets).filter(|it| it.exists())
}

fn scripts() -> Vec<(String, KubectlScript)> {
    let entries = fs::read_dir(script::directory().join("kubectl")).expect("a directory");
    let files = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
    let mut names: Vec<String> =
        files.filter_map(|it| Some(it.strip_suffix(".yaml")?.to_owned())).collect();
    names.sort();
    let only = variable("ONLY").unwrap_or_default();
    names.retain(|it| it.contains(&only) && it != "known-differences");
    names.into_iter().map(|it| (it.clone(), script::read(&format!("kubectl/{it}.yaml")))).collect()
}

fn recording(name: &str) -> PathBuf {
    script::directory().join(format!("kubectl/recorded/{name}.json"))
}

fn recorded(name: &str) -> Vec<Value> {
    let path = recording(name);
    let text = fs::read(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
}

/// Returns the output of a script for a server.
async fn transcript(
    kubectl: &Path,
    kubeconfig: &Path,
    (name, script): (&str, &KubectlScript),
    run: &str,
) -> Vec<Value> {
    let directory = std::env::temp_dir().join(format!("kopf-kubectl-{run}-{name}"));
    fs::create_dir_all(&directory).expect("a writable directory");
    let vars = Vars::from([("run".into(), run.into()), ("ns".into(), format!("ns-{run}"))]);
    let vars: Vars = vars.into_iter().chain(script.vars.clone()).collect();
    for (file, text) in &script.files {
        fs::write(directory.join(file), fill_in(text, &vars)).expect("a writable file");
    }
    let mask = Mask::new(run);
    let mut shell = Shell { kubectl, kubeconfig, directory, vars, mask };
    for step in &script.setup {
        let said = shell.run(step).await;
        assert_eq!(said["exit"], 0, "{name}: setup: {said}");
    }
    let mut records = Vec::new();
    for step in &script.steps {
        records.push(shell.run(step).await);
    }
    for step in &script.cleanup {
        shell.run(step).await;
    }
    fs::remove_dir_all(&shell.directory).expect("its own directory");
    records
}

impl Shell<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let line = fill_in(line, &self.vars);
        // The shell is for the quotes only; the name of kubectl is not part of the line.
        command.args(["-c", &format!("exec \"$0\" --namespace \"$1\" {line}")]);
        command.arg(self.kubectl).arg(&self.vars["ns"]);
        command.current_dir(&self.directory).kill_on_drop(true);
        command.env("KUBECONFIG", self.kubeconfig).env("HOME", &self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(&mut self, step: &KubectlStep) -> Value {
        if !step.meanwhile.is_empty() {
            return self.watch(step).await;
        }
        if let Some(once) = &step.once {
            self.wait_for(once).await;
        }
        let mut command = self.command(&step.run);
        if let Some(editor) = &step.editor {
            command.env("EDITOR", fill_in(editor, &self.vars));
        }
        let mut child = command.spawn().expect("a shell");
        let input = fill_in(step.stdin.as_deref().unwrap_or_default(), &self.vars);
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read its input may have exited.
        drop(stdin.write_all(input.as_bytes()).await);
        drop(stdin);
        let Ok(output) = timeout(PATIENCE, child.wait_with_output()).await else {
            return json!({ "request": step.run, "exit": "never" });
        };
        let output = output.expect("an end");
        json!({
            "request": step.run,
            "exit": output.status.code(),
            "stdout": self.lines(&String::from_utf8_lossy(&output.stdout)),
            "stderr": self.lines(&String::from_utf8_lossy(&output.stderr)),
        })
    }

    /// Repeats a command until it succeeds.
    async fn wait_for(&mut self, command: &str) {
        let succeeds = async {
            while !self.command(command).output().await.expect("a shell").status.success() {}
        };
        timeout(PATIENCE, succeeds).await.unwrap_or_else(|_| panic!("never succeeds: {command}"));
    }

    /// Makes changes while a command watches.
    async fn watch(&mut self, step: &KubectlStep) -> Value {
        let mut child = self.command(&step.run).spawn().expect("a shell");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut said = String::new();
        let mut count = 0;
        while count < step.lines {
            if count == step.after {
                for line in &step.meanwhile {
                    let changed = self.command(line).output().await.expect("a shell");
                    assert!(changed.status.success(), "{line}: {changed:?}");
                }
            }
            match timeout(PATIENCE, lines.next_line()).await {
                Ok(Ok(Some(line))) => said.extend([&line, "\n"]),
                Ok(_) => break,
                Err(_) => {
                    said.push_str("<silence>\n");
                    break;
                }
            }
            count += 1;
        }
        child.kill().await.expect("its own child");
        json!({ "request": step.run, "stdout": self.lines(&said) })
    }

    fn lines(&mut self, text: &str) -> Value {
        let home = self.directory.display().to_string();
        // At a timeout, its log may contain the end of a watch before the timeout itself: a race inside of kubectl.
        let lines = text.lines().filter(|it| !it.contains(" reflector.go:"));
        lines.map(|it| self.mask.line(&it.replace(&home, "$home"))).collect()
    }
}

/// Runs the embedded server on a socket, and returns the output of the script for it.
async fn embedded(kubectl: &Path, name: &str, script: &KubectlScript) -> Vec<Value> {
    let server = ApiServer::builder()
        .cluster(true)
        .rbac(true)
        .seed(1)
        .clock(super::differential::time)
        .build();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(ServeOptions { address, beyond_loopback: false }).await;
    let listener = listener.expect("a free port");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: '{}'}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: c}}}}], users: [{{name: c, user: {{}}}}]}}",
        listener.url()
    );
    let kubeconfig = std::env::temp_dir().join(format!(
        "kopf-kubectl-{}-{}",
        std::process::id(),
        listener.address().port()
    ));
    fs::write(&kubeconfig, text).expect("a writable file");
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(listener.serve(server.clone(), stop.clone()));
    let said = tokio::select! {
        said = transcript(kubectl, &kubeconfig, (name, script), "r00000000") => said,
        () = own_controllers(server) => panic!("controllers do not end"),
    };
    stop.cancel();
    tasks.join_all().await;
    fs::remove_file(&kubeconfig).expect("its own file");
    said
}

fn report(found: &[(String, Vec<Difference>)]) -> String {
    let mut text = String::new();
    for (exchange, differences) in found {
        let texts: Vec<String> = differences.iter().map(Difference::text).collect();
        let _infallible = writeln!(text, "{exchange}\n{}", texts.join("\n"));
    }
    text
}

#[tokio::test]
async fn kubectl_shows_the_same_for_the_embedded_server_as_for_the_real_one() {
    let Some(kubectl) = kubectl() else {
        say("kubectl: skipped, set KUBECTL or KUBEBUILDER_ASSETS");
        return;
    };
    let version = Command::new(&kubectl).args(["version", "--client"]).output().await;
    let version = String::from_utf8(version.expect("kubectl runs").stdout).expect("a text");
    assert!(version.contains(VERSION), "the recordings are of kubectl {VERSION}: {version}");
    let mut known = KnownDifferences::read("kubectl/known-differences.yaml");
    let mut differing = Vec::new();
    let mut commands = 0;
    for (name, script) in scripts() {
        let said = embedded(&kubectl, &name, &script).await;
        commands += said.len();
        for (exchange, mut found) in compare::differences(&name, &recorded(&name), &said) {
            found.retain(|it| !known.covers(it));
            if !found.is_empty() {
                differing.push((exchange, found));
            }
        }
    }
    let count = differing.len();
    say(&format!("{commands} commands of kubectl, {count} differ; known:\n{}", known.summary()));
    assert!(differing.is_empty(), "{count} of {commands} commands differ:\n{}", report(&differing));
    if variable("ONLY").is_none() {
        assert!(commands >= COMMANDS_MIN, "only {commands} commands");
        assert!(known.unneeded().is_empty(), "not needed: {:#?}", known.unneeded());
    }
}

#[tokio::test]
async fn kubectl_shows_for_the_real_server_what_is_recorded() {
    let (Some(_), Some(kubectl)) = (variable("E2E"), kubectl()) else { return };
    let kubeconfig = PathBuf::from(variable("KUBECONFIG").expect("KUBECONFIG"));
    let mut differing = Vec::new();
    for (index, (name, script)) in scripts().into_iter().enumerate() {
        let update = variable("UPDATE_EXPECT").is_some();
        let mut said = Vec::new();
        // Its controllers take time, so another attempt may be necessary.
        for attempt in 0..3 {
            let run = format!("k{:08x}", std::process::id() as usize * 1000 + index * 10 + attempt);
            said = transcript(&kubectl, &kubeconfig, (&name, &script), &run).await;
            if update || compare::differences(&name, &recorded(&name), &said).is_empty() {
                break;
            }
        }
        if update {
            let text = serde_json::to_string_pretty(&said).expect("JSON");
            fs::write(recording(&name), text + "\n").expect("a writable file");
        } else {
            differing.extend(compare::differences(&name, &recorded(&name), &said));
        }
    }
    assert!(differing.is_empty(), "{}", report(&differing));
}
