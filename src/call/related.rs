//! Related objects as indexes keep them: the children of reconcile handlers, and the parents of objects.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Packer;
use crate::logic::{
    background::indexing::IndexItem,
    object::{Object, resource::Resource},
};

/// The properties that the objects in an index of related objects share. Clones share the packer.
#[derive(Clone, Debug, Default)]
pub struct Related {
    /// The resources of the objects.
    pub kinds: Vec<Arc<Resource>>,
    /// Never replaced, because only this packer can unpack the objects that it has packed.
    packer: Arc<Packer>,
}

impl Related {
    /// Returns an object as the index keeps it: compressed, because there may be many thousands, and most are rarely read.
    pub fn pack(&self, object: &Object, resource: &Resource) -> IndexItem {
        let mut text = match object.size() {
            0 => object.body().to_string().into_bytes(),
            _ => object.essential_bytes(),
        };
        // Items of lists contain neither their `apiVersion` nor their `kind`.
        if object.header().kind.is_empty() {
            let api_version = Value::from(resource.api_version());
            let kind = Value::from(resource.kind.as_str());
            let fields = format!("\"apiVersion\":{api_version},\"kind\":{kind},");
            text.splice(1..1, fields.into_bytes());
        }
        let mut whole = place_of(resource).into_bytes();
        whole.push(b'\n');
        whole.append(&mut text);
        IndexItem::Packed(self.packer.pack(&whole).into())
    }

    /// Returns an object that the index keeps, with its resource.
    pub fn unpack(&self, item: &IndexItem) -> Option<(Arc<Resource>, Object)> {
        let IndexItem::Packed(packed) = item else { return None };
        let whole = Bytes::from(self.packer.unpack(packed));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::Related;
    use crate::logic::object::{Object, resource::Resource};

    #[test]
    fn objects_are_restored_with_their_resource_and_kind() {
        let resource = |group: &str, plural: &str, kind: &str| {
            let (group, plural, kind) = (group.into(), plural.into(), kind.into());
            Arc::new(Resource { group, version: "v1".into(), plural, kind, ..Resource::default() })
        };
        let kinds = vec![resource("", "configmaps", "ConfigMap"), resource("a", "webs", "Web")];
        let related = Related { kinds: kinds.clone(), ..Related::default() };
        for (kind, api_version) in kinds.iter().zip(["v1", "a/v1"]) {
            let of_list = Object::parse(r#"{"metadata":{"name":"n"}}"#.into()).unwrap();
            let of_tree = Object::from_value(
                json!({ "kind": kind.kind, "apiVersion": api_version, "metadata": { "name": "n" } }),
            );
            for object in [of_list, of_tree] {
                let (found, read) = related.unpack(&related.pack(&object, kind)).unwrap();
                assert!(Arc::ptr_eq(&found, kind));
                assert_eq!(
                    **read.body(),
                    json!({ "apiVersion": api_version, "kind": kind.kind, "metadata": { "name": "n" } })
                );
            }
        }
        let unknown = resource("b", "webs", "Web");
        let object = Object::parse(r#"{"metadata":{"name":"n"}}"#.into()).unwrap();
        assert!(related.unpack(&related.pack(&object, &unknown)).is_none());
    }
}
