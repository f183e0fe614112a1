//! Objects that were received recently. The server sends each version that the operator writes twice, in the response and in an event:
//! whichever is second is only compared with the first one, and not parsed.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;

use crate::logic::object::Object;

/// Maximum length of the texts of all responses, and of all events, in bytes: of dozens of small objects. Between a response and its event,
/// the server sends few others.
pub(super) const BYTES_MAX: usize = 64 << 10;

/// Maximum length of a version, in bytes: those of etcd are numbers.
const VERSION_BYTES_MAX: usize = 20;

/// The objects of responses without their events, and of events that may be followed by their responses.
#[derive(Default)]
pub(super) struct RecentObjects(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    /// Number of requests without a response.
    pending: usize,
    responses: Texts,
    events: Texts,
}

/// The next response. Dropping it tells that there is none.
pub(super) struct NextResponse<'a>(&'a RecentObjects);

/// Texts as they were received, oldest first, and their length in bytes.
#[derive(Default)]
struct Texts {
    texts: VecDeque<ReceivedText>,
    bytes: usize,
}

struct ReceivedText {
    version: Version,
    raw: Bytes,
    object: Arc<Object>,
}

/// The version in a text, or what looks like it: equal in equal texts.
type Version = [u8; VERSION_BYTES_MAX];

impl RecentObjects {
    /// Begins a request: events may come before its response.
    pub(super) fn begin(&self) -> NextResponse<'_> {
        self.0.lock().pending += 1;
        NextResponse(self)
    }

    /// Parses the object of an event, as [`Object::parse`] does.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub(super) fn event(&self, text: Bytes) -> Result<Arc<Object>, serde_json::Error> {
        let mut recent = self.0.lock();
        if recent.pending == 0 && recent.responses.texts.is_empty() {
            return Object::parse(text).map(Arc::new);
        }
        let Recent { pending, responses, events } = &mut *recent;
        parse(text, responses, (*pending > 0).then_some(events))
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let recent = self.0.lock();
        recent.responses.bytes + recent.events.bytes
    }
}

impl NextResponse<'_> {
    /// Parses the object of the response, as [`Object::parse`] does.
    ///
    /// # Errors
    /// Fails as [`Object::parse`] does.
    pub(super) fn parse(self, text: Bytes) -> Result<Arc<Object>, serde_json::Error> {
        let Recent { responses, events, .. } = &mut *self.0.0.lock();
        parse(text, events, Some(responses))
    }
}

impl Drop for NextResponse<'_> {
    fn drop(&mut self) {
        let mut recent = self.0.0.lock();
        recent.pending = recent.pending.saturating_sub(1);
        if recent.pending == 0 {
            recent.events = Texts::default();
        }
    }
}

impl Texts {
    /// Removes the object of this text, if it is there.
    fn take(&mut self, version: &Version, text: &Bytes) -> Option<Arc<Object>> {
        let is_same = |it: &ReceivedText| it.version == *version && it.raw == text;
        let index = self.texts.iter().position(is_same)?;
        let found = self.texts.remove(index)?;
        self.bytes = self.bytes.saturating_sub(text.len());
        if self.texts.is_empty() {
            // Without the memory that a burst needed.
            *self = Texts::default();
        }
        Some(found.object)
    }

    fn add(&mut self, text: ReceivedText) {
        self.bytes = self.bytes.saturating_add(text.raw.len());
        self.texts.push_back(text);
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.texts.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.raw.len());
        }
    }
}

/// Returns the object of this text: from the first texts if they have it. Otherwise, it is parsed, and kept for the second text.
fn parse(
    text: Bytes,
    first: &mut Texts,
    kept: Option<&mut Texts>,
) -> Result<Arc<Object>, serde_json::Error> {
    let Some(version) = version(&text) else { return Object::parse(text).map(Arc::new) };
    if let Some(object) = first.take(&version, &text) {
        return Ok(object);
    }
    let object = Arc::new(Object::parse(text.clone())?);
    if let Some(kept) = kept {
        kept.add(ReceivedText { version, raw: text, object: Arc::clone(&object) });
    }
    Ok(object)
}

/// Returns the version in a text; `None` if there is none, or a long one.
fn version(text: &[u8]) -> Option<Version> {
    const KEY: &[u8] = b"\"resourceVersion\":\"";
    let value = text.get(memmem::find(text, KEY)? + KEY.len()..)?;
    let length = value.iter().take(VERSION_BYTES_MAX + 1).position(|it| *it == b'"')?;
    let mut version = [0; VERSION_BYTES_MAX];
    version.get_mut(..length)?.copy_from_slice(value.get(..length)?);
    Some(version)
}
