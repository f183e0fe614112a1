//! Snapshots: all objects of the server in a file, so that they survive a restart.
//!
//! The format is JSON lines: a header with the format, the revision and the number of objects, then one object per line with its
//! resource. The file is replaced as a whole, so it is never half written. An unreadable file is an error, never an empty server.

use std::{
    borrow::Cow,
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    ApiServer,
    request::json,
    resource::{
        CRDS,
        kind::{Kind, VersionedKind},
    },
    store::{ObjectName, stored::Stored},
};

/// The version of the format; raised when older programs cannot read a new file.
const FORMAT: u32 = 1;

/// The number by which [`ApiServer::roll_back`] advances the version of the server, so that no client has seen it before.
const ROLL_BACK_STEP: u64 = 1000;

/// All objects at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    tables: Vec<TableSnapshot>,
}

/// The objects of one resource.
#[derive(Clone, Debug)]
struct TableSnapshot {
    /// The qualified name: `plural.group`.
    resource: String,
    api_version: String,
    kind: String,
    objects: Vec<Arc<Stored>>,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    #[serde(rename = "embeddedKubernetes")]
    format: u32,
    revision: u64,
    objects: usize,
}

/// The line of one object.
#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    resource: Cow<'a, str>,
    object: Cow<'a, RawValue>,
}

/// The reasons for which a file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot read it.
    #[error("cannot read '{}': {source}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It has another format, or is damaged.
    #[error("'{}' is not a snapshot of the embedded server, or is damaged: line {line}: {reason}", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The number of the first invalid line.
        line: usize,
        /// The error in this line.
        reason: String,
    },
}

impl ApiServer {
    /// Returns a snapshot of all objects.
    pub fn export(&self) -> Snapshot {
        let store = self.0.store();
        let tables = store.tables.iter().map(|(resource, table)| {
            let view = VersionedKind::new(&table.kind, table.kind.storage());
            TableSnapshot {
                resource: resource.clone(),
                api_version: view.api_version,
                kind: table.kind.def.kind.clone(),
                objects: table.objects.values().cloned().collect(),
            }
        });
        Snapshot { tables: tables.collect(), revision: store.revision }
    }

    /// Adds the objects of a snapshot, with their versions. Intended for a server that has not been used yet.
    ///
    /// # Errors
    /// Fails with the name of the first resource that this server does not serve.
    pub fn restore(&self, snapshot: Snapshot) -> Result<(), String> {
        let mut store = self.0.store();
        let (definitions, others): (Vec<_>, Vec<_>) =
            snapshot.tables.into_iter().partition(|it| it.resource == CRDS);
        for definition in definitions.iter().flat_map(|it| &it.objects) {
            if let Some(kind) = Kind::from_crd(&definition.tree("", "")) {
                store.define(kind);
            }
        }
        for TableSnapshot { resource, objects, .. } in definitions.into_iter().chain(others) {
            let Some(table) = store.tables.get_mut(&resource) else { return Err(resource) };
            table.objects.extend(objects.into_iter().map(|it| (place(&it), it)));
        }
        store.revision = store.revision.max(snapshot.revision);
        // The earlier history is not known: clients must list again.
        store.compacted = store.revision;
        drop(store);
        self.0.announce();
        Ok(())
    }

    /// Replaces all objects by those of an earlier snapshot, as when a backup of etcd is restored with `--bump-revision
    /// --mark-compacted`. Versions of objects go back. All watches end, and clients must list again.
    pub fn roll_back(&self, snapshot: Snapshot) {
        let mut store = self.0.store();
        store.tables.values_mut().for_each(|it| it.objects.clear());
        for TableSnapshot { resource, objects, .. } in snapshot.tables {
            if let Some(table) = store.tables.get_mut(&resource) {
                table.objects.extend(objects.into_iter().map(|it| (place(&it), it)));
            }
        }
        store.revision = store.revision.saturating_add(ROLL_BACK_STEP);
        store.compacted = store.revision;
        drop(store);
        self.close_watches();
    }
}

fn place(object: &Stored) -> ObjectName {
    ObjectName { namespace: object.head.namespace.to_string(), name: object.head.name.to_string() }
}

impl Snapshot {
    /// Returns the version of the latest change in the snapshot.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|it| it.objects.len()).sum()
    }

    /// Returns whether the snapshot has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is incomplete.
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
        let mut snapshot = Snapshot { revision: head.revision, tables: Vec::new() };
        let mut count = 0;
        for (index, line) in lines {
            let line = line.map_err(unreadable)?;
            snapshot.take(&line).map_err(|it| damaged(index + 1, it))?;
            count += 1;
        }
        if count != head.objects {
            let reason = format!("there are {count} objects, but {} were written", head.objects);
            return Err(damaged(1, reason));
        }
        Ok(Some(snapshot))
    }

    /// Parses one more line, and adds its object.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let line: Line<'_> = parse(line)?;
        let object: Value = parse(line.object.get().as_bytes())?;
        let stored = Stored::of(&object);
        if stored.head.name.is_empty() || stored.head.revision == 0 {
            return Err(
                "this is no object of a server: it has no name or no resourceVersion".into()
            );
        }
        let same = self.tables.pop_if(|it| it.resource == line.resource);
        let mut table = same.unwrap_or_else(|| {
            let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
            TableSnapshot {
                resource: line.resource.into_owned(),
                api_version: text("apiVersion").into(),
                kind: text("kind").into(),
                objects: Vec::new(),
            }
        });
        table.objects.push(Arc::new(stored));
        self.tables.push(table);
        Ok(())
    }

    /// Replaces a file atomically: at any moment it is either the old or the new one.
    ///
    /// # Errors
    /// Fails if the system cannot write the file; then the old one is unchanged.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let next = path.with_file_name(name);
        let mut options = OpenOptions::new();
        // Only the owner may read the file: it contains secrets.
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        let written = self.write_to(file).and_then(|()| fs::rename(&next, path));
        if written.is_err() {
            let _left = fs::remove_file(&next).is_err();
        }
        written?;
        // The entry of the directory must be on the disk, too.
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn write_to(&self, file: File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        let head = Head { format: FORMAT, revision: self.revision, objects: self.len() };
        serde_json::to_writer(&mut out, &head)?;
        for table in &self.tables {
            for object in &table.objects {
                out.write_all(b"\n")?;
                let group = table.api_version.split_once('/').map(|(group, _)| group);
                let api_version = match group {
                    Some(group) if !object.version().is_empty() => {
                        format!("{group}/{}", object.version())
                    }
                    Some(_) | None => table.api_version.clone(),
                };
                let text = object.text(&api_version, &table.kind);
                let object = json::stored(&text).map(Cow::Owned)?;
                let resource = Cow::Borrowed(table.resource.as_str());
                serde_json::to_writer(&mut out, &Line { resource, object })?;
            }
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    json::stored(line).map_err(|it| it.to_string())
}
