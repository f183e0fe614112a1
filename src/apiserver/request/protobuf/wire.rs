//! The wire format of protobuf: tags, numbers, and length-delimited bytes, with the error messages of the real server.

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
/// The wire type of strings, messages, and packed numbers.
pub(super) const BYTES: u8 = 2;
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;
const FIXED32: u8 = 5;
/// The maximum length: ten bytes of seven bits for a number of 64 bits.
const VARINT_BYTES: u32 = 10;

/// The message about malformed bytes.
pub(super) type WireError = String;

/// The number of a field, and its wire type.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire: u8,
}

impl Tag {
    /// Checks the wire type of a field.
    pub(super) fn expect(self, wire: u8, field: &str) -> Result<(), WireError> {
        if self.wire == wire {
            return Ok(());
        }
        Err(format!("proto: wrong wireType = {} for field {field}", self.wire))
    }

    pub(super) fn is_varint(self, field: &str) -> Result<(), WireError> {
        self.expect(VARINT, field)
    }

    pub(super) fn is_fixed64(self, field: &str) -> Result<(), WireError> {
        self.expect(FIXED64, field)
    }
}

/// Reads a message from its start to its end.
pub(super) struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the tag of the next field of a message; `None` at its end.
    pub(super) fn tag(&mut self, message: &str) -> Result<Option<Tag>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (tag, raw) = self.loose_tag()?;
        if tag.wire == GROUP_END {
            return Err(format!("proto: {message}: wiretype end group for non-group"));
        }
        if tag.number.cast_signed() <= 0 {
            let number = tag.number.cast_signed();
            return Err(format!("proto: {message}: illegal tag {number} (wire type {raw})"));
        }
        Ok(Some(tag))
    }

    /// Reads the tag of the next field of a map entry, where nothing is checked; `None` at its end.
    pub(super) fn entry_tag(&mut self) -> Result<Option<Tag>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.loose_tag()?.0))
    }

    fn loose_tag(&mut self) -> Result<(Tag, u64), WireError> {
        let raw = self.varint()?;
        let [low, ..] = raw.to_le_bytes();
        Ok((Tag { number: low_half(raw >> 3), wire: low & 7 }, raw))
    }

    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for at in 0..VARINT_BYTES {
            let (byte, rest) = self.0.split_first().ok_or_else(cut)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".into())
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, WireError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.varint()?;
        if length.cast_signed() < 0 {
            return Err("proto: negative length found during unmarshaling".into());
        }
        let length = usize::try_from(length).map_err(|_too_long| cut())?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a string. Invalid UTF-8 is replaced, as Go does when it writes JSON.
    pub(super) fn text(&mut self) -> Result<String, WireError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// Skips the value of a field. Groups may contain groups: they are counted, without recursion.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), WireError> {
        let mut tag = tag;
        let mut open = 0_usize;
        loop {
            match tag.wire {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.fixed64()?),
                BYTES => drop(self.bytes()?),
                GROUP => open += 1,
                GROUP_END => {
                    open = open.checked_sub(1).ok_or("proto: unexpected end of group")?;
                }
                FIXED32 => {
                    self.0 = self.0.split_first_chunk::<4>().ok_or_else(cut)?.1;
                }
                other => return Err(format!("proto: illegal wireType {other}")),
            }
            if open == 0 {
                return Ok(());
            }
            tag = self.loose_tag()?.0;
        }
    }
}

/// Returns the lower 32 bits of a number, as Go does.
pub(super) fn low_half(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn cut() -> WireError {
    "unexpected EOF".into()
}
