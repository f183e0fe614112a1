//! The history of a `StatefulSet` or a `DaemonSet`: one `ControllerRevision` for each template.

use serde_json::{Value, json};

use crate::sorted;
use crate::{
    controllers::{
        cache::{Cache, ObjectKey},
        workloads::{claim, pods, revision},
        write::{Write, set},
    },
    object::{self, number},
};

pub(crate) const REVISIONS: &str = "controllerrevisions.apps";

/// The newest revision of a set.
pub(crate) struct Newest {
    /// The name of the `ControllerRevision`.
    pub(crate) name: String,
    pub(crate) hash: String,
    /// The writes that create it, or make it the newest again.
    pub(crate) writes: Vec<Write>,
}

/// Returns the revision of the current template. `label` is the label for its hash.
pub(crate) fn newest(
    cache: &Cache,
    key: &ObjectKey,
    body: &Value,
    kind: (&str, &str),
    label: &'static str,
) -> Newest {
    let template = body.pointer("/spec/template").cloned().unwrap_or_default();
    let known: Vec<_> = cache.managed(object::meta(body, "uid"), REVISIONS).collect();
    let last = known.iter().filter_map(|(_, it)| number(it, "/revision")).max().unwrap_or(0);
    let mut writes = Vec::new();
    let equal = known.iter().find(|(_, it)| revision::same(&self::template(it), &template, &[]));
    if let Some((at, it)) = equal {
        if number(it, "/revision") != Some(last) {
            writes.push(Write::change(at, it, vec![set(["revision"], last + 1)]));
        }
        let hash = it.pointer("/metadata/labels").and_then(|it| it.get(label)?.as_str());
        return Newest { name: at.name.clone(), hash: hash.unwrap_or_default().into(), writes };
    }
    let hash =
        revision::hash(&template, number(body, "/status/collisionCount").filter(|it| *it > 0));
    let name = format!("{}-{hash}", key.name);
    if cache.def(REVISIONS).is_some() {
        let mut data = template.clone();
        object::put(&mut data, "$patch", Some("replace".into()));
        let mut revision = json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": key.namespace,
                "labels": template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
                "ownerReferences": [claim::reference(body, kind)],
            },
            "data": { "spec": { "template": data } },
            "revision": last + 1,
        });
        pods::label(&mut revision, label, &hash);
        writes.push(Write::Create { resource: REVISIONS, body: revision });
    }
    Newest { name, hash, writes }
}

/// Returns the template that a revision has stored.
pub(crate) fn template(revision: &Value) -> Value {
    let mut template = revision.pointer("/data/spec/template").cloned().unwrap_or_default();
    object::put(&mut template, "$patch", None);
    template
}

/// Deletes the oldest revisions beyond the history limit, except those that are `used`.
pub(crate) fn clean_up(
    cache: &Cache,
    body: &Value,
    used: impl Fn(&ObjectKey, &Value) -> bool,
) -> Vec<Write> {
    let limit = number(body, "/spec/revisionHistoryLimit").unwrap_or(10);
    let limit = usize::try_from(limit).unwrap_or(0);
    let mut unused: Vec<_> = cache.managed(object::meta(body, "uid"), REVISIONS).collect();
    unused.retain(|(key, it)| !used(key, it));
    sorted::sort_by_key(&mut unused, |(_, it)| number(it, "/revision"));
    let surplus = unused.len().saturating_sub(limit);
    let go = unused.into_iter().take(surplus);
    go.map(|(key, it)| Write::delete(key, object::meta(it, "uid"))).collect()
}
