//! The kubeconfig of a served server: readable by its owner only, removed at the end.
//!
//! A file that this program has not written is never overwritten, because it could be the only access to a real cluster.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Identifies files that this program has written.
const MARK: &str =
    "# A kubeconfig of an embedded Kubernetes API server; gone when the server ends.\n";

/// Limit of file names tried in a directory: more than the servers of one machine.
const NAMES_MAX: u32 = 100;

/// A kubeconfig that this process owns. It is locked against other servers, and removed when this value is dropped.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    file: File,
}

/// The reasons for which a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file was not written by this program.
    #[error("'{}' exists and is not a kubeconfig of kopf: it is not overwritten", .0.display())]
    Foreign(PathBuf),
    /// Another server uses it.
    #[error("'{}' is the kubeconfig of another embedded server, which is running", .0.display())]
    InUse(PathBuf),
    /// The system refuses access.
    #[error("cannot write the kubeconfig '{}': {source}", path.display())]
    Unusable {
        /// The file or its directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Kubeconfig {
    /// Locks the file at this path.
    ///
    /// # Errors
    /// Fails if the file was not written by this program, is in use, or cannot be written.
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

    /// Locks the first free file in a directory, which is created if missing. It is the same one after each restart, so a shell
    /// that refers to it keeps working.
    ///
    /// # Errors
    /// Fails if the directory cannot be used.
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

    /// Writes the address of the server into the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
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

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // The file may have been removed already.
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
