//! Sends a patch: up to four requests, in a fixed order.
//!
//! Step 8 of the walk. The contract is `tests/vectors/patching-requests.json`. `logic/change/patch/` decides the content of the
//! requests; this module sends them and resolves conflicts.

use std::{fmt, mem, num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use json_patch::PatchOperation;
use serde_json::{Map, Value, json};
use tokio::time;

use crate::call::{Logger, Scripts};
use crate::logic::{
    change::{
        order,
        patch::{self, Overlay, Patch, Transformation},
    },
    handlers::outcome::{LogLevel, Raised},
    object::{Object, diff, hidden, resource::Resource},
};
use crate::ports::{
    Address, ApiError, Cluster, Edits, ErrorClass, Interrupt, NewerEvents, PatchKind, PatchRequest,
};
use crate::settings::PersistenceSettings;

/// A sender of patches for objects of one resource.
#[derive(Clone, Copy)]
pub struct Patcher<'a> {
    /// The cluster to send to.
    pub cluster: &'a dyn Cluster,
    /// The scripts with the functions in `patch.fns`.
    pub scripts: &'a dyn Scripts,
    /// The resource of the objects.
    pub resource: &'a Resource,
    /// The logger for lines about the patch.
    pub logger: &'a Logger,
    /// The latest known version of the object, if it may be later than that of the object itself.
    pub seen: Option<NonZeroU64>,
    /// The source of newer events of the object, if a worker handles them after the patch.
    pub events: Option<&'a dyn NewerEvents>,
    /// The source of edits of the handlers that request the patch.
    pub edits: &'a dyn Edits,
    /// Which fields are not logged.
    pub persistence: &'a PersistenceSettings,
}

/// Maximum number of immediate retries after a conflict, on the latest object; like client-go's `RetryOnConflict`.
const CONFLICTS_MAX: u32 = 5;

/// The pause before the second retry after a conflict; each further pause is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// The responses to a patch so far, also if a request failed in the end.
#[derive(Debug, Default)]
pub struct PatchResponses {
    /// The object after the last request that succeeded.
    pub object: Option<Arc<Object>>,
    /// Transformations of scripts that were rejected. They are no longer in the patch.
    pub refused: Vec<Refused>,
    /// The server has shown an older version of the object than before: its event may have come already.
    pub is_restored: bool,
}

/// A transformation that was rejected, or that conflicted too often. It is not sent again.
#[derive(Debug)]
pub struct Refused {
    /// The function or the condition of a script.
    pub transformation: Transformation,
    /// Why: rejected by the API server, an error of the function itself, or conflicts.
    pub error: PatchError,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            PatchError::Transformation(_) => self.error.fmt(f),
            PatchError::Api(_) | PatchError::Conflict => {
                write!(f, "{} was rejected: {}", self.transformation, self.error)
            }
        }
    }
}

/// The result of a patch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patched {
    /// The object has changed since it was read, so the status or transformations were not applied: they stay in the patch.
    pub is_outdated: bool,
    /// The object is gone.
    pub is_gone: bool,
}

/// The reason why a patch could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The API rejected the request.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A function in `patch.fns` failed.
    #[error("a function in patch.fns failed: {}", .0.message)]
    Transformation(Raised),
    /// Other clients changed the object each time before the patch arrived.
    #[error("conflicts with other changes of the object, {CONFLICTS_MAX} times in a row")]
    Conflict,
}

impl PatchError {
    /// Returns whether the same patch may be accepted later.
    pub fn is_transient(&self) -> bool {
        match self {
            PatchError::Api(error) => match error.class {
                // Missing: the path does not exist; a missing object is not an error.
                ErrorClass::Retry | ErrorClass::Conflict | ErrorClass::Missing => true,
                ErrorClass::Outdated
                | ErrorClass::Invalid
                | ErrorClass::Denied
                | ErrorClass::Expired
                | ErrorClass::Fatal => false,
            },
            PatchError::Transformation(_) => false,
            PatchError::Conflict => true,
        }
    }
}

/// The result of requests that require a version of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchAttempt {
    Done,
    /// Another client has changed the object.
    Outdated,
}

impl Patcher<'_> {
    /// Sends the whole patch and resolves conflicts: the status is sent again to the same object, and transformations are applied
    /// to the latest object. Parts that the server has accepted are removed from the patch, also if this fails later; so they are
    /// never sent twice. A deleted object is not an error.
    ///
    /// Transformations of scripts that fail, that the server rejects or that conflict too often are moved to `received` one by one;
    /// all others are applied.
    ///
    /// # Errors
    /// If a request fails for another reason; parts that were not accepted stay in the patch.
    pub async fn apply(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        received: &mut PatchResponses,
    ) -> Result<Patched, PatchError> {
        let mut patched = self.apply_once(object, patch, received).await?;
        let mut pause = CONFLICT_PAUSE;
        for number in 1..=CONFLICTS_MAX {
            if !patched.is_outdated {
                return Ok(patched);
            }
            if number > 1 {
                time::sleep(pause).await;
                pause *= 2;
            }
            let Some(latest) = self.latest(object).await? else { return Ok(self.gone()) };
            if order::is_older(&latest, order::number(object)) {
                received.is_restored = true;
                return Ok(self.restored());
            }
            if latest.header().deletion_timestamp.is_some() {
                patch.admit_deletion();
            }
            received.object = Some(Arc::clone(&latest));
            let patcher = Patcher { seen: None, ..*self };
            patched = patcher.apply_once(&latest, patch, received).await?;
        }
        if !patched.is_outdated {
            return Ok(patched);
        }
        if !patch.merge.is_empty() {
            return Err(PatchError::Conflict);
        }
        let (own, of_scripts) = patch.transformations.drain(..).partition(Transformation::is_own);
        patch.transformations = own;
        let refuse = |transformation| Refused { transformation, error: PatchError::Conflict };
        received.refused.extend(Vec::into_iter(of_scripts).map(refuse));
        if patch.transformations.is_empty() {
            Ok(Patched::default())
        } else {
            Err(PatchError::Conflict)
        }
    }

    /// Sends the whole patch without resolving conflicts: conflicting parts stay in the patch.
    ///
    /// # Errors
    /// If a request fails for another reason than a conflict.
    pub async fn apply_once(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        received: &mut PatchResponses,
    ) -> Result<Patched, PatchError> {
        let error = match self.send(object, patch, received).await {
            Ok(is_outdated) => return Ok(Patched { is_outdated, is_gone: false }),
            Err(PatchError::Api(error)) if error.is_missing(object.header().name.as_deref()) => {
                return Ok(self.gone());
            }
            Err(error) => error,
        };
        let is_refused = matches!(
            &error,
            PatchError::Api(it) if matches!(it.class, ErrorClass::Invalid | ErrorClass::Conflict | ErrorClass::Denied)
        );
        let latest = if is_refused { self.latest(object).await } else { return Err(error) };
        match latest {
            // Another object with this name has another uid, so the server rejects the patch.
            Ok(None) => Ok(self.gone()),
            // An earlier attempt was accepted, but its response was lost.
            Ok(Some(latest))
                if !patch.merge.is_empty() && latest.is_known_to_contain(&patch.merge) =>
            {
                patch.merge.clear();
                received.object = Some(Arc::clone(&latest));
                let is_outdated = self.send(&latest, patch, received).await?;
                Ok(Patched { is_outdated, is_gone: false })
            }
            Ok(Some(_)) | Err(_) => Err(error),
        }
    }

    /// Returns the latest object; `None` if it is gone, also if another object has its name.
    async fn latest(&self, object: &Object) -> Result<Option<Arc<Object>>, PatchError> {
        let header = object.header();
        let address = Address {
            resource: self.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
        };
        match self.cluster.get(address).await {
            Ok(latest) => Ok((latest.header().uid == header.uid).then(|| Arc::new(latest))),
            Err(error) if error.is_missing(object.header().name.as_deref()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a restored backup: nothing that was done since then applies to the present object.
    fn restored(&self) -> Patched {
        self.logger.log(
            LogLevel::Warning,
            "The server shows an older version of the object than before, as after a restored backup: the changes of its \
             handlers are dropped, and they see the present object.",
        );
        Patched { is_gone: true, ..Patched::default() }
    }

    fn gone(&self) -> Patched {
        self.logger
            .log(LogLevel::Debug, "Patching was skipped: the object does not exist anymore.");
        Patched { is_gone: true, ..Patched::default() }
    }

    /// Sends the patch once. Returns whether the status or the transformations met a newer version of the object.
    async fn send(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        received: &mut PatchResponses,
    ) -> Result<bool, PatchError> {
        let is_merged = !patch.merge.is_empty();
        let merged = self.merge(object, &mut patch.merge, &mut received.object).await?;
        if merged == PatchAttempt::Outdated {
            return Ok(true);
        }
        if patch.transformations.is_empty() {
            return Ok(false);
        }
        let freshest = received.object.as_ref().filter(|_| is_merged).unwrap_or(object);
        let freshest = Arc::clone(freshest);
        self.transform(freshest, patch, received).await
    }

    /// Sends the first two requests.
    async fn merge(
        &self,
        object: &Object,
        merge: &mut Map<String, Value>,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<PatchAttempt, PatchError> {
        let is_apart = self.has_status();
        let is_main = |key: &String| !(is_apart && key == "status");
        let has_status = is_apart && merge.get("status").is_some_and(|it| !it.is_null());
        let mut accepted = Map::new();
        let mut freshest = None;
        if merge.keys().any(is_main) {
            let text = main_text(object, merge, is_apart);
            let main = || merge.iter().filter(|(key, _)| is_main(key));
            let payload = || main().map(|(key, it)| (key.clone(), it.clone())).collect();
            self.announce(|| {
                format!("Merge-patching the resource with: {}", self.shown(&payload()))
            });
            let answer = self.request(object, (None, PatchKind::Merge), text, payload).await?;
            freshest = Some(Arc::clone(&answer));
            *answered = Some(answer);
            let rest = has_status.then(|| merge.shift_remove_entry("status")).flatten();
            accepted = mem::replace(merge, rest.into_iter().collect());
        }
        let mut ended = PatchAttempt::Done;
        if has_status {
            let freshest = freshest.as_deref().unwrap_or(object);
            match self.merge_status(freshest, merge).await? {
                Some(answer) => *answered = Some(answer),
                None => ended = PatchAttempt::Outdated,
            }
        }
        if ended == PatchAttempt::Done {
            accepted.append(merge);
        }
        if let Some(answer) = answered {
            self.verify(&accepted, answer);
        }
        Ok(ended)
    }

    /// Patches the status. Returns `None` if the object has changed meanwhile, or is another one.
    ///
    /// Servers ignore the uid in a merge-patch of a status, but not the version: an object that is created again under the same
    /// name has another version, so it never gets the status of the one before.
    async fn merge_status(
        &self,
        object: &Object,
        merge: &mut Map<String, Value>,
    ) -> Result<Option<Arc<Object>>, PatchError> {
        let version = self.latest_version(object);
        let text = status_text(version.as_deref(), merge);
        let is_insisting = version.is_some();
        let payload = || json!({ "status": merge.get("status") });
        self.announce(|| format!("Merge-patching the status with: {}", self.shown(&payload())));
        match self.request(object, (Some("status"), PatchKind::Merge), text, payload).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.class == ErrorClass::Conflict && is_insisting => {
                let text = "The object has changed meanwhile, so its status is patched in its latest version.";
                self.logger.log(LogLevel::Debug, text);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the most probable present version of the object.
    fn latest_version(&self, object: &Object) -> Option<String> {
        match self.seen {
            Some(seen) if order::is_older(object, self.seen) => Some(seen.to_string()),
            Some(_) | None => object.header().resource_version.clone(),
        }
    }

    /// Sends the last two requests: the changes that functions make on the latest body, unless the object has changed meanwhile.
    /// Returns whether it has.
    ///
    /// All transformations are sent together. If that is rejected, each is sent alone, so that a wrong one does not affect the
    /// others.
    async fn transform(
        &self,
        mut freshest: Arc<Object>,
        patch: &mut Patch,
        received: &mut PatchResponses,
    ) -> Result<bool, PatchError> {
        let before = Arc::clone(&freshest);
        let all = patch.transformations.clone();
        let together = self.attempt(&mut freshest, &all, &mut patch.is_main_applied).await;
        let ended = match together {
            Err(error) if error.is_transient() => Err(error),
            Err(error) => match all.as_slice() {
                [only] if only.is_own() => Err(error),
                [only] => {
                    received.refused.push(Refused { transformation: only.clone(), error });
                    Ok(PatchAttempt::Done)
                }
                _ => self.transform_each(&mut freshest, patch, received).await,
            },
            Ok(ended) => Ok(ended),
        };
        if !Arc::ptr_eq(&before, &freshest) {
            received.object = Some(freshest);
        }
        if ended? == PatchAttempt::Outdated {
            self.conflict(&patch.transformations);
            return Ok(true);
        }
        patch.transformations.clear();
        patch.is_main_applied = false;
        Ok(false)
    }

    /// Sends the transformations one after another, and removes those that are applied or rejected.
    ///
    /// # Errors
    /// If a request fails; also if a transformation of the operator itself is rejected: without its finalizer, an object would be lost, or
    /// would stay permanently.
    async fn transform_each(
        &self,
        freshest: &mut Arc<Object>,
        patch: &mut Patch,
        received: &mut PatchResponses,
    ) -> Result<PatchAttempt, PatchError> {
        while let Some(transformation) = patch.transformations.first().cloned() {
            // Does not apply an applied part twice.
            let mut is_main_applied = patch.is_main_applied;
            let alone = std::slice::from_ref(&transformation);
            match self.attempt(freshest, alone, &mut is_main_applied).await {
                Ok(PatchAttempt::Done) => {}
                Ok(PatchAttempt::Outdated) => return Ok(PatchAttempt::Outdated),
                Err(error) if error.is_transient() || transformation.is_own() => return Err(error),
                Err(error) => received.refused.push(Refused { transformation, error }),
            }
            patch.transformations.remove(0);
        }
        Ok(PatchAttempt::Done)
    }

    /// Sends the changes that some transformations make on the latest body, which becomes the response. Skips the part outside of
    /// the status if `is_main_applied`, which is set once that part is accepted.
    async fn attempt(
        &self,
        freshest: &mut Arc<Object>,
        transformations: &[Transformation],
        is_main_applied: &mut bool,
    ) -> Result<PatchAttempt, PatchError> {
        let mut body = Value::clone(freshest.body());
        for transformation in transformations {
            body = self.transformed(body, transformation).await?;
        }
        let operations = patch::operations(freshest.body(), &body);
        let (main, status) = self.split_operations(operations);
        for (subresource, what, operations) in
            [(None, "resource", main), (Some("status"), "status", status)]
        {
            let is_main = subresource.is_none();
            if operations.is_empty() || (is_main && *is_main_applied) {
                continue;
            }
            let version = freshest.header().resource_version.clone();
            let test =
                json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version });
            let operations = operations.iter().map(|it| json!(it));
            let mut payload = Value::Array(std::iter::once(test).chain(operations).collect());
            self.announce(|| format!("JSON-patching the {what} with: {}", self.shown(&payload)));
            if let (Some(uid), Some(operations)) = (&freshest.header().uid, payload.as_array_mut())
            {
                operations
                    .insert(0, json!({ "op": "test", "path": "/metadata/uid", "value": uid }));
            }
            let (text, kind) = (kopf_json::text(&payload), (subresource, PatchKind::Json));
            match self.request(freshest, kind, text, || payload.clone()).await {
                Ok(object) => {
                    *freshest = object;
                    *is_main_applied |= is_main;
                }
                Err(error) if error.class == ErrorClass::Outdated => {
                    return Ok(PatchAttempt::Outdated);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(PatchAttempt::Done)
    }

    async fn transformed(
        &self,
        mut body: Value,
        transformation: &Transformation,
    ) -> Result<Value, PatchError> {
        match transformation {
            Transformation::BlockDeletion(finalizer) => patch::block_deletion(&mut body, finalizer),
            Transformation::AllowDeletion(finalizer) => patch::allow_deletion(&mut body, finalizer),
            Transformation::Condition(change) => change.apply(&mut body),
            Transformation::Scripted(function) => {
                let changed = self.scripts.transform(function.clone(), body).await;
                return changed.map_err(PatchError::Transformation);
            }
        }
        Ok(body)
    }

    fn conflict(&self, transformations: &[Transformation]) {
        let remaining = transformations.iter().map(Transformation::to_string).collect::<Vec<_>>();
        let text = format!(
            "The object has changed meanwhile, so a part of the patch is applied to its latest version: {}",
            remaining.join(", ")
        );
        self.logger.log(LogLevel::Debug, &text);
    }

    /// Warns if the cluster did not store the patch as sent: usually because a schema has pruned unknown fields.
    fn verify(&self, merge: &Map<String, Value>, answer: &Object) {
        if merge.is_empty() || answer.is_known_to_contain(merge) {
            return;
        }
        let differences = patch::inconsistencies(merge, answer.body());
        if !differences.is_empty() {
            let shown = hidden::loggable_diff(self.persistence, &differences);
            let differences = diff::to_text(shown.as_ref().unwrap_or(&differences));
            let text = format!("Merge-patching finished with inconsistencies: {differences}");
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    fn split_operations(
        &self,
        all: Vec<PatchOperation>,
    ) -> (Vec<PatchOperation>, Vec<PatchOperation>) {
        if self.has_status() { patch::split_status(all) } else { (all, Vec::new()) }
    }

    fn has_status(&self) -> bool {
        self.resource.subresources.contains("status")
    }

    /// Sends a payload as JSON. `payload` returns it as a value, for errors.
    async fn request(
        &self,
        object: &Object,
        (subresource, kind): (Option<&str>, PatchKind),
        text: Vec<u8>,
        payload: impl Fn() -> Value,
    ) -> Result<Arc<Object>, ApiError> {
        let header = object.header();
        let after = order::number(object);
        let interrupt = Interrupt { events: self.events, after, edits: Some(self.edits) };
        let request = PatchRequest {
            resource: self.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
            subresource,
            kind,
            payload: Bytes::from(text),
            interrupt: Some(interrupt),
        };
        let patched = self.cluster.patch(request).await;
        patched.map_err(|error| {
            if self.persistence.hidden.is_none() {
                return error;
            }
            // Servers repeat invalid values in their errors.
            let payload = payload();
            let texts = (&**object.body(), &payload);
            let message = hidden::without_values(self.persistence, texts, &error.message);
            ApiError { message, ..error }
        })
    }

    /// Returns the payload of a patch for the log.
    fn shown(&self, payload: &Value) -> Value {
        if payload.is_array() && self.persistence.hidden.is_some() {
            return hidden::loggable_operations(payload);
        }
        hidden::loggable(self.persistence, payload).unwrap_or_else(|| payload.clone())
    }

    /// Logs a payload. Payloads are long, so they are formatted only if debug lines are enabled.
    fn announce(&self, text: impl FnOnce() -> String) {
        if self.logger.is_enabled(LogLevel::Debug) {
            self.logger.log(LogLevel::Debug, &text());
        }
    }
}

/// Returns the JSON of a merge-patch of an object, without the status if that is a subresource. It is invalid for another object of the
/// same name.
fn main_text(object: &Object, merge: &mut Map<String, Value>, is_status_apart: bool) -> Vec<u8> {
    let status = is_status_apart.then(|| merge.shift_remove_entry("status")).flatten();
    let uid = object.header().uid.as_deref();
    let uid = uid.filter(|_| merge.get("metadata").is_none_or(Value::is_object));
    let insisting = uid.map(|it| ("metadata".into(), json!({ "uid": it })));
    let overlay = Overlay::compose(merge, insisting.into_iter().collect());
    let text = kopf_json::map_text(merge);
    overlay.revert(merge);
    merge.extend(status);
    text
}

/// Returns the JSON of a merge-patch of a status. Servers ignore the uid there; the version has its effect.
fn status_text(version: Option<&str>, merge: &mut Map<String, Value>) -> Vec<u8> {
    let mut payload = Map::from_iter(merge.shift_remove_entry("status"));
    if let Some(version) = version {
        payload.insert("metadata".into(), json!({ "resourceVersion": version }));
    }
    let text = kopf_json::map_text(&payload);
    merge.extend(payload.shift_remove_entry("status"));
    text
}
