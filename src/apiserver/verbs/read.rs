//! `GET`: one object, a list, or the beginning of a watch.

use std::{sync::Arc, time::Duration};

use crate::apiserver::{
    refusal::Refusal,
    reply::{List, Reply},
    selector::{Selector, fields::Selectable},
    store::{Objects, Place, Table, stored::Stored},
    verbs::{
        Call,
        page::{self, Page},
        watch::{Options, Scope, Watch},
    },
};

pub(crate) fn get(call: &Call<'_>, name: &str) -> Result<Reply, Refusal> {
    if let Some(asked) = call.query.text("resourceVersion") {
        let asked = page::version(asked)?;
        let current = call.shared.store().revision;
        if asked > current {
            return Err(Refusal::too_new(asked, current));
        }
    }
    let found = call.shared.store().get(&call.key(name));
    let object = found.ok_or_else(|| Refusal::not_found(&call.view.kind.def, name))?;
    Ok(Reply::Object { status: 200, view: call.view.clone(), object })
}

/// What a list, a watch or a deletion of a collection covers.
pub(crate) fn scope(call: &Call<'_>, watching: bool) -> Result<Scope, Refusal> {
    page::check(&call.query, watching)?;
    let kind = &call.view.kind;
    let own = kind.native.map_or(&[][..], |it| it.fields).iter().map(|(name, _)| *name);
    let selectable = Selectable::new(&kind.def, own);
    let mut selector = Selector::parse_for(&call.query, &selectable)?;
    // Old clients watch single objects by their paths.
    if let Some(name) = call.target.name.as_deref().filter(|_| watching) {
        selector.narrow(name);
    }
    Ok(Scope { view: call.view.clone(), namespace: call.target.namespace.clone(), selector })
}

/// One page. All pages show the state of the first one.
pub(crate) fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let scope = scope(call, false)?;
    let store = call.shared.store();
    let table = store.tables.get(&call.resource()).ok_or_else(Refusal::unknown_resource)?;
    let namespaced = call.view.kind.def.namespaced;
    let page = Page::parse(&call.query, scope.namespace.as_deref(), namespaced, store.revision)?;
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
    let last = items.last().filter(|_| page.limit == Some(items.len()));
    let last = last.filter(|it| left > 0 || more(objects, &scope, it)).map(|it| &it.head);
    let next = last.map(|it| {
        let named = scope.namespace.is_none();
        page::token(page.revision, if named { &it.namespace } else { "" }, &it.name)
    });
    // With a selector the real server does not count what is left.
    let remaining = Some(left).filter(|it| *it > 0 && scope.selector.is_empty());
    Ok(Reply::List(List { view: scope.view, revision: page.revision, next, remaining, items }))
}

/// Whether anything comes after an object: the real server reads on only to see whether there is more, not whether it fits.
fn more(objects: &Objects, scope: &Scope, last: &Stored) -> bool {
    let everything = Scope { selector: Selector::default(), ..scope.clone() };
    let name = format!("{}\0", last.head.name);
    let after = Place { namespace: last.head.namespace.to_string(), name };
    // A name is looked up, not searched for.
    scope.selector.name().is_none() && covered(objects, &everything, Some(&after)).next().is_some()
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

pub(crate) fn watch(call: &Call<'_>) -> Result<Reply, Refusal> {
    let scope = scope(call, true)?;
    let query = &call.query;
    let after = match query.text("resourceVersion") {
        // Zero is any version: the client wants to know what there is.
        None | Some("0") => None,
        Some(text) => Some(page::version(text)?),
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
