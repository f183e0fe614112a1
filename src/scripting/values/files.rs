//! Files next to a script that are not modules, such as templates.

use std::{fmt, sync::Arc};

/// Reads files next to a script. They are looked up like its modules.
#[derive(Clone, Default)]
pub(crate) struct FileReader(Option<Arc<ReadFile>>);

type ReadFile = dyn Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync;

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Permanent: independent of the files on the disk.
    Refused(String),
    /// The file is missing now.
    Missing(String),
}

impl FileReader {
    /// Returns a reader that calls this function.
    pub(crate) fn by(
        read: impl Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync + 'static,
    ) -> Self {
        FileReader(Some(Arc::new(read)))
    }

    /// Returns the content of a file.
    pub(crate) fn read(&self, name: &str) -> Result<Arc<str>, Unread> {
        match &self.0 {
            Some(read) => read(name),
            None => Err(Unread::Missing("the script has no directory".into())),
        }
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}
