//! Scripts that change: real files with the real notifications of the system, `ConfigMap`s on the embedded server, and the driver
//! that makes generations of them.
//!
//! Nothing here waits for a fixed time: each test waits for an event, and fails if it does not come. The absence of an event is shown by
//! the next event.

mod driver;
mod editors;
mod live;
mod maps;
mod trees;
mod volumes;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use kopf::sources::{Maps, ScriptFiles, Snapshot, Sources};
use tokio::time::timeout;

/// Maximum time of any step, because the machine may be busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// A directory with the files of a test, which is removed with this value.
struct Desk(PathBuf);

impl Desk {
    /// Creates an empty directory.
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-reload-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Desk(path.canonicalize().expect("it is there"))
    }

    /// Returns the path of a file.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, with its directories.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Creates a symlink.
    fn link(&self, name: &str, target: &str) {
        symlink(target, self.path(name)).expect("a symlink");
    }

    /// Renames a file or a directory.
    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("it can be renamed");
    }

    /// Removes a file.
    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("it is there");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Watched sources; every set of them is treated as loaded.
struct Watch(Sources);

impl Watch {
    /// Watches the scripts at these paths of a desk.
    async fn files(desk: &Desk, paths: &[&str]) -> Self {
        Watch::polled(desk, paths, None).await
    }

    /// Watches and also polls them.
    async fn polled(desk: &Desk, paths: &[&str], poll: Option<Duration>) -> Self {
        let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
        let files = ScriptFiles::at(&paths, &desk.0, poll).expect("paths");
        Watch::begin(Sources::new(Some(files), None)).await
    }

    /// Watches `ConfigMap`s.
    async fn maps(maps: Maps) -> Self {
        Watch::begin(Sources::new(None, Some(maps))).await
    }

    async fn begin(sources: Sources) -> Self {
        let mut watch = Watch(sources);
        // The first wake-up comes by itself; from then on, changes cause notifications.
        watch.next().await;
        watch
    }

    /// Treats a set as loaded: the modules that its scripts require are read.
    fn believe(&mut self, look: &Snapshot) {
        self.0.tried(look.attempt());
        if look.scripts.is_ok() {
            self.0.took();
        }
    }

    /// Waits for the next set that differs from the last one.
    async fn next(&mut self) -> Snapshot {
        loop {
            let look = timeout(DEADLINE, self.0.changed()).await.expect("a look in time");
            if self.0.is_new(&look) {
                self.believe(&look);
                return look;
            }
        }
    }

    /// Waits for the next set, as `name=text`, or its problem.
    async fn next_text(&mut self) -> String {
        text(&self.next().await)
    }

    /// Waits for this set, and returns how many others came before it.
    async fn until(&mut self, expected: &str) -> usize {
        let mut others = 0;
        while self.next_text().await != expected {
            others += 1;
        }
        others
    }
}

/// Formats a set as `name=text`, or its problem.
fn text(look: &Snapshot) -> String {
    match &look.scripts {
        Ok(scripts) => {
            let texts = scripts.iter().map(|it| format!("{}={}", it.name, it.text));
            texts.collect::<Vec<_>>().join(" ")
        }
        Err(report) => report.message.clone(),
    }
}

/// Returns the content of a file.
fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file can be read")
}
