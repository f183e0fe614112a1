//! `GET`: returns an object or a list, or starts a watch.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    refusal::{Refusal, go},
    reply::{List, Reply},
    request::{
        list::{self, ListOptions},
        query::Query,
    },
    selector::{Selector, fields::Selectable},
    store::{ObjectName, ObjectsByName, ResourceTable, stored::Stored},
    verbs::{
        ApiCall,
        watch::{ClientWatch, CollectionScope, WatchOptions},
    },
};

/// The version in the continue tokens of the real server.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

pub(crate) fn get(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    call.query.text("resourceVersion").map(list::version).transpose()?;
    let found = call.shared.store().get(&call.key(name));
    let object = found.ok_or_else(|| Refusal::not_found(&call.view.kind.def, name))?;
    Ok(Reply::Object { status: 200, view: call.view.clone(), object })
}

/// Returns the scope of a list, a watch or a deletion of a collection.
pub(crate) fn scope(call: &ApiCall<'_>) -> Result<CollectionScope, Refusal> {
    let kind = &call.view.kind;
    let own = kind.native.map_or(&[][..], |it| it.fields).iter().map(|(name, _)| *name);
    let custom = kind.versions.get(&call.view.version).map(|it| it.selectable.as_slice());
    let custom = custom.unwrap_or_default().iter().map(String::as_str);
    let selectable = Selectable::new(&kind.def, own.chain(custom));
    let mut selector = Selector::parse_for(&call.query, &selectable)?;
    // Old clients watch single objects by their paths.
    if let Some(name) = call.target.name.as_deref() {
        selector.narrow(name);
    }
    Ok(CollectionScope {
        view: call.view.clone(),
        namespace: call.target.namespace.clone(),
        selector,
    })
}

/// Returns a page of a list. All pages show the state of the first one.
pub(crate) fn list(call: &ApiCall<'_>) -> Result<Reply, Refusal> {
    page(call).map(Reply::List)
}

/// Returns the objects of a page.
pub(crate) fn page(call: &ApiCall<'_>) -> Result<List, Refusal> {
    let scope = scope(call)?;
    let store = call.shared.store();
    let table = store.tables.get(&call.resource()).ok_or_else(Refusal::unknown_resource)?;
    let page = ListPage::parse(&call.query, &scope, store.revision)?;
    if page.revision < store.compacted {
        return Err(page.too_old(store.compacted));
    }
    let past: ObjectsByName;
    let objects = if page.revision == store.revision {
        &table.objects
    } else {
        past = table.at(page.revision).ok_or_else(|| page.too_old(table.history.forgotten()))?;
        &past
    };
    let mut items: Vec<_> = covered(objects, &scope, page.start.as_ref()).collect();
    let left = page.limit.map_or(0, |it| items.len().saturating_sub(it));
    items.truncate(items.len() - left);
    let last = items.last().filter(|_| page.limit == Some(items.len()));
    let last = last.filter(|it| left > 0 || more(objects, &scope, it)).map(|it| &it.head);
    let next = last.map(|it| token(page.revision, &scope, &it.namespace, &it.name));
    // With a selector, the real server does not count the remaining items.
    let remaining = Some(left).filter(|it| *it > 0 && scope.selector.is_empty());
    Ok(List { view: scope.view, revision: page.revision, next, remaining, items })
}

/// Returns whether there is any object after the last one. Like the real server, it does not check whether that one matches.
fn more(objects: &ObjectsByName, scope: &CollectionScope, last: &Stored) -> bool {
    // A single name has no next page.
    if scope.selector.name().is_some() {
        return false;
    }
    let everything = CollectionScope { selector: Selector::default(), ..scope.clone() };
    let name = format!("{}\0", last.head.name);
    let after = ObjectName { namespace: last.head.namespace.to_string(), name };
    covered(objects, &everything, Some(&after)).next().is_some()
}

/// Returns the objects of a scope in order, starting at a position.
pub(crate) fn covered<'a>(
    objects: &'a ObjectsByName,
    scope: &'a CollectionScope,
    start: Option<&ObjectName>,
) -> impl Iterator<Item = Arc<Stored>> + 'a {
    let namespace = scope.namespace.clone().unwrap_or_default();
    let first = ObjectName { namespace, name: String::new() };
    let first = start.cloned().unwrap_or(first);
    objects
        .range(first..)
        .take_while(|(place, _)| scope.namespace.as_ref().is_none_or(|it| *it == place.namespace))
        .filter(|(_, object)| scope.covers(object))
        .map(|(_, object)| Arc::clone(object))
}

/// The requested page, and the revision that it shows.
struct ListPage {
    revision: u64,
    /// The first object that may be on it.
    start: Option<ObjectName>,
    limit: Option<usize>,
}

impl ListPage {
    fn parse(query: &Query, scope: &CollectionScope, current: u64) -> Result<Self, Refusal> {
        let options = ListOptions::parse(query, false)?;
        if let Some(token) = &options.next {
            let (revision, start) = place(token, scope).map_err(|why| {
                Refusal::bad_request(format!(
                    "invalid continue token: continue key is not valid: {why}"
                ))
            })?;
            return Ok(Self { revision, start: Some(start), limit: options.limit });
        }
        if let Some(asked) = options.version.filter(|it| *it > current) {
            return Err(Refusal::too_new(asked, current));
        }
        let revision = options.version.filter(|_| options.exact).unwrap_or(current);
        Ok(Self { revision, start: None, limit: options.limit })
    }

    fn too_old(&self, oldest: u64) -> Refusal {
        match self.start {
            Some(_) => Refusal::continue_too_old(),
            None => Refusal::too_old(self.revision, oldest),
        }
    }
}

/// Returns the continue token of the real server: the revision, and the position after this object.
fn token(revision: u64, scope: &CollectionScope, namespace: &str, name: &str) -> String {
    let start = match &scope.namespace {
        None if scope.view.kind.def.namespaced => format!("/{namespace}/{name}\0"),
        None | Some(_) => format!("/{name}\0"),
    };
    let token = json!({ "v": TOKEN_VERSION, "rv": revision, "start": start });
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

/// Parses a continue token: its revision and position. The error is the reason why it is invalid.
fn place(token: &str, scope: &CollectionScope) -> Result<(u64, ObjectName), String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
    let bytes = bytes.map_err(|_error| "illegal base64 data at input byte 0".to_owned())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_error| {
        let first = bytes.first().copied().map(char::from).unwrap_or_default();
        let first = go::quote(&first.to_string()).replace('"', "'");
        format!("invalid character {first} looking for beginning of value")
    })?;
    let text = |field| token.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("v") != TOKEN_VERSION {
        return Err(format!("server does not recognize this encoded version {}", text("v")));
    }
    let revision = token.get("rv").and_then(Value::as_u64).filter(|it| *it > 0);
    let revision =
        revision.ok_or("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")?;
    let start = text("start").trim_start_matches('/');
    if start.is_empty() {
        return Err("encoded start key empty (version meta.k8s.io/v1)".into());
    }
    let (namespace, name) = match &scope.namespace {
        Some(namespace) => (namespace.as_str(), start),
        None => start.split_once('/').unwrap_or(("", start)),
    };
    Ok((revision, ObjectName { namespace: namespace.into(), name: name.into() }))
}

pub(crate) fn watch(call: &ApiCall<'_>) -> Result<Reply, Refusal> {
    let scope = scope(call)?;
    let query = &call.query;
    let asked = ListOptions::parse(query, true)?;
    // Version 0 means any version: the client requests all existing objects.
    let after = asked.version.filter(|it| *it > 0);
    let initial = query.flag("sendInitialEvents");
    let bookmarks = query.flag("allowWatchBookmarks");
    let options = WatchOptions {
        after: after.filter(|_| !initial),
        timeout: asked.timeout,
        bookmarks: call.shared.bookmarks.filter(|_| bookmarks),
        initial_end: bookmarks && (initial || after.is_none()),
    };
    Ok(Reply::Watch(Box::new(ClientWatch::open(
        Arc::clone(call.shared),
        scope,
        options,
        call.request.target(),
    ))))
}

/// Returns the oldest version at which a watch may start.
pub(crate) fn oldest(table: &ResourceTable, compacted: u64) -> u64 {
    table.history.forgotten().max(compacted)
}
