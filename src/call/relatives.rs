//! Related objects as indexes keep them, and the parents of objects, for event handlers with the option `parent`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use serde_json::Value;

use super::{CallServices, Packer};
use crate::logic::{
    background::indexing::Key,
    handlers::handler::Handler,
    object::{Object, resource::Resource},
};

/// What the objects in an index of related objects have in common. Clones share the packer.
#[derive(Clone, Debug, Default)]
pub struct Related {
    /// Their resources.
    pub kinds: Vec<Arc<Resource>>,
    /// Never replaced: it reads what it has written.
    packer: Arc<Packer>,
}

impl Related {
    /// Returns an object as the index keeps it: compressed, because there may be many thousands, and most are rarely read. Values of
    /// indexes are JSON, so its bytes are encoded.
    pub fn pack(&self, object: &Object, resource: &Resource) -> Arc<Value> {
        let mut text = match object.size() {
            0 => object.body().to_string().into_bytes(),
            _ => object.essential_bytes(),
        };
        // The items of lists do not say what they are.
        if object.header().kind.is_empty() {
            let api_version = Value::from(resource.api_version());
            let kind = Value::from(resource.kind.as_str());
            let fields = format!("\"apiVersion\":{api_version},\"kind\":{kind},");
            text.splice(1..1, fields.into_bytes());
        }
        let mut whole = place_of(resource).into_bytes();
        whole.push(b'\n');
        whole.append(&mut text);
        let mut packed = STANDARD_NO_PAD.encode(self.packer.pack(&whole));
        packed.shrink_to_fit();
        Arc::new(Value::String(packed))
    }

    /// Returns an object that the index keeps, with its resource.
    pub fn unpack(&self, value: &Value) -> Option<(Arc<Resource>, Object)> {
        let packed = STANDARD_NO_PAD.decode(value.as_str()?).ok()?;
        let whole = Bytes::from(self.packer.unpack(&packed));
        let end = whole.iter().position(|it| *it == b'\n')?;
        let place = whole.get(..end)?;
        let resource = self.kinds.iter().find(|it| place_of(it).as_bytes() == place)?;
        let object = Object::parse(whole.slice(end + 1..)).ok()?;
        let object = Some(object).filter(|it| it.problem().is_none())?;
        Some((Arc::clone(resource), object))
    }
}

fn place_of(Resource { group, version, plural, .. }: &Resource) -> String {
    format!("{group}/{version}/{plural}")
}

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
        let found = self.indexes.get(&index)?.get(&Key::text(&uid))?;
        let related = self.reconcilers.related(&index);
        found.iter().find_map(|it| Some(Value::clone(related.unpack(it)?.1.body())))
    }
}
