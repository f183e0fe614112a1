//! The parents of objects, for event handlers with the option `parent`.

use bytes::Bytes;
use serde_json::Value;

use super::CallServices;
use crate::logic::{background::indexing::Key, handlers::handler::Handler, object::Object};

/// Returns an object as indexes of related objects keep it, with its group, version and plural.
pub fn kept(value: &Value) -> Option<([&str; 3], Object)> {
    let [group, version, plural, text] = value.as_array()?.as_slice() else { return None };
    let object = Object::parse(Bytes::copy_from_slice(text.as_str()?.as_bytes())).ok()?;
    let object = Some(object).filter(|it| it.problem().is_none())?;
    Some(([group.as_str()?, version.as_str()?, plural.as_str()?], object))
}

impl CallServices {
    /// Returns the uid of the owner of an object that has the kind of the option `parent` of a handler.
    pub fn parent_uid(&self, handler: &Handler, object: &Object) -> Option<String> {
        let kinds = self.reconcilers.kinds(&handler.parent_index()?);
        let owners = object.body().pointer("/metadata/ownerReferences")?.as_array()?;
        let text = |owner: &Value, key: &str| owner.get(key)?.as_str().map(str::to_owned);
        let is_it = |owner: &&Value| {
            let api = text(owner, "apiVersion").unwrap_or_default();
            let group = api.rsplit_once('/').map_or("", |(group, _)| group);
            let kind = text(owner, "kind").unwrap_or_default();
            kinds.iter().any(|it| it.group == group && it.kind == kind)
        };
        text(owners.iter().find(is_it)?, "uid")
    }

    /// Returns the owner of an object that has the kind of the option `parent` of a handler; `None` if it is gone.
    pub fn parent(&self, handler: &Handler, object: &Object) -> Option<Value> {
        let uid = self.parent_uid(handler, object)?;
        let found = self.indexes.get(&handler.parent_index()?)?.get(&Key::text(&uid))?;
        found.iter().find_map(|it| Some(Value::clone(kept(it)?.1.body())))
    }
}
