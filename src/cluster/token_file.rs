//! A token in a file that another process rotates: the kubelet, or a sidecar.

use std::{fs, io, path::PathBuf, time::Duration};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The file is read again after this time. The kubelet rotates a token long before it expires; client-go uses the same minute.
const AGE_MAX: Duration = Duration::from_mins(1);

/// The token of a file, at most [`AGE_MAX`] older than the file.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// Fails if it cannot be read, or contains nothing that can be sent.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let header = read(&path)?;
        Ok(TokenFile { path, last: Mutex::new((header, Instant::now())) })
    }

    /// Returns the header that authorizes a request now.
    pub(super) fn authorization(&self) -> HeaderValue {
        let mut last = self.last.lock();
        if last.1.elapsed() >= AGE_MAX {
            // If the file is missing or incomplete, the last token is kept: a 401 shows when it has expired.
            if let Ok(header) = read(&self.path) {
                last.0 = header;
            }
            last.1 = Instant::now();
        }
        last.0.clone()
    }
}

fn read(path: &PathBuf) -> io::Result<HeaderValue> {
    let text = fs::read_to_string(path)?;
    let token = text.trim();
    if token.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    let invalid =
        |_problem| io::Error::new(io::ErrorKind::InvalidData, "the content is not a token");
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).map_err(invalid)?;
    header.set_sensitive(true);
    Ok(header)
}
