//! Files next to a script that are no modules, such as templates.

use std::{fmt, sync::Arc};

/// Reads files next to a script, as its modules are found.
#[derive(Clone, Default)]
pub(crate) struct Files(Option<Arc<Read>>);

type Read = dyn Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync;

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It cannot be read, whatever is on the disk.
    Refused(String),
    /// It is not there now.
    Missing(String),
}

impl Files {
    /// Reads them with this function.
    pub(crate) fn by(
        read: impl Fn(&str) -> Result<Arc<str>, Unread> + Send + Sync + 'static,
    ) -> Self {
        Files(Some(Arc::new(read)))
    }

    /// Returns the text of a file.
    pub(crate) fn read(&self, name: &str) -> Result<Arc<str>, Unread> {
        match &self.0 {
            Some(read) => read(name),
            None => Err(Unread::Missing("the script is in no directory".into())),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}
