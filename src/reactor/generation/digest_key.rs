//! The key of the digests that replace secret values on objects, see `logic/object/hidden/`. All replicas share it: it is stored in
//! a Secret, and created by the first operator that needs it.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::logic::{
    change::registry::Registry, handlers::handler::Category, object::resource::Resource,
};
use crate::ports::{Address, Cluster, ErrorClass, Kube, NewObject};
use crate::settings::{DigestKey, PersistenceSettings, Settings};

/// The key in the data of the Secret.
const KEY: &str = "key";
/// The length of a new key in bytes.
const KEY_BYTES: usize = 32;
/// The label of the Secret that names its owner, for administrators.
const OWNER: &str = "app.kubernetes.io/managed-by";

/// Returns the settings with the key, if handlers may need it and the settings have none yet.
pub(in crate::reactor) async fn with_key(
    settings: &Settings,
    registry: &Registry,
    kube: &Kube,
) -> Option<Arc<Settings>> {
    let persistence = &settings.persistence;
    let name = persistence.digest_secret.clone()?;
    if persistence.digest_key.is_none() && stores_digests(persistence, registry) {
        let key = match kube.cluster().await {
            Ok(cluster) => read(&*cluster, &name).await,
            Err(error) => Err(error.to_string()),
        };
        match key {
            Ok(key) => {
                let mut keyed = settings.clone();
                keyed.persistence.digest_key = Some(Arc::new(key));
                return Some(Arc::new(keyed));
            }
            Err(problem) => tracing::warn!(
                target: "kopf.reactor",
                "No key for the digests of secret values, so weak values can be guessed from the annotations of their objects: \
                 {problem}. Allow the operator to get and create the Secret {name} in its namespace \
                 (settings.persistence.digest_secret)."
            ),
        }
    }
    None
}

/// Returns whether last handled states contain digests of secret values, so that a key is needed.
pub fn stores_digests(persistence: &PersistenceSettings, registry: &Registry) -> bool {
    let handlers = registry.handlers().iter().filter(|it| it.kind.category() == Category::Changing);
    let mut selectors = handlers.filter_map(|it| it.selector.as_ref());
    let secrets = Resource::secrets();
    !persistence.sensitive_fields.is_empty()
        || !persistence.plain_secrets && selectors.any(|it| it.check(&secrets, &|_, _| true))
}

/// Reads the key, or creates it. If several operators start at the same time, the API server lets only one of them create it.
async fn read(cluster: &dyn Cluster, name: &str) -> Result<DigestKey, String> {
    let namespace = cluster.default_namespace();
    let resource = Resource::secrets();
    let address = Address { resource: &resource, namespace: Some(namespace), name };
    let found = match cluster.get(address).await {
        Err(error) if error.class == ErrorClass::Missing => {
            let payload = Bytes::from(new_secret(name, namespace)?.to_string());
            let backoffs = None;
            let namespace = Some(namespace);
            let request = NewObject { resource: &resource, namespace, payload, backoffs };
            match cluster.create(request).await {
                Err(error) if error.class == ErrorClass::Conflict => cluster.get(address).await,
                created => created,
            }
        }
        found => found,
    };
    let secret = found.map_err(|it| it.to_string())?;
    let key = secret.body().pointer("/data/key").and_then(Value::as_str);
    let key = key.and_then(|it| BASE64_STANDARD.decode(it).ok()).filter(|it| !it.is_empty());
    let key = key.ok_or_else(|| format!("the Secret {namespace}/{name} has no data.{KEY}"))?;
    let hash = Sha256::digest(&key);
    let name = hash.iter().take(4).fold(0_u32, |name, it| name << 8 | u32::from(*it));
    Ok(DigestKey::new(key, &format!("{name:08x}")))
}

fn new_secret(name: &str, namespace: &str) -> Result<Value, String> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|it| it.to_string())?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": { "name": name, "namespace": namespace, "labels": { OWNER: "kopf" } },
        "data": { KEY: BASE64_STANDARD.encode(key) },
    }))
}
