//! Splits lists and watch lines into objects without building trees: the items stay bytes.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use kopf_json::responses::{LIST_SUFFIX, ListOfTexts, read_texts};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{failure::Status, recent::RecentObjects};
use crate::logic::object::{Object, reason::EventType};

/// One response to a list request.
#[derive(Debug, Default)]
pub(super) struct ListChunk {
    /// The objects, each a slice of the response.
    items: std::vec::IntoIter<Bytes>,
    /// `apiVersion` of the items that have none.
    api_version: String,
    /// `kind` of the items that have none.
    kind: String,
    /// The version to start a watch from.
    pub(super) version: Option<String>,
    /// The token of the next page.
    pub(super) token: Option<String>,
}

/// The content of a watch line.
#[derive(Debug)]
pub(super) enum WatchLine {
    /// A change of an object.
    Event(EventType, Arc<Object>),
    /// No change; only a newer version to continue from, and whether it ends the initial objects.
    Bookmark(Option<String>, bool),
    /// The server ends the watch, with this status and message.
    Refusal(u16, String),
    /// An unknown type, from a newer server.
    Unknown,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawBookmark<'a> {
    #[serde(borrow)]
    metadata: BookmarkMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BookmarkMeta<'a> {
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    annotations: Option<BookmarkAnnotations<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BookmarkAnnotations<'a> {
    #[serde(borrow, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<Cow<'a, str>>,
}

impl ListChunk {
    /// Reads the response to a list request. Its objects are parsed later, one by one, by the iterator.
    pub(super) fn parse(body: &Bytes) -> Result<Self, serde_json::Error> {
        let ListOfTexts { api_version, kind, version, token, items } = read_texts(body)?;
        let items = items.into_iter().map(|it| body.slice_ref(it.as_bytes()));
        Ok(ListChunk {
            items: items.collect::<Vec<_>>().into_iter(),
            api_version: api_version.into_owned(),
            kind: kind.strip_suffix(LIST_SUFFIX).unwrap_or(&kind).to_owned(),
            version: version.map(Cow::into_owned),
            token: token.map(Cow::into_owned),
        })
    }

    /// Returns the number of remaining objects.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}

impl Iterator for ListChunk {
    type Item = Result<Object, serde_json::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.items.next()?;
        Some(Object::parse_item(&item, (&self.api_version, &self.kind)))
    }
}

impl WatchLine {
    /// Reads one line of a watch. An event of type `ERROR` is a [`WatchLine::Refusal`], not an error.
    pub(super) fn parse(line: &Bytes, recent: &RecentObjects) -> Result<Self, serde_json::Error> {
        if let Some(event) = Self::usual(line, recent) {
            return Ok(event);
        }
        let RawLine { r#type: kind, object } = serde_json::from_slice(line)?;
        let event = match kind.as_ref() {
            "ADDED" => EventType::Added,
            "MODIFIED" => EventType::Modified,
            "DELETED" => EventType::Deleted,
            "BOOKMARK" => {
                let bookmark: RawBookmark<'_> = serde_json::from_str(object.get())?;
                let BookmarkMeta { resource_version, annotations } = bookmark.metadata;
                let mark = annotations.unwrap_or_default().initial_events_end;
                let is_end = mark.is_some_and(|it| it == "true");
                return Ok(WatchLine::Bookmark(resource_version.map(Cow::into_owned), is_end));
            }
            "ERROR" => {
                let status: Status = serde_json::from_str(object.get())?;
                return Ok(WatchLine::Refusal(status.code.unwrap_or_default(), status.text()));
            }
            _ => return Ok(WatchLine::Unknown),
        };
        let object = Object::parse(line.slice_ref(object.get().as_bytes()))?;
        Ok(WatchLine::Event(event, Arc::new(object)))
    }

    /// Reads a change in the format of all API servers, without parsing the line to find the object in it.
    fn usual(line: &Bytes, recent: &RecentObjects) -> Option<Self> {
        let kinds = [
            (EventType::Modified, br#"{"type":"MODIFIED","object":"#.as_slice()),
            (EventType::Added, br#"{"type":"ADDED","object":"#),
            (EventType::Deleted, br#"{"type":"DELETED","object":"#),
        ];
        let strip = |(kind, head)| Some((kind, line.strip_prefix(head)?));
        let (kind, rest) = kinds.into_iter().find_map(strip)?;
        let object = rest.trim_ascii_end().strip_suffix(b"}")?;
        let object = recent.event(line.slice_ref(object)).ok()?;
        Some(WatchLine::Event(kind, object))
    }
}
