//! The objects of the server in a file, so that they survive a restart.
//!
//! JSON lines: a head with the format, the revision and the number of objects, then one object per line with its resource. The
//! file is replaced as a whole, so it is never half written; one that cannot be read is an error, never an empty server.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::apiserver::{
    ApiServer, object,
    resource::{self, ResourceDef},
};

/// Raised when an older version could not read the file.
const FORMAT: u32 = 1;

/// All objects at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    serial: u64,
    objects: Vec<Stored>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    #[serde(rename = "embeddedKubernetes")]
    format: u32,
    revision: u64,
    /// So that names and uids stay unique.
    serial: u64,
    objects: usize,
}

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    /// `plural.group`
    resource: String,
    object: Arc<Value>,
}

/// Why a file gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system does not let us read it.
    #[error("cannot read '{}': {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is something else, or damaged.
    #[error("'{}' is no snapshot of the embedded server, or it is damaged: line {line}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first line that cannot be used.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl ApiServer {
    /// All objects as they are now.
    pub fn export(&self) -> Snapshot {
        let store = self.0.store();
        let tables = store.tables.iter();
        let objects = tables.flat_map(|(resource, table)| {
            let objects = table.objects.values();
            objects.map(|it| Stored { resource: resource.clone(), object: Arc::clone(it) })
        });
        Snapshot { revision: store.revision, serial: store.serial, objects: objects.collect() }
    }

    /// Takes over all objects, with their versions. Meant for a server that nobody has used yet.
    ///
    /// # Errors
    /// The name of the first resource that this server does not know.
    pub fn restore(&self, snapshot: Snapshot) -> Result<(), String> {
        let mut store = self.0.store();
        let (definitions, others): (Vec<_>, Vec<_>) =
            snapshot.objects.into_iter().partition(|it| it.resource == resource::CRDS);
        for Stored { resource, object } in definitions.into_iter().chain(others) {
            if resource == resource::CRDS
                && let Some(def) = ResourceDef::from_crd(&object)
            {
                store.define(def);
            }
            let place = ["namespace", "name"].map(|it| object::meta(&object, it).to_owned());
            let Some(table) = store.tables.get_mut(&resource) else { return Err(resource) };
            table.objects.insert(place.into(), object);
        }
        store.revision = store.revision.max(snapshot.revision);
        store.serial = store.serial.max(snapshot.serial);
        // What happened before is not known: who asks for it has to list.
        store.compacted = store.revision;
        drop(store);
        self.0.announce();
        Ok(())
    }

    /// Waits until something has changed after this revision.
    pub async fn changed(&self, after: u64) {
        let mut signal = self.0.signal.subscribe();
        // The other side lives as long as this server.
        drop(signal.wait_for(|it| it.revision > after).await);
    }
}

impl Snapshot {
    /// The version of the latest change in it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many objects it has.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether it has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is not whole.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let unreadable = |source| Error::Unreadable { path: path.into(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unreadable(source)),
        };
        let damaged =
            |line: usize, reason: String| Error::Damaged { path: path.into(), line, reason };
        let mut lines = BufReader::new(file).split(b'\n').enumerate();
        let Some((_, first)) = lines.next() else {
            return Err(damaged(1, "the file is empty".into()));
        };
        let head: Head = parse(&first.map_err(unreadable)?).map_err(|it| damaged(1, it))?;
        if head.format > FORMAT {
            let reason = format!("format {} is of a later version", head.format);
            return Err(damaged(1, reason));
        }
        let mut objects = Vec::new();
        for (index, line) in lines {
            let line = line.map_err(unreadable)?;
            objects.push(parse(&line).map_err(|it| damaged(index + 1, it))?);
        }
        if objects.len() != head.objects {
            let reason =
                format!("{} objects are missing", head.objects.saturating_sub(objects.len()));
            return Err(damaged(objects.len() + 2, reason));
        }
        Ok(Some(Snapshot { revision: head.revision, serial: head.serial, objects }))
    }

    /// Replaces a file. It is either the old or the new one, whatever happens meanwhile.
    ///
    /// # Errors
    /// When the system says no; then the old file is as it was.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let next = path.with_file_name(name);
        let mut options = OpenOptions::new();
        // Secrets are in it.
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        let written = self.write_to(file).and_then(|()| fs::rename(&next, path));
        if written.is_err() {
            let _left = fs::remove_file(&next).is_err();
        }
        written?;
        // The name itself must be on the disk too.
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn write_to(&self, file: File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        let head = Head {
            format: FORMAT,
            revision: self.revision,
            serial: self.serial,
            objects: self.objects.len(),
        };
        serde_json::to_writer(&mut out, &head)?;
        for stored in &self.objects {
            out.write_all(b"\n")?;
            serde_json::to_writer(&mut out, stored)?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|it| it.to_string())
}
