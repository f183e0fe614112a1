//! Splits a response body into lines.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use memchr::memchr;

use super::{reason::reason, transport::Frames};

/// Maximum length of a line in bytes. API servers limit objects to some megabytes; this protects from other servers.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// A line up to this number of bytes is copied. A frame is a slice of the buffer of its connection, 8 KiB and more, which is kept
/// as long as any line of it: thousands of objects that wait for a worker would each keep a buffer.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// A reader of lines. Cancel-safe: data that was read is kept.
pub(super) struct LineReader {
    body: Frames,
    splitter: Splitter,
    ended: bool,
}

/// The reason why there are no more lines, other than the end of the body.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The connection broke; contains the reason.
    Payload(String),
    /// A line is longer than [`LINE_BYTES_MAX`].
    TooLong,
}

impl LineReader {
    /// Reads the lines of this body.
    pub(super) fn new(body: Frames) -> Self {
        LineReader { body, splitter: Splitter::default(), ended: false }
    }

    /// Returns whether the body has ended; the last line may be incomplete.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the next line without its line feed; the last one may lack it.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        loop {
            match self.splitter.split() {
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) if self.ended => return None,
                Ok(None) => {}
                Err(broken) => return Some(Err(broken)),
            }
            match self.body.next().await {
                Some(Ok(frame)) => self.splitter.feed(frame),
                Some(Err(error)) => return Some(Err(Broken::Payload(reason(&error)))),
                None => {
                    self.ended = true;
                    self.splitter.feed(Bytes::from_static(b"\n"));
                }
            }
        }
    }
}

/// A splitter of frames into lines: a long line within one frame is a slice of it, one that spans frames is assembled.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The beginning of an incomplete line.
    begun: BytesMut,
    /// The part of the frame that was not split yet.
    frame: Bytes,
}

impl Splitter {
    /// Takes the next frame; the previous one must be used up.
    pub(super) fn feed(&mut self, frame: Bytes) {
        debug_assert!(self.frame.is_empty(), "a frame was not used up");
        self.frame = frame;
    }

    /// Returns the next line that is not empty; `None` if another frame is needed.
    pub(super) fn split(&mut self) -> Result<Option<Bytes>, Broken> {
        while let Some(end) = memchr(b'\n', &self.frame) {
            let mut line = self.frame.split_to(end);
            // The line feed itself.
            self.frame = self.frame.split_off(1);
            if !self.begun.is_empty() {
                self.begun.extend_from_slice(&line);
                line = std::mem::take(&mut self.begun).freeze();
            }
            if line.len() <= COPIED_BYTES_MAX {
                line = Bytes::copy_from_slice(&line);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        if self.begun.len().saturating_add(self.frame.len()) > LINE_BYTES_MAX {
            return Err(Broken::TooLong);
        }
        self.begun.extend_from_slice(&self.frame);
        self.frame = Bytes::new();
        Ok(None)
    }
}
