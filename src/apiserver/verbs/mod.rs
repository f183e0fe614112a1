//! The verbs of the API, from a parsed request to its reply.

mod create;
pub(crate) mod definitions;
pub(crate) mod delete;
pub(crate) mod modify;
pub(crate) mod placeholders;
mod read;
pub(crate) mod rules;
mod scale;
mod special;
pub(crate) mod watch;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    Shared,
    managed::{self, FieldManager},
    metadata, object, rbac,
    refusal::{self, Refusal},
    reply::{List, Reply},
    request::{
        ApiRequest,
        body::{self, Expected},
        query::Query,
        route::RequestTarget,
    },
    resource::{ResourceDef, kind::VersionedKind},
    store::{Store, StoreKey},
    table::Presenter,
    verbs::rules::{Strictness, WritablePart},
    webhooks::{AdmissionRequest, conversion},
};

/// A request for objects, with its resource, parameters and body.
pub(crate) struct ApiCall<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) request: &'a ApiRequest,
    pub(crate) query: Query,
    pub(crate) target: &'a RequestTarget,
    pub(crate) view: VersionedKind,
    pub(crate) warnings: &'a Warnings,
    /// The paths of duplicate fields in the body.
    repeated: Mutex<Vec<String>>,
    /// The name of the field manager.
    manager: String,
}

/// Values of `Warning` headers.
pub(crate) type Warnings = Mutex<Vec<String>>;

impl ApiCall<'_> {
    /// Returns the qualified resource.
    pub(crate) fn resource(&self) -> String {
        self.view.resource()
    }

    /// Returns the key of the object with this name.
    pub(crate) fn key(&self, name: &str) -> StoreKey {
        StoreKey::new(&self.resource(), self.target.namespace.as_deref().unwrap_or_default(), name)
    }

    /// Decodes the body of a write.
    pub(crate) fn decode(&self) -> Result<Value, Refusal> {
        let content_type = self.request.header(http::header::CONTENT_TYPE);
        let known = |group: &str, version: &str, kind: &str| self.is_known(group, version, kind);
        let definition = self.view.kind.native.map(|it| it.schema_of(&self.view.version));
        let definition = definition.unwrap_or_default();
        let expected = Expected { definition: &definition, ..self.expected(&known) };
        body::decode(content_type, &self.request.body, expected, &mut self.repeated.lock())
    }

    /// Decodes an object by [`rules::read`]. Reports duplicate and unknown fields by `fieldValidation`: as warnings, as an error,
    /// or not at all.
    pub(crate) fn read(&self, object: &mut Value) -> Result<(), Refusal> {
        let unknown = rules::read(&self.view, object)?;
        let repeated = std::mem::take(&mut *self.repeated.lock());
        let repeated = repeated.iter().map(|it| format!("duplicate field {it:?}"));
        let unknown = unknown.iter().map(|it| format!("unknown field {it:?}"));
        let faults: Vec<String> = repeated.chain(unknown).collect();
        match self.query.text("fieldValidation") {
            Some("Ignore") => Ok(()),
            Some("Strict") if !faults.is_empty() => {
                let why = format!("strict decoding error: {}", faults.join(", "));
                Err(Refusal::undecodable(&self.view.kind.def.kind, &self.view.version, &why))
            }
            _ => {
                let mut warnings = self.warnings.lock();
                for it in faults {
                    if !warnings.contains(&it) {
                        warnings.push(it);
                    }
                }
                Ok(())
            }
        }
    }

    /// Warns about new finalizers of custom objects without a qualified name.
    pub(crate) fn warn_of_finalizers(&self, new: &Value, old: Option<&Value>) {
        if self.view.kind.def.native {
            return;
        }
        let before = old.map(object::finalizers).unwrap_or_default();
        for finalizer in object::finalizers(new) {
            let is_known = metadata::STANDARD_FINALIZERS.contains(&finalizer.as_str());
            if is_known || finalizer.contains('/') || before.contains(&finalizer) {
                continue;
            }
            let text = format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to avoid accidental \
                 conflicts with other finalizer writers"
            );
            let mut warnings = self.warnings.lock();
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }

    /// Checks that the result of a patch still has its kind, name and namespace.
    pub(crate) fn check_patched(&self, object: &Value, name: &str) -> Result<(), Refusal> {
        let known = |group: &str, version: &str, kind: &str| self.is_known(group, version, kind);
        if self.strictness() == Strictness::Strict {
            body::check_patched(object, self.expected(&known))?;
        }
        body::check_place(object, name, self.target.namespace.as_deref().unwrap_or_default())
    }

    /// Returns whether the rules of Kubernetes are enforced.
    pub(crate) fn strictness(&self) -> Strictness {
        if self.shared.stamps { Strictness::Strict } else { Strictness::Lax }
    }

    fn is_known(&self, group: &str, version: &str, kind: &str) -> bool {
        self.shared.store().tables.values().map(|it| &it.kind.def).any(|it| {
            it.native
                && it.group == group
                && it.kind == kind
                && it.versions.iter().any(|it| it == version)
        })
    }

    fn expected<'b>(&'b self, known: &'b dyn Fn(&str, &str, &str) -> bool) -> Expected<'b> {
        let def = &self.view.kind.def;
        Expected {
            group: &def.group,
            version: &self.view.version,
            kind: &def.kind,
            native: def.native,
            definition: "",
            known,
        }
    }

    /// Returns whether it is a dry run.
    pub(crate) fn is_dry(&self) -> bool {
        self.query.text("dryRun").is_some()
    }

    /// Returns the operation as webhooks see it.
    pub(crate) fn admission_request<'b>(
        &'b self,
        operation: &'static str,
        name: &'b str,
        old: Option<&'b Value>,
    ) -> AdmissionRequest<'b> {
        AdmissionRequest {
            operation,
            view: &self.view,
            subresource: self.target.subresource.as_deref().unwrap_or_default(),
            namespace: self.target.namespace.as_deref().unwrap_or_default(),
            name,
            old,
            dry: self.is_dry(),
            user: &self.request.user,
            warnings: self.warnings,
        }
    }

    /// Returns the field manager (the name that the client sets, or else that of its program) with the fields that it cannot write.
    pub(crate) fn writer<'b>(&'b self, time: &'b str) -> FieldManager<'b> {
        FieldManager {
            manager: &self.manager,
            api_version: &self.view.api_version,
            subresource: self.target.subresource.as_deref().unwrap_or_default(),
            time,
            ignored: &[],
        }
    }
}

/// Processes a request below `/api/v1` or `/apis/GROUP/VERSION`.
pub(crate) async fn respond(
    shared: &Arc<Shared>,
    request: &ApiRequest,
    target: &RequestTarget,
    warnings: &Warnings,
) -> Result<Reply, Refusal> {
    if let Some(reply) = rbac::reviews::own_user(shared, request, target) {
        return Ok(reply);
    }
    let Some(view) = find(&shared.store(), target) else {
        // Groups of the server itself respond with a `Status`.
        let own = shared.store().tables.values().any(|it| {
            let def = &it.kind.def;
            def.native && def.group == target.group
        });
        return if own { Err(Refusal::unknown_resource()) } else { Ok(Reply::unknown_path()) };
    };
    let query = Query::parse(&request.query);
    let verb = if target.watch {
        (request.method == "GET").then_some("watch")
    } else {
        verb(&request.method, target.name.is_some(), query.flag("watch"))
    };
    let agent = request.header(http::header::USER_AGENT);
    let manager = managed::manager_of(query.text("fieldManager").unwrap_or_default(), agent);
    let repeated = Mutex::default();
    let call = ApiCall { shared, request, query, target, view, warnings, repeated, manager };
    warnings.lock().extend(call.view.warning().map(String::from));
    let verb = verb.filter(|_| request.method != "HEAD" || !call.view.kind.def.native);
    let verb = verb.ok_or_else(|| refused(&call, ""))?;
    let accept = request.header(http::header::ACCEPT);
    let include = call.query.text("includeObject");
    if let Some("log" | "exec" | "attach" | "portforward") = target.subresource.as_deref() {
        // Logs and upgraded connections are not negotiated.
        return one(&call, verb, target.name.as_deref().unwrap_or_default()).await;
    }
    let presenter = Presenter::new(&call.view, accept, verb == "watch", include)?;
    let reply = match &target.name {
        Some(name) if !target.watch => one(&call, verb, name).await,
        _ => many(&call, verb).await,
    }?;
    let reply = converted(shared, reply).await?;
    presenter.reply(reply, &shared.store().now())
}

/// Converts the objects of a reply to the requested version.
async fn converted(shared: &Shared, reply: Reply) -> Result<Reply, Refusal> {
    match reply {
        Reply::Object { status, view, object } => {
            let object = conversion::one(shared, &view, object).await?;
            Ok(Reply::Object { status, view, object })
        }
        Reply::List(list) => {
            let items = conversion::shown(shared, &list.view, list.items).await?;
            Ok(Reply::List(List { items, ..list }))
        }
        other @ (Reply::Document(..)
        | Reply::Text(..)
        | Reply::Plain(..)
        | Reply::Watch(_)
        | Reply::Upgrade(_)
        | Reply::Tagged { .. }
        | Reply::Stream(..)) => Ok(other),
    }
}

/// Processes a request for the objects of a resource.
async fn many(call: &ApiCall<'_>, verb: &str) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    if matches!(verb, "update" | "patch") {
        let nameless = Refusal::bad_request("name must be provided");
        return Err(if def.native { Refusal::method_not_allowed() } else { nameless });
    }
    if !def.verbs.iter().any(|it| it == verb) {
        return Err(Refusal::method_not_allowed());
    }
    match verb {
        "create" | "deletecollection" if def.namespaced && call.target.namespace.is_none() => {
            let refused = Err(Refusal::method_not_allowed());
            if def.native { refused } else { Ok(Reply::unknown_path()) }
        }
        "create" => create::create(call).await,
        "watch" => read::watch(call),
        "list" => read::list(call),
        _ => delete::collection(call).await,
    }
}

/// Processes a request for one object.
async fn one(call: &ApiCall<'_>, verb: &str, name: &str) -> Result<Reply, Refusal> {
    let def = &call.view.kind.def;
    let part = match call.target.subresource.as_deref() {
        None if def.verbs.iter().any(|it| it == verb) => WritablePart::Main,
        None if verb == "post" && !def.native => return create::create(call).await,
        // Reviews have no names, so they cannot be requested.
        None if def.native && !named(def) => return Err(Refusal::unknown_resource()),
        None => return Err(Refusal::method_not_allowed()),
        Some("status" | "scale") if matches!(verb, "post" | "delete") && has_part(call) => {
            return Err(refused(call, if verb == "post" { "create" } else { verb }));
        }
        Some("status") if call.view.has_status() => WritablePart::Status,
        Some("scale") if scale::is_served(&call.view) => {
            return scale::answer(call, verb, name).await;
        }
        Some(_) => return special::respond(call, verb, name).await,
    };
    match verb {
        "get" => read::get(call, name),
        "update" => modify::update(call, part, name).await,
        "patch" => modify::patch(call, part, name).await,
        "delete" => delete::one(call, name).await,
        _ => Err(Refusal::method_not_allowed()),
    }
}

/// Returns whether objects of this kind can be requested by name.
fn named(def: &ResourceDef) -> bool {
    def.verbs.iter().any(|it| matches!(it.as_str(), "get" | "update" | "patch" | "delete"))
}

/// Returns whether the requested status or scale exists.
fn has_part(call: &ApiCall<'_>) -> bool {
    match call.target.subresource.as_deref() {
        Some("status") => call.view.has_status(),
        _ => scale::is_served(&call.view),
    }
}

/// Returns the refusal of a method that this object does not support.
fn refused(call: &ApiCall<'_>, verb: &str) -> Refusal {
    let def = &call.view.kind.def;
    if def.native { Refusal::method_not_allowed() } else { Refusal::not_supported(def, verb) }
}

fn find(store: &Store, target: &RequestTarget) -> Option<VersionedKind> {
    let resource = refusal::join(&target.plural, &target.group);
    let kind = &store.tables.get(&resource)?.kind;
    let version = kind.def.versions.contains(&target.version);
    let place = match (kind.def.namespaced, &target.namespace) {
        (true, None) => target.name.is_none(),
        (false, Some(_)) => false,
        (true, Some(_)) | (false, None) => true,
    };
    (version && place).then(|| VersionedKind::new(kind, &target.version))
}

fn verb(method: &str, named: bool, watching: bool) -> Option<&'static str> {
    match (method, named) {
        ("GET", false) if watching => Some("watch"),
        ("GET" | "HEAD", false) => Some("list"),
        ("GET" | "HEAD", true) => Some("get"),
        ("POST", false) => Some("create"),
        ("POST", true) => Some("post"),
        ("PUT", _) => Some("update"),
        ("PATCH", _) => Some("patch"),
        ("DELETE", true) => Some("delete"),
        ("DELETE", false) => Some("deletecollection"),
        _ => None,
    }
}
