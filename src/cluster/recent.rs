//! Objects that were received recently. The server sends each version that the operator writes twice, in the response and in an event:
//! the second text is only compared with the first one, and not parsed.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;

use crate::logic::object::Object;

/// Maximum length of all texts together, in bytes: of about a hundred small objects. Between a response and its event, the server sends
/// few others.
pub(super) const BYTES_MAX: usize = 128 << 10;

/// Maximum length of a version, in bytes: those of etcd are numbers.
const VERSION_BYTES_MAX: usize = 20;

/// The objects of the last texts.
#[derive(Default)]
pub(super) struct RecentObjects(Mutex<RecentTexts>);

/// The texts, oldest first, and their length in bytes.
#[derive(Default)]
struct RecentTexts {
    texts: VecDeque<RecentText>,
    bytes: usize,
}

/// One text, as it was received.
struct RecentText {
    version: Version,
    text: Bytes,
    object: Object,
}

/// The version in a text, or what looks like it: equal in equal texts.
type Version = [u8; VERSION_BYTES_MAX];

impl RecentObjects {
    /// Parses an object, as [`Object::parse`] does.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub(super) fn parse(&self, text: Bytes) -> Result<Object, serde_json::Error> {
        let Some(version) = version(&text) else { return Object::parse(text) };
        if let Some(object) = self.0.lock().take(&version, &text) {
            return Ok(object);
        }
        let object = Object::parse(text.clone())?;
        self.0.lock().add(RecentText { version, text, object: object.of_same_text() });
        Ok(object)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().bytes
    }
}

impl RecentTexts {
    /// Removes the object of this text, if it is known: there is no third text.
    fn take(&mut self, version: &Version, text: &Bytes) -> Option<Object> {
        let is_same = |it: &RecentText| it.version == *version && it.text == text;
        let index = self.texts.iter().position(is_same)?;
        let found = self.texts.remove(index)?;
        self.bytes = self.bytes.saturating_sub(text.len());
        Some(found.object)
    }

    fn add(&mut self, text: RecentText) {
        self.bytes = self.bytes.saturating_add(text.text.len());
        self.texts.push_back(text);
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.texts.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.text.len());
        }
    }
}

/// Returns the first version in a text; `None` if there is none, or a long one.
fn version(text: &[u8]) -> Option<Version> {
    const KEY: &[u8] = b"\"resourceVersion\":\"";
    let value = text.get(memmem::find(text, KEY)? + KEY.len()..)?;
    let length = value.iter().take(VERSION_BYTES_MAX + 1).position(|it| *it == b'"')?;
    let mut version = [0; VERSION_BYTES_MAX];
    version.get_mut(..length)?.copy_from_slice(value.get(..length)?);
    Some(version)
}
