//! `PUT` and `PATCH`: another version of an object.

use std::sync::Arc;

use serde_json::Value;

use crate::apiserver::{
    object,
    patch::Patch,
    refusal::{Problem, ProblemKind, Refusal},
    reply::Reply,
    store::{Key, Store, stored::Stored},
    verbs::{
        Call,
        rules::{self, Part},
    },
    webhooks,
};

/// How often a patch is applied again when others write in between; the real server tries as often.
const ATTEMPTS_MAX: usize = 5;

pub(crate) async fn update(call: &Call<'_>, part: Part, name: &str) -> Result<Reply, Refusal> {
    let body = call.decode()?;
    let def = &call.view.kind.def;
    if !def.native && object::meta(&body, "resourceVersion").is_empty() {
        // Here the real server names the resource instead of the kind.
        let field = "metadata.resourceVersion";
        let why = ProblemKind::InvalidGo("0x0".into(), "must be specified for an update".into());
        let problem = Problem::new(field, why);
        return Err(Refusal::invalid(&def.group, &def.plural, name, &[problem]));
    }
    write(call, part, name, |_old| Ok(body.clone())).await
}

pub(crate) async fn patch(call: &Call<'_>, part: Part, name: &str) -> Result<Reply, Refusal> {
    let patch = Patch::parse(call.ask.content_type(), &call.ask.body)?;
    write(call, part, name, |old| patch.apply(old)).await
}

/// Edits an object until nobody else writes in between.
pub(crate) async fn write(
    call: &Call<'_>,
    part: Part,
    name: &str,
    edit: impl Fn(&Value) -> Result<Value, Refusal>,
) -> Result<Reply, Refusal> {
    let (key, view) = (call.key(name), &call.view);
    for _attempt in 0..ATTEMPTS_MAX {
        let present = call.shared.store().get(&key);
        let present = present.ok_or_else(|| Refusal::not_found(&view.kind.def, name))?;
        let old = view.tree(&present);
        let attempt = call.attempt("UPDATE", name, Some(&old));
        let new = webhooks::mutate(call.shared, &attempt, edit(&old)?).await?;
        let new = rules::updated(view, part, &old, new)?;
        webhooks::validate(call.shared, &attempt, Some(&new)).await?;
        if call.is_dry() {
            return Ok(Reply::Document(200, new));
        }
        if let Some(object) = swap(&mut call.shared.store(), &key, &present, (&old, new)) {
            return Ok(Reply::Object { status: 200, view: view.clone(), object });
        }
    }
    Err(Refusal::conflict(&view.kind.def, name))
}

/// Puts the new object in the place of the old one, if that is still the present one. Without a difference there is no new
/// version and no event.
pub(crate) fn swap(
    store: &mut Store,
    key: &Key,
    present: &Arc<Stored>,
    (old, new): (&Value, Value),
) -> Option<Arc<Stored>> {
    let revision = |it: &Arc<Stored>| it.head.revision;
    if store.get(key).as_ref().map(revision) != Some(revision(present)) {
        return None;
    }
    if object::deleting(old) && !object::held(&new) {
        // The last holder lets go. Its answer shows the version before the removal, as the real server does it.
        let last = Arc::new(Stored::of(&new));
        store.remove(key);
        return Some(last);
    }
    if new == *old {
        return Some(Arc::clone(present));
    }
    Some(store.put(key, new))
}
