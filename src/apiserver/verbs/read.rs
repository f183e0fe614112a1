//! `GET`: one object, a list, or the beginning of a watch.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::apiserver::{
    refusal::Refusal,
    reply::{List, Reply},
    request::query::Query,
    selector::{Selector, fields::Selectable},
    store::{Objects, Place, Table, stored::Stored},
    verbs::{
        Call,
        watch::{Options, Scope, Watch},
    },
};

pub(crate) fn get(call: &Call<'_>, name: &str) -> Result<Reply, Refusal> {
    let found = call.shared.store().get(&call.key(name));
    let object = found.ok_or_else(|| Refusal::not_found(&call.view.kind.def, name))?;
    Ok(Reply::Object { status: 200, view: call.view.clone(), object })
}

/// What a list, a watch or a deletion of a collection covers.
pub(crate) fn scope(call: &Call<'_>) -> Result<Scope, Refusal> {
    let kind = &call.view.kind;
    let own = kind.native.map_or(&[][..], |it| it.fields).iter().map(|(name, _)| *name);
    let selectable = Selectable::new(&kind.def, own);
    Ok(Scope {
        view: call.view.clone(),
        namespace: call.target.namespace.clone(),
        selector: Selector::parse_for(&call.query, &selectable)?,
    })
}

/// One page. All pages show the state of the first one.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let scope = scope(call)?;
    let store = call.shared.store();
    let table = store.tables.get(&call.resource()).ok_or_else(Refusal::unknown_resource)?;
    let page = Page::parse(&call.query, store.revision)?;
    if page.revision < store.compacted {
        return Err(page.too_old(store.compacted));
    }
    let past: Objects;
    let objects = if page.revision == store.revision {
        &table.objects
    } else {
        past = table.at(page.revision).ok_or_else(|| page.too_old(table.history.forgotten()))?;
        &past
    };
    let mut items: Vec<_> = covered(objects, &scope, page.start.as_ref()).collect();
    let left = page.limit.map_or(0, |it| items.len().saturating_sub(it));
    items.truncate(items.len() - left);
    let last = items.last().filter(|_| left > 0).map(|it| &it.head);
    let next = last.map(|it| token(page.revision, &it.namespace, &it.name));
    // With a selector the real server does not count what is left.
    let remaining = Some(left).filter(|it| *it > 0 && scope.selector.is_empty());
    Ok(Reply::List(List { view: scope.view, revision: page.revision, next, remaining, items }))
}

/// The objects of a scope from a place on, in order.
pub(crate) fn covered<'a>(
    objects: &'a Objects,
    scope: &'a Scope,
    start: Option<&Place>,
) -> impl Iterator<Item = Arc<Stored>> + 'a {
    let namespace = scope.namespace.clone().unwrap_or_default();
    let first = Place { namespace, name: String::new() };
    let first = start.cloned().unwrap_or(first);
    objects
        .range(first..)
        .take_while(|(place, _)| scope.namespace.as_ref().is_none_or(|it| *it == place.namespace))
        .filter(|(_, object)| scope.covers(object))
        .map(|(_, object)| Arc::clone(object))
}

/// Which page of which state is asked for.
struct Page {
    revision: u64,
    /// The first object that may be on it.
    start: Option<Place>,
    limit: Option<usize>,
}

impl Page {
    fn parse(query: &Query, current: u64) -> Result<Self, Refusal> {
        let limit = query.number("limit").and_then(|it| usize::try_from(it).ok());
        let limit = limit.filter(|it| *it > 0);
        let asked = query.text("resourceVersion").map(version).transpose()?;
        if let Some(token) = query.text("continue") {
            let (revision, start) = place(token).ok_or_else(|| {
                Refusal::bad_request("continue key is not valid: illegal base64 data")
            })?;
            return Ok(Self { revision, start: Some(start), limit });
        }
        if let Some(asked) = asked.filter(|it| *it > current) {
            return Err(Refusal::too_new(asked, current));
        }
        let exact = query.text("resourceVersionMatch") == Some("Exact");
        let revision = asked.filter(|_| exact).unwrap_or(current);
        Ok(Self { revision, start: None, limit })
    }

    fn too_old(&self, oldest: u64) -> Refusal {
        match self.start {
            Some(_) => Refusal::continue_too_old(),
            None => Refusal::too_old(self.revision, oldest),
        }
    }
}

/// A token says where the next page begins: after this object, in this state.
fn token(revision: u64, namespace: &str, name: &str) -> String {
    let token = json!({ "rv": revision, "namespace": namespace, "start": format!("{name}\0") });
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn place(token: &str) -> Option<(u64, Place)> {
    let token: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let text = |field| token.get(field).and_then(Value::as_str).map(String::from);
    let place = Place { namespace: text("namespace")?, name: text("start")? };
    Some((token.get("rv")?.as_u64()?, place))
}

pub(crate) fn watch(call: &Call<'_>) -> Result<Reply, Refusal> {
    let scope = scope(call)?;
    let query = &call.query;
    let after = match query.text("resourceVersion") {
        // Zero is any version: the client wants to know what there is.
        None | Some("0") => None,
        Some(text) => Some(version(text)?),
    };
    let initial = query.flag("sendInitialEvents");
    let bookmarks = query.flag("allowWatchBookmarks");
    let options = Options {
        after: after.filter(|_| !initial),
        timeout: query.number("timeoutSeconds").filter(|it| *it > 0).map(Duration::from_secs),
        bookmarks: call.shared.bookmarks.filter(|_| bookmarks),
        initial_end: initial && bookmarks,
    };
    Ok(Reply::Watch(Box::new(Watch::open(
        Arc::clone(call.shared),
        scope,
        options,
        call.ask.target(),
    ))))
}

/// The oldest version that a watch may ask for.
pub(crate) fn oldest(table: &Table, compacted: u64) -> u64 {
    table.history.forgotten().max(compacted)
}

fn version(text: &str) -> Result<u64, Refusal> {
    text.parse()
        .map_err(|_error| Refusal::bad_request(format!("invalid resource version {text:?}")))
}
