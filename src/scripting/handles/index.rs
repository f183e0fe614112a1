//! `ctx.<index>`: a live, read-only view of a table that index functions fill, and the values under one of its keys.
//!
//! The values under a key, a store, are a list at the moment of the lookup. Values that functions returned without a key are under
//! null; `kopf.values(ctx.pods)` returns all values, with keys or without. Nothing is converted before it is looked up, so a large
//! index costs no more than a small one.

use std::sync::Arc;

use serde_json::Value;

use super::{Handle, HandleKeys, HandleType, Use};
use crate::call::Index;
use crate::logic::background::indexing::{self, IndexItem, IndexValues};
use crate::scripting::values::{
    HostValue, LookupKey, Nested, Passed, account::Account, refused::Refused, text,
};

impl Handle for Index {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::Map)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy_index(self, depth)
    }

    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        self.copy(account, 0).map(|it| text::shown(&it)).map_err(|it| it.at("the index"))
    }

    fn get(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        let key = match key {
            LookupKey::Name(name) => indexing::IndexKey::text(name),
            LookupKey::Place(number, _) => indexing::IndexKey::Integer(*number),
            LookupKey::Data(value) => indexing::IndexKey::of(value),
            LookupKey::Marker(_) | LookupKey::Other(_) => return Ok(HostValue::Nil),
        };
        let store = Index::get(self, &key);
        Ok(store.map_or(HostValue::Nil, |it| HostValue::Handle(Store(it).into())))
    }

    fn set(&self, _key: &LookupKey<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::INDEX_READ_ONLY.to_owned())
    }

    /// Looks a step of a path up. It is a string, but the key may be a number.
    fn step(&self, step: &Value) -> Option<HostValue> {
        let found = Handle::get(self, &LookupKey::of(step)).ok()?;
        let number = step.as_str().and_then(text::number);
        match (found, number) {
            (HostValue::Nil, Some(number)) => {
                Handle::get(self, &LookupKey::Place(number, None)).ok()
            }
            (found, _) => Some(found),
        }
    }

    fn keys(&self) -> Box<dyn Iterator<Item = Value>> {
        Box::new(Index::keys(self).map(|it| it.to_value()))
    }

    fn len(&self) -> usize {
        Index::len(self)
    }
}

impl HandleType for Index {
    const TYPE: &'static str = "index";
    const KEYS: HandleKeys = HandleKeys::Any;
    const USE: Use = Use::LookUp;

    fn is(&self, other: &Self) -> bool {
        Index::is(self, other)
    }
}

/// The values under one key.
#[derive(Clone)]
pub(crate) struct Store(pub(crate) IndexValues);

impl Handle for Store {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::List)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy_values(&self.0, depth)
    }

    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        let copied = self.copy(account, 0);
        copied.map(|it| text::shown(&it)).map_err(|it| it.at("the values of the index"))
    }

    fn get(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        let LookupKey::Place(_, Some(place)) = key else { return Ok(HostValue::Nil) };
        Ok(self.0.get(*place).and_then(IndexItem::value).map_or(HostValue::Nil, tree))
    }

    fn set(&self, _key: &LookupKey<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::INDEX_READ_ONLY.to_owned())
    }

    /// Looks a step of a path up. Indexes count from 0 in paths, and may be strings.
    fn step(&self, step: &Value) -> Option<HostValue> {
        let number = step.as_i64().or_else(|| text::number(step.as_str()?))?;
        Some(
            self.0
                .get(usize::try_from(number).ok()?)
                .and_then(IndexItem::value)
                .map_or(HostValue::Nil, tree),
        )
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl HandleType for Store {
    const TYPE: &'static str = "store";
    const KEYS: HandleKeys = HandleKeys::Places;
    const USE: Use = Use::LookUp;

    fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

fn tree(value: &Arc<Value>) -> HostValue {
    HostValue::Tree(Arc::clone(value))
}

/// Returns the `kopf.values` of an index.
pub(crate) fn values(index: &Index) -> HostValue {
    HostValue::Handle(Store(index.values()).into())
}
