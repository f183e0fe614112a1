//! A token in a file that somebody rotates: the kubelet, or a side car.

use std::{fs, io, path::PathBuf, time::Duration};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The file is read again after this time. The kubelet rotates a token long before it expires; client-go has the same minute.
const AGE_MAX: Duration = Duration::from_mins(1);

/// Gives the token of a file, never one much older than the file.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// When it cannot be read, or has nothing that can be sent.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let header = read(&path)?;
        Ok(TokenFile { path, last: Mutex::new((header, Instant::now())) })
    }

    /// The header that authorizes a request now.
    pub(super) fn authorization(&self) -> HeaderValue {
        let mut last = self.last.lock();
        if last.1.elapsed() >= AGE_MAX {
            // A file that is gone or half-written keeps the last token: a 401 tells soon enough when that is too old.
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
    let invalid = |_problem| io::Error::new(io::ErrorKind::InvalidData, "this is no token");
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).map_err(invalid)?;
    header.set_sensitive(true);
    Ok(header)
}
