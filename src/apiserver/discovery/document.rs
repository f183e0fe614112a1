//! Big documents that clients keep: they ask again with the tag of what they have.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
};

use blake2::{Blake2s256, Digest as _};
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// A document at rest: packed, for it is asked for seldom and often in packed form.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) content_type: &'static str,
    /// For the header `ETag`, with its quotes.
    pub(crate) etag: String,
    packed: Bytes,
}

impl Document {
    pub(crate) fn new(content_type: &'static str, body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail; if it did, clients would see an empty document.
        let packed = encoder.write_all(body).and_then(|()| encoder.finish()).unwrap_or_default();
        Self { content_type, etag: etag(body), packed: packed.into() }
    }

    /// As it stands on the wire for clients that accept `gzip`.
    pub(crate) fn packed(&self) -> Bytes {
        self.packed.clone()
    }

    /// The document itself.
    pub(crate) fn body(&self) -> Bytes {
        let mut body = Vec::new();
        match GzDecoder::new(&self.packed[..]).read_to_end(&mut body) {
            Ok(_) => body.into(),
            // It was packed by us.
            Err(_broken) => Bytes::new(),
        }
    }

    /// Whether the client has it already, by its header `If-None-Match`: the answer is 304 then, without a body.
    pub(crate) fn is_known(&self, if_none_match: &str) -> bool {
        is_known(&self.etag, if_none_match)
    }
}

/// A tag that changes with the content.
pub(crate) fn etag(body: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in Blake2s256::digest(body) {
        // Writing to a text does not fail.
        write!(tag, "{byte:02X}").unwrap_or_default();
    }
    tag.push('"');
    tag
}

/// Whether one of the tags of a header `If-None-Match` is this one.
pub(crate) fn is_known(etag: &str, if_none_match: &str) -> bool {
    let mut tags = if_none_match.split(',').map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == etag)
}
