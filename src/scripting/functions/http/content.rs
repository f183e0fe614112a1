//! The body of a request: bytes, or a scratch file that is read while it is sent.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::scripting::functions::{outcome::Failure, scratch::ScratchFile};

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) enum RequestContent {
    Bytes(Bytes),
    File(Arc<ScratchFile>),
}

/// The body as the connection accepts it.
pub(super) type Sent = Either<Full<Bytes>, FileBody>;

impl RequestContent {
    /// Returns whether the body is empty.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            RequestContent::Bytes(bytes) => bytes.is_empty(),
            RequestContent::File(_) => false,
        }
    }

    /// Returns the body for one attempt.
    pub(super) fn sent(&self) -> Sent {
        match self {
            RequestContent::Bytes(bytes) => Either::Left(Full::new(bytes.clone())),
            RequestContent::File(file) => {
                Either::Right(FileBody { file: Arc::clone(file), offset: 0, reading: None })
            }
        }
    }

    /// Returns the bytes, for tests.
    ///
    /// # Errors
    /// There are more than `bytes_max`.
    pub(super) fn bytes(&self, bytes_max: usize) -> Result<Bytes, Failure> {
        match self {
            RequestContent::Bytes(bytes) => Ok(bytes.clone()),
            RequestContent::File(file) => file.read(bytes_max),
        }
    }
}

/// A file that is sent in pieces.
pub(super) struct FileBody {
    file: Arc<ScratchFile>,
    offset: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    fn left(&self) -> u64 {
        self.file.size().saturating_sub(self.offset)
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        let reading = self
            .reading
            .get_or_insert_with(|| tokio::task::spawn_blocking(move || file.read_at(offset)));
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let piece = read.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        self.offset += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
