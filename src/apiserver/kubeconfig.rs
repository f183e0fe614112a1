//! The kubeconfig of a served server: written for the owner only, removed at the end.
//!
//! A file that we have not written is never overwritten: it could be the only way to somebody's real cluster.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// How we know our own files.
const MARK: &str =
    "# A kubeconfig of an embedded Kubernetes API server; gone when the server ends.\n";

/// Names tried in a directory before giving up: nobody runs so many at once.
const NAMES_MAX: u32 = 100;

/// Our file. While this value lives the file is locked against others of our kind; with it the file goes.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    file: File,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has other contents than ours.
    #[error("'{}' exists and is no kubeconfig of ours: it is left as it is", .0.display())]
    Foreign(PathBuf),
    /// Another server has it.
    #[error("'{}' is the kubeconfig of another embedded server, which is running", .0.display())]
    InUse(PathBuf),
    /// The system says no.
    #[error("cannot write the kubeconfig '{}': {source}", path.display())]
    Unusable {
        /// The file or its directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Kubeconfig {
    /// Takes this very file.
    ///
    /// # Errors
    /// When the file is not ours, or cannot be written.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Unusable { path: path.into(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse(path.into())),
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let mut start = Vec::new();
        let length = u64::try_from(MARK.len()).unwrap_or(u64::MAX);
        (&mut file).take(length).read_to_end(&mut start).map_err(unusable)?;
        if !start.is_empty() && start != MARK.as_bytes() {
            return Err(Error::Foreign(path.into()));
        }
        Ok(Kubeconfig { path: path.into(), file })
    }

    /// Takes the first free file in a directory of ours, which is made if missing: the same one after each restart, so that a
    /// shell which has its name can go on.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub fn within(directory: &Path) -> Result<Self, Error> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| Error::Unusable { path: directory.into(), source })?;
        for number in 1..=NAMES_MAX {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            match Self::at(&directory.join(format!("dev{suffix}.kubeconfig"))) {
                Err(Error::InUse(_) | Error::Foreign(_)) => {}
                taken => return taken,
            }
        }
        Err(Error::InUse(directory.into()))
    }

    /// Says where the server is.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, url: &str) -> Result<(), Error> {
        let text = text(url);
        let file = &mut self.file;
        let written = file
            .set_permissions(fs::Permissions::from_mode(0o600))
            .and_then(|()| file.rewind())
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|source| Error::Unusable { path: self.path.clone(), source })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // If it is gone already, all the better.
        let _left = fs::remove_file(&self.path).is_err();
    }
}

fn text(url: &str) -> String {
    format!(
        "{MARK}\
apiVersion: v1
kind: Config
current-context: kopf-dev
contexts:
- name: kopf-dev
  context:
    cluster: kopf-dev
    user: kopf-dev
    namespace: default
clusters:
- name: kopf-dev
  cluster:
    server: {url}
users:
- name: kopf-dev
  user: {{}}
"
    )
}
