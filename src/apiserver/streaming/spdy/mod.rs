//! Frames of SPDY/3.1, as far as Kubernetes uses them: streams with headers, data and ends, and pings.
//!
//! There is no flow control, because clients of Kubernetes do not have it either.

pub(crate) mod headers;

use bytes::{Buf as _, Bytes, BytesMut};

use self::headers::{HeaderReader, HeaderWriter, Headers};

/// Flag: closes the stream in this direction.
const FIN: u8 = 1;
const HEAD_BYTES: usize = 8;
/// Limit of a frame. Clients send pieces of 32 KiB.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The first bit of all control frames.
const CONTROL: u32 = 1 << 31;
/// The version, with the bit of control frames.
const VERSION: u16 = 0x8003;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// A frame from a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpdyFrame {
    /// Opens a stream with these headers.
    Open { stream: u32, headers: Headers, last: bool },
    /// Has bytes of a stream.
    Data { stream: u32, bytes: Bytes, last: bool },
    /// Aborts a stream before its end.
    Reset { stream: u32 },
    /// Must be sent back.
    Ping { id: u32 },
    /// Announces that no more streams follow.
    GoAway,
    /// Has no effect here.
    Other,
}

/// The reasons for which a session cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("a frame of {0} bytes is too large")]
    TooLarge(usize),
    #[error("a frame is too short")]
    Short,
    #[error("SPDY version {0:#x} is not known")]
    Version(u16),
    #[error("the headers of a stream cannot be read")]
    Headers,
}

/// Reads frames from pieces of bytes with any boundaries.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    rest: BytesMut,
    headers: HeaderReader,
}

impl FrameReader {
    /// Adds received bytes to the unread ones.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Returns the next complete frame.
    pub(crate) fn next(&mut self) -> Result<Option<SpdyFrame>, Error> {
        let Some((head, _)) = self.rest.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [first @ .., flags, high, middle, low] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(Error::TooLarge(length));
        }
        if self.rest.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        self.rest.advance(HEAD_BYTES);
        let mut body = self.rest.split_to(length).freeze();
        let last = flags & FIN != 0;
        let stream = u32::from_be_bytes(first);
        if stream & CONTROL == 0 {
            return Ok(Some(SpdyFrame::Data { stream, bytes: body, last }));
        }
        let [version @ .., kind_high, kind_low] = first;
        let version = u16::from_be_bytes(version);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let mut number = || body.try_get_u32().map_err(|_end| Error::Short);
        Ok(Some(match u16::from_be_bytes([kind_high, kind_low]) {
            SYN_STREAM => {
                let stream = number()?;
                let _associated = number()?;
                // The priority is ignored.
                body.try_get_u16().map_err(|_end| Error::Short)?;
                SpdyFrame::Open { stream, headers: self.headers.read(&body)?, last }
            }
            RST_STREAM => SpdyFrame::Reset { stream: number()? },
            PING => SpdyFrame::Ping { id: number()? },
            GOAWAY => SpdyFrame::GoAway,
            _ => SpdyFrame::Other,
        }))
    }
}

/// Writes frames of the server.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    headers: HeaderWriter,
}

impl FrameWriter {
    pub(crate) fn new() -> Self {
        Self { headers: HeaderWriter::new() }
    }

    /// Returns the frame that accepts a stream.
    pub(crate) fn reply(&mut self, stream: u32) -> Result<Vec<u8>, Error> {
        let mut body = stream.to_be_bytes().to_vec();
        body.extend(self.headers.none()?);
        Ok(control(SYN_REPLY, &body))
    }

    /// Returns the response to a ping.
    pub(crate) fn pong(id: u32) -> Vec<u8> {
        control(PING, &id.to_be_bytes())
    }

    /// Returns a frame with bytes of a stream.
    pub(crate) fn data(stream: u32, bytes: &[u8], last: bool) -> Vec<u8> {
        let mut frame = stream.to_be_bytes().to_vec();
        frame.extend(flags_and_length(if last { FIN } else { 0 }, bytes.len()));
        frame.extend_from_slice(bytes);
        frame
    }
}

fn control(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = VERSION.to_be_bytes().to_vec();
    frame.extend(kind.to_be_bytes());
    frame.extend(flags_and_length(0, body.len()));
    frame.extend_from_slice(body);
    frame
}

fn flags_and_length(flags: u8, length: usize) -> [u8; 4] {
    // Frames of this server are far shorter than the limit of three bytes.
    let [_, high, middle, low] = u32::try_from(length).unwrap_or(0).to_be_bytes();
    [flags, high, middle, low]
}
