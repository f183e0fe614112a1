//! Headers of streams: all headers of a session are one zlib stream, with a dictionary that the protocol defines.

use std::{collections::BTreeMap, fmt};

use bytes::Buf as _;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::Error;

/// Headers by name, in lower case.
pub(crate) type Headers = BTreeMap<String, String>;

/// The dictionary that the protocol defines.
const DICTIONARY: &[u8] = include_bytes!("dictionary.bin");
/// The length of the zlib header; the checksum of the dictionary follows if one is used.
const ZLIB_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 4;
const HAS_DICTIONARY: u8 = 0x20;
/// Limit of the headers of a stream. They are a few words.
const HEADERS_BYTES_MAX: usize = 16 << 10;

/// Reads the headers of one direction.
#[derive(Default)]
pub(crate) struct HeaderReader {
    /// `None` before the first headers.
    inflate: Option<Decompress>,
}

impl HeaderReader {
    pub(crate) fn read(&mut self, packed: &[u8]) -> Result<Headers, Error> {
        let (inflate, packed) = match &mut self.inflate {
            Some(inflate) => (inflate, packed),
            first @ None => {
                let [_, flags, ..] = packed else { return Err(Error::Headers) };
                let is_with_dictionary = flags & HAS_DICTIONARY != 0;
                let start = ZLIB_BYTES + if is_with_dictionary { CHECKSUM_BYTES } else { 0 };
                let packed = packed.get(start..).ok_or(Error::Headers)?;
                let inflate = if is_with_dictionary { primed()? } else { Decompress::new(false) };
                (&mut *first.insert(inflate), packed)
            }
        };
        parse(&inflated(inflate, packed)?)
    }
}

impl fmt::Debug for HeaderReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderReader")
    }
}

/// Returns an inflater that has processed the dictionary as a stored block at the start of the stream.
fn primed() -> Result<Decompress, Error> {
    let length = u16::try_from(DICTIONARY.len()).unwrap_or(u16::MAX);
    let mut block = vec![0];
    block.extend(length.to_le_bytes());
    block.extend((!length).to_le_bytes());
    block.extend_from_slice(DICTIONARY);
    let mut inflate = Decompress::new(false);
    let seen = inflated(&mut inflate, &block)?;
    if seen == DICTIONARY { Ok(inflate) } else { Err(Error::Headers) }
}

fn inflated(inflate: &mut Decompress, packed: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(HEADERS_BYTES_MAX);
    inflate
        .decompress_vec(packed, &mut text, FlushDecompress::Sync)
        .map_err(|_damaged| Error::Headers)?;
    // If the buffer is full, there may be more.
    if text.len() < HEADERS_BYTES_MAX { Ok(text) } else { Err(Error::Headers) }
}

fn parse(text: &[u8]) -> Result<Headers, Error> {
    let mut rest = text;
    let word = |rest: &mut &[u8]| {
        let length = rest.try_get_u32().map_err(|_end| Error::Headers)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (word, after) = rest.split_at_checked(length).ok_or(Error::Headers)?;
        *rest = after;
        Ok::<_, Error>(String::from_utf8_lossy(word).to_lowercase())
    };
    let count = rest.try_get_u32().map_err(|_end| Error::Headers)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = word(&mut rest)?;
        headers.insert(name, word(&mut rest)?);
    }
    Ok(headers)
}

/// Writes the headers of one direction, which are always empty.
pub(crate) struct HeaderWriter {
    deflate: Compress,
}

impl HeaderWriter {
    pub(crate) fn new() -> Self {
        Self { deflate: Compress::new(Compression::fast(), true) }
    }

    /// Returns empty headers, as the next ones of the session.
    pub(crate) fn none(&mut self) -> Result<Vec<u8>, Error> {
        let mut packed = Vec::with_capacity(64);
        self.deflate
            .compress_vec(&0_u32.to_be_bytes(), &mut packed, FlushCompress::Sync)
            .map_err(|_never| Error::Headers)?;
        Ok(packed)
    }
}

impl fmt::Debug for HeaderWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderWriter")
    }
}
