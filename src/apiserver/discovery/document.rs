//! Large documents that clients cache: they request them again with the `ETag` of their copy.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
};

use blake2::{Blake2s256, Digest as _};
use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// A document in memory, compressed: it is requested rarely, and often in compressed form.
#[derive(Clone, Debug)]
pub(crate) struct CompressedDocument {
    pub(crate) content_type: &'static str,
    /// The value of the header `ETag`, with quotes.
    pub(crate) etag: String,
    packed: Bytes,
}

impl CompressedDocument {
    pub(crate) fn new(content_type: &'static str, body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail; if it did, clients would get an empty document.
        let packed = encoder.write_all(body).and_then(|()| encoder.finish()).unwrap_or_default();
        Self { content_type, etag: etag(body), packed: packed.into() }
    }

    /// Returns the compressed document, for clients that accept `gzip`.
    pub(crate) fn packed(&self) -> Bytes {
        self.packed.clone()
    }

    /// Returns the document, decompressed.
    pub(crate) fn body(&self) -> Bytes {
        let mut body = Vec::new();
        match GzDecoder::new(&self.packed[..]).read_to_end(&mut body) {
            Ok(_) => body.into(),
            // This program has compressed it.
            Err(_broken) => Bytes::new(),
        }
    }

    /// Returns whether the client has the document, by its header `If-None-Match`: the response is then a 304 without a body.
    pub(crate) fn is_known(&self, if_none_match: &str) -> bool {
        is_known(&self.etag, if_none_match)
    }
}

/// Returns the `ETag` of a content.
pub(crate) fn etag(body: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in Blake2s256::digest(body) {
        // Writing to a string does not fail.
        write!(tag, "{byte:02X}").unwrap_or_default();
    }
    tag.push('"');
    tag
}

/// Returns whether a header `If-None-Match` contains this `ETag`.
pub(crate) fn is_known(etag: &str, if_none_match: &str) -> bool {
    let mut tags = if_none_match.split(',').map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == etag)
}
