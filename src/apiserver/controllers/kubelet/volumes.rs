//! Volume claims: each is bound to a volume that is provisioned for it, or to the one it names.

use serde_json::{Value, json};

use crate::{
    controllers::{
        Controller, NO_STEP, ReconcileResult,
        cache::{Cache, ObjectKey, Update},
        time::DecisionTime,
        write::{Write, set},
    },
    object::{self, text},
};

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const PROVISIONER: &str = "dev.kopf/none";

pub(super) const CONTROLLER: Controller =
    Controller { reads: &[CLAIMS, VOLUMES], affected, reconcile, step: NO_STEP, start: &[] };

fn affected(cache: &Cache, update: &Update<'_>, found: &mut Vec<ObjectKey>) {
    if update.key.resource == CLAIMS || update.key.resource == VOLUMES {
        found.push(update.key.clone());
    }
    let sides = || update.old.into_iter().chain(update.new).filter_map(|it| it.body.as_ref());
    if update.key.resource == VOLUMES {
        let claims = sides().map(|it| claim_of(it)).filter(|it| cache.get(it).is_some());
        found.extend(claims);
    }
    if update.key.resource == CLAIMS {
        let volumes = sides().map(|it| ObjectKey::new(VOLUMES, "", text(it, "/spec/volumeName")));
        found.extend(volumes.filter(|it| !it.name.is_empty()));
    }
}

/// Returns the claim that a volume is bound to.
fn claim_of(volume: &Value) -> ObjectKey {
    let part = |field: &str| text(volume, &format!("/spec/claimRef/{field}")).to_owned();
    ObjectKey::new(CLAIMS, &part("namespace"), &part("name"))
}

fn reconcile(cache: &Cache, key: &ObjectKey, moment: &DecisionTime) -> ReconcileResult {
    let Some(body) = cache.body(key).filter(|it| !object::deleting(it)) else {
        return ReconcileResult::none();
    };
    if key.resource == VOLUMES {
        volume(cache, key, body, moment).into()
    } else {
        claim(cache, key, body).into()
    }
}

/// Binds a claim that has no volume yet.
fn claim(cache: &Cache, key: &ObjectKey, body: &Value) -> Vec<Write> {
    if text(body, "/status/phase") == "Bound" || cache.def(VOLUMES).is_none() {
        return Vec::new();
    }
    let asked = text(body, "/spec/volumeName");
    let name =
        if asked.is_empty() { format!("pvc-{}", object::meta(body, "uid")) } else { asked.into() };
    let mut writes = Vec::new();
    let known = cache.body(&ObjectKey::new(VOLUMES, "", &name));
    match known {
        None if !asked.is_empty() => return Vec::new(),
        None => writes.push(Write::Create { resource: VOLUMES, body: provision(key, body, &name) }),
        Some(volume) => {
            let owner = text(volume, "/spec/claimRef/uid");
            if !owner.is_empty() && owner != object::meta(body, "uid") {
                return Vec::new();
            }
            let at = ObjectKey::new(VOLUMES, "", &name);
            let edits = vec![
                set(["spec", "claimRef"], reference(key, body)),
                set(["status", "phase"], "Bound"),
            ];
            writes.push(Write::change(&at, volume, edits));
        }
    }
    let capacity = known.and_then(|it| it.pointer("/spec/capacity").cloned());
    let capacity = capacity.or_else(|| body.pointer("/spec/resources/requests").cloned());
    let mut status = json!({ "phase": "Bound", "accessModes": body.pointer("/spec/accessModes") });
    object::put(&mut status, "capacity", capacity);
    writes.push(Write::change(
        key,
        body,
        vec![
            set(["metadata", "annotations", "pv.kubernetes.io/bind-completed"], "yes"),
            set(["metadata", "annotations", "pv.kubernetes.io/bound-by-controller"], "yes"),
            set(
                ["metadata", "annotations", "volume.kubernetes.io/storage-provisioner"],
                PROVISIONER,
            ),
            set(["spec", "volumeName"], name),
            set(["status"], status),
        ],
    ));
    writes
}

fn reference(key: &ObjectKey, body: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": key.namespace,
        "name": key.name,
        "uid": object::meta(body, "uid"),
    })
}

/// Returns a volume of the requested size. No storage is behind it.
fn provision(key: &ObjectKey, body: &Value, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": { "pv.kubernetes.io/provisioned-by": PROVISIONER },
        },
        "spec": {
            "accessModes": body.pointer("/spec/accessModes"),
            "capacity": body.pointer("/spec/resources/requests"),
            "claimRef": reference(key, body),
            "hostPath": { "path": format!("/dev/null/{name}"), "type": "" },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": text(body, "/spec/storageClassName"),
            "volumeMode": body.pointer("/spec/volumeMode").cloned().unwrap_or_else(|| "Filesystem".into()),
        },
        "status": { "phase": "Bound" },
    })
}

/// Updates the phase of a volume; deletes it after its claim, if its reclaim policy says so.
fn volume(cache: &Cache, key: &ObjectKey, body: &Value, _moment: &DecisionTime) -> Vec<Write> {
    let uid = text(body, "/spec/claimRef/uid");
    let phase = text(body, "/status/phase");
    if uid.is_empty() {
        let fresh = matches!(phase, "" | "Pending");
        let available = || Write::change(key, body, vec![set(["status", "phase"], "Available")]);
        return fresh.then(available).into_iter().collect();
    }
    if cache.by_uid(uid).is_some() {
        return Vec::new();
    }
    if text(body, "/spec/persistentVolumeReclaimPolicy") == "Delete" {
        return vec![Write::delete(key, object::meta(body, "uid"))];
    }
    vec![Write::change(key, body, vec![set(["status", "phase"], "Released")])]
}

/// Returns the reason why a Pod cannot start because of its volumes.
pub(super) fn volume_problem(cache: &Cache, key: &ObjectKey, pod: &Value) -> Option<String> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let names =
        volumes.into_iter().flatten().map(|it| text(it, "/persistentVolumeClaim/claimName"));
    for name in names.filter(|it| !it.is_empty()) {
        let claim = cache.body(&ObjectKey::new(CLAIMS, &key.namespace, name));
        match claim {
            None => return Some(format!("persistentvolumeclaim {name:?} not found")),
            Some(it) if text(it, "/status/phase") != "Bound" => {
                return Some(
                    "0/1 nodes are available: 1 pod has unbound immediate PersistentVolumeClaims."
                        .into(),
                );
            }
            Some(_) => {}
        }
    }
    None
}
