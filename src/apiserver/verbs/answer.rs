//! From a request to its answer: finds the resource, checks the verb, calls the store.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::apiserver::{
    Shared, discovery, object,
    patch::Patch,
    refusal::{self, Refusal},
    request::query::Query,
    request::route::{self, Route, Target},
    resource::ResourceDef,
    selector::Selector,
    store::{self, Key, Store},
    verbs::watch::{self, Options, Scope, Watch},
    verbs::write::Part,
};

/// A whole request.
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// What is sent back.
pub(crate) enum Answer {
    /// An object, a list, a document or a status.
    Json(u16, Value),
    /// No part of the server feels responsible for the path; the real one says so in plain text.
    UnknownPath,
    /// A watch that fails at once: one line.
    Line(Bytes),
    /// Lines for as long as the client wants.
    Stream(Box<Watch>),
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Json(refusal.code, refusal.to_json())
    }
}

pub(crate) fn answer(shared: &Arc<Shared>, ask: &Ask) -> Answer {
    let known = |document: Option<Value>| match document {
        Some(document) => Answer::Json(200, document),
        None => Answer::UnknownPath,
    };
    let Some(route) = route::parse(&ask.path) else { return Answer::UnknownPath };
    match route {
        Route::Objects(target) => objects(shared, ask, &target).unwrap_or_else(Answer::from),
        _ if ask.method != "GET" => Refusal::method_not_allowed().into(),
        Route::ServerVersion => Answer::Json(200, discovery::server_version()),
        Route::CoreVersions => Answer::Json(200, discovery::core_versions()),
        Route::Groups => Answer::Json(200, discovery::groups(&shared.store())),
        Route::Group(name) => known(discovery::group(&shared.store(), &name)),
        Route::Resources(group, version) => {
            known(discovery::resources(&shared.store(), &group, &version))
        }
    }
}

fn objects(shared: &Arc<Shared>, ask: &Ask, target: &Target) -> Result<Answer, Refusal> {
    let Some(def) = find(&shared.store(), target) else {
        // Groups of the server itself know what they do not have.
        let own = matches!(target.group.as_str(), "" | "apiextensions.k8s.io");
        return if own { Err(Refusal::unknown_resource()) } else { Ok(Answer::UnknownPath) };
    };
    let query = Query::parse(&ask.query);
    let verb = verb(&ask.method, target.name.is_some(), query.flag("watch"));
    let verb = verb.filter(|it| def.verbs.iter().any(|verb| verb == it));
    let verb = verb.ok_or_else(Refusal::method_not_allowed)?;
    let Some(name) = &target.name else {
        return collection(shared, &def, target, &Request { verb, query, ask });
    };
    let key = Key {
        resource: def.qualified(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: name.clone(),
    };
    let part = match target.subresource.as_deref() {
        None => Part::Main,
        Some("status") if def.status_subresource && verb != "delete" => Part::Status,
        Some(_) => return Err(Refusal::not_found(&def, name)),
    };
    let mut store = shared.store();
    let object = match verb {
        "get" => (*store.get(&key)?).clone(),
        "patch" => {
            let patch = Patch::parse(&ask.content_type, &ask.body, def.native)?;
            store.update(&key, part, |object| {
                patch.apply(&store::seen(&def, &target.version, object), None)
            })?
        }
        "update" => {
            let body = parse(&def, &ask.body)?;
            if !def.native && object::meta(&body, "resourceVersion").is_empty() {
                // Here the real server names the resource instead of the kind.
                let field = "metadata.resourceVersion";
                let problem =
                    refusal::Problem::invalid(field, "0x0", "must be specified for an update");
                return Err(Refusal::invalid(&def.group, &def.plural, name, &[problem]));
            }
            store.update(&key, part, |_object| Ok(body))?
        }
        _ => {
            let uid = object::meta(&*store.get(&key)?, "uid").to_owned();
            match store.delete(&key)? {
                Some(marked) => marked,
                None => return Ok(Answer::Json(200, removed(&def, name, &uid))),
            }
        }
    };
    Ok(Answer::Json(200, store::seen(&def, &target.version, &object)))
}

/// A request with what is known about it.
struct Request<'a> {
    verb: &'static str,
    query: Query,
    ask: &'a Ask,
}

/// `list`, `watch` and `create`
fn collection(
    shared: &Arc<Shared>,
    def: &ResourceDef,
    target: &Target,
    request: &Request<'_>,
) -> Result<Answer, Refusal> {
    if request.verb == "create" {
        if def.namespaced && target.namespace.is_none() {
            let refused = Err(Refusal::method_not_allowed());
            return if def.native { refused } else { Ok(Answer::UnknownPath) };
        }
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let body = parse(def, &request.ask.body)?;
        let created = shared.store().create_sent(&def.qualified(), namespace, body)?;
        return Ok(Answer::Json(201, store::seen(def, &target.version, &created)));
    }
    let scope = Scope {
        resource: def.qualified(),
        version: target.version.clone(),
        namespace: target.namespace.clone(),
        selector: Selector::parse(&request.query)?,
    };
    if request.verb == "watch" {
        open_watch(shared, scope, &request.query)
    } else {
        list(&shared.store(), def, &scope, &request.query)
    }
}

fn open_watch(shared: &Arc<Shared>, scope: Scope, query: &Query) -> Result<Answer, Refusal> {
    let after = match query.text("resourceVersion") {
        // Zero is any version: the client wants to know what there is.
        None | Some("0") => None,
        Some(text) => Some(parse_version(text)?),
    };
    let oldest = {
        let store = shared.store();
        store.table(&scope.resource)?.history.forgotten().max(store.compacted)
    };
    if let Some(asked) = after.filter(|it| *it < oldest) {
        return Ok(Answer::Line(watch::error_line(&Refusal::too_old(asked, oldest))));
    }
    let bookmarks = query.flag("allowWatchBookmarks");
    let options = Options {
        after,
        timeout: query.number("timeoutSeconds").filter(|it| *it > 0).map(Duration::from_secs),
        bookmarks: shared.bookmarks.filter(|_| bookmarks),
        initial_end: query.flag("sendInitialEvents") && after.is_none(),
    };
    Ok(Answer::Stream(Box::new(Watch::open(Arc::clone(shared), scope, options))))
}

/// One page. A page after the first one shows the present state, but has the version of the first one: a watch from there
/// repeats whatever changed in between.
fn list(store: &Store, def: &ResourceDef, scope: &Scope, query: &Query) -> Result<Answer, Refusal> {
    let (version, after) = match query.text("continue") {
        None => (store.revision, None),
        Some(token) => {
            let bad = || Refusal::bad_request("invalid continue token");
            let (version, place) = token.split_once(':').ok_or_else(bad)?;
            (parse_version(version)?, Some(place.split_once('/').ok_or_else(bad)?))
        }
    };
    if after.is_some() && version < store.compacted {
        return Err(Refusal::continue_too_old());
    }
    let place = |object: &Value| {
        [object::meta(object, "namespace"), object::meta(object, "name")].map(String::from)
    };
    let mut items = watch::present(store, scope);
    if let Some((namespace, name)) = after {
        items.retain(|it| place(it) > [namespace, name].map(String::from));
    }
    let limit = query.number("limit").and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0);
    let left = limit.map_or(0, |it| items.len().saturating_sub(it));
    items.truncate(items.len() - left);
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if left > 0
        && let (Some(last), Some(fields)) = (items.last(), metadata.as_object_mut())
    {
        let token = format!("{version}:{}", place(last).join("/"));
        fields.insert("continue".into(), token.into());
        fields.insert("remainingItemCount".into(), left.into());
    }
    if def.native {
        for item in &mut items {
            object::put(item, "apiVersion", None);
            object::put(item, "kind", None);
        }
    }
    Ok(Answer::Json(
        200,
        json!({
            "kind": format!("{}List", def.kind),
            "apiVersion": def.api_version(&scope.version),
            "metadata": metadata,
            "items": items,
        }),
    ))
}

fn find(store: &Store, target: &Target) -> Option<ResourceDef> {
    let resource = refusal::join(&target.plural, &target.group);
    let def = &store.tables.get(&resource)?.def;
    let version = def.versions.contains(&target.version);
    let place = match (def.namespaced, &target.namespace) {
        (true, None) => target.name.is_none(),
        (false, Some(_)) => false,
        (true, Some(_)) | (false, None) => true,
    };
    (version && place).then(|| def.clone())
}

fn verb(method: &str, named: bool, watching: bool) -> Option<&'static str> {
    match (method, named) {
        ("GET", false) if watching => Some("watch"),
        ("GET", false) => Some("list"),
        ("GET", true) => Some("get"),
        ("POST", false) => Some("create"),
        ("PUT", true) => Some("update"),
        ("PATCH", true) => Some("patch"),
        ("DELETE", true) => Some("delete"),
        _ => None,
    }
}

fn parse(def: &ResourceDef, body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {error}",
            def.kind
        ))
    })
}

fn parse_version(text: &str) -> Result<u64, Refusal> {
    let message = || format!("invalid resource version {text:?}");
    text.parse().map_err(|_error| Refusal::bad_request(message()))
}

/// The answer to a DELETE that leaves nothing behind.
fn removed(def: &ResourceDef, name: &str, uid: &str) -> Value {
    let mut details = json!({ "name": name, "group": def.group, "kind": def.plural, "uid": uid });
    if let Some(fields) = details.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
