//! An operator as a child process: this program, or Python's Kopf.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::Notify,
    task::JoinSet,
    time::timeout,
};

use super::DEADLINE;
use super::namespace::Namespace;

/// A running operator and its output so far.
pub(crate) struct Operator {
    child: Child,
    heard: Arc<Heard>,
    readers: JoinSet<()>,
}

/// The output, both streams in the order of arrival.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    /// The number of streams that have ended.
    closed: AtomicUsize,
    more: Notify,
}

/// An operator that has ended.
pub(crate) struct Ended {
    /// The exit status.
    pub(crate) status: ExitStatus,
    /// The whole output.
    pub(crate) output: String,
}

/// Returns the path of a file of the project.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the command `kopf run` with these arguments and this kubeconfig.
pub(crate) fn kopf(kubeconfig: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    command.env_clear().env("KUBECONFIG", kubeconfig).arg("run").args(args);
    command
}

/// Starts the built binary for this namespace, with short delays and a verbose log.
pub(super) fn ours(namespace: &Namespace, script: &Path) -> Operator {
    let quick = file("tests/e2e/quick.lua");
    let mut command = kopf(&namespace.kubeconfig(), &["--standalone", "--verbose", "-n"]);
    Operator::start(command.arg(&namespace.name).arg(quick).arg(script))
}

impl Operator {
    /// Starts a process and reads its output.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the operator starts");
        let heard = Arc::<Heard>::default();
        let mut readers = JoinSet::new();
        readers.spawn(listen(child.stdout.take().expect("a pipe"), Arc::clone(&heard)));
        readers.spawn(listen(child.stderr.take().expect("a pipe"), Arc::clone(&heard)));
        Operator { child, heard, readers }
    }

    /// Returns the output so far.
    pub(crate) fn output(&self) -> String {
        self.heard.lines().join("\n")
    }

    /// Waits until the output contains this.
    pub(crate) async fn until_says(&self, text: &str) {
        self.until_says_times(text, 1).await;
    }

    /// Waits until this many lines of the output contain this.
    pub(crate) async fn until_says_times(&self, text: &str, times: usize) {
        let seen = || self.heard.lines().iter().filter(|it| it.contains(text)).count() >= times;
        self.until_heard(&format!("{times}× {text}"), seen).await;
    }

    /// Waits until this many lines have the prefix, or until one of them contains `last`, after which no more lines may come.
    pub(crate) async fn until_lines(&self, prefix: &str, times: usize, last: &str) {
        let seen = || {
            let lines = self.heard.lines();
            let fitting = || lines.iter().filter(|it| it.contains(prefix));
            fitting().count() >= times || fitting().any(|it| it.contains(last))
        };
        self.until_heard(&format!("{times} lines with {prefix}"), seen).await;
    }

    async fn until_heard(&self, what: &str, seen: impl Fn() -> bool) {
        let wait = async {
            // An operator that has ended writes no more lines.
            while !seen() && self.heard.closed.load(Ordering::Acquire) < 2 {
                self.heard.more.notified().await;
            }
        };
        let came = timeout(DEADLINE, wait).await.is_ok() && seen();
        assert!(came, "waited in vain for: {what}\n{}", self.output());
    }

    /// Kills it in the middle of its work, like a crash.
    pub(crate) async fn crash(mut self) -> Ended {
        self.child.start_kill().expect("a signal can be sent");
        self.ended().await
    }

    /// Requests a stop, and waits for the end.
    pub(crate) async fn stop(self) -> Ended {
        self.signal("TERM").await;
        self.ended().await
    }

    /// Sends a signal of this name.
    pub(crate) async fn signal(&self, name: &str) {
        // It may have ended by itself, which the caller sees in the exit code.
        if let Some(pid) = self.child.id() {
            let args = [format!("-{name}"), pid.to_string()];
            let sent = Command::new("kill").args(args).status().await;
            assert!(sent.expect("kill runs").success(), "the operator is not there any more");
        }
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(mut self) -> Ended {
        let Ok(status) = timeout(DEADLINE, self.child.wait()).await else {
            panic!("the operator does not end:\n{}", self.output());
        };
        while self.readers.join_next().await.is_some() {}
        Ended { status: status.expect("the operator can be waited for"), output: self.output() }
    }
}

impl Drop for Operator {
    /// Prints the output if the test fails while the operator runs.
    #[expect(clippy::print_stdout, reason = "shown with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("The operator has written:\n{}", self.output());
        }
    }
}

impl Heard {
    fn lines(&self) -> parking_lot::MutexGuard<'_, Vec<String>> {
        self.lines.lock()
    }
}

async fn listen(stream: impl AsyncRead + Unpin, heard: Arc<Heard>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        heard.lines().push(line);
        heard.more.notify_one();
    }
    heard.closed.fetch_add(1, Ordering::Release);
    heard.more.notify_one();
}

impl Ended {
    /// Returns how often a text occurs.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.output.matches(text).count()
    }

    /// Returns the times of the lines with this text, in seconds of the day.
    pub(crate) fn seconds_of(&self, text: &str) -> Vec<f64> {
        // `[2026-11-21 04:10:28,317] …`
        let second = |line: &str| {
            let time = line.get(12..24).expect("a time").replace(',', ".");
            let parts = time.split(':').map(|it| it.parse::<f64>().expect("a number"));
            parts.fold(0.0, |sum, part| sum * 60.0 + part)
        };
        self.output.lines().filter(|it| it.contains(text)).map(second).collect()
    }

    /// Fails the test unless the output has exactly one error, at the start of a line.
    pub(crate) fn assert_one_error(&self) {
        let count = self.output.lines().filter(|it| it.starts_with("error: ")).count();
        assert_eq!(count, 1, "{count} errors:\n{}", self.output);
    }

    /// Fails the test unless a text occurs this often.
    pub(crate) fn assert_count(&self, text: &str, times: usize) {
        let count = self.count(text);
        assert_eq!(count, times, "{text:?} occurs {count} times:\n{}", self.output);
    }

    /// Fails the test unless the process ended with this code.
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "{}", self.output);
    }
}
