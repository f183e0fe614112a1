//! The parents of objects, for event handlers with the option `parent`.

use serde_json::Value;

use super::CallServices;
use crate::logic::{background::indexing::IndexKey, handlers::handler::Handler, object::Object};

impl CallServices {
    /// Returns the uid of the owner of an object that has the kind of the option `parent` of a handler.
    pub fn parent_uid(&self, handler: &Handler, object: &Object) -> Option<String> {
        let kinds = self.reconcilers.related(&handler.parent_index()?).kinds;
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
        let index = handler.parent_index()?;
        let found = self.indexes.get(&index)?.get(&IndexKey::text(&uid))?;
        let related = self.reconcilers.related(&index);
        found.iter().find_map(|it| Some(Value::clone(related.unpack(it)?.1.body())))
    }
}
