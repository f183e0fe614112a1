//! Sends a patch: up to four requests, in a fixed order.
//!
//! Hop 8 of the walk. The contract is `tests/vectors/patching-requests.json`. What is in the requests is decided in
//! `logic/patch/`; here they are only sent, and conflicts sorted out.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use json_patch::PatchOperation;
use serde_json::{Map, Value, json};
use tokio::time;

use crate::logic::{
    object::Object,
    outcome::{LogLevel, Raised},
    patch::{self, Patch, Transformation},
    resource::Resource,
};
use crate::ports::{
    Address, ApiError, Cluster, ErrorClass, Logger, PatchKind, PatchRequest, Scripts,
};

/// Sends patches of objects of one resource.
#[derive(Clone, Copy)]
pub struct Patcher<'a> {
    /// Where to.
    pub cluster: &'a dyn Cluster,
    /// Who knows the functions in `patch.fns`.
    pub scripts: &'a dyn Scripts,
    /// The resource of the objects.
    pub resource: &'a Resource,
    /// Where the lines about it go.
    pub logger: &'a Logger,
}

/// How often a conflict is resolved at once, on the object as it is then; as client-go's `RetryOnConflict`.
const CONFLICTS_MAX: u32 = 5;

/// The pause before the second retry after a conflict; it doubles from then on.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

/// What came of a patch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patched {
    /// The object has changed since it was read, so that transformations were not applied: they are left in the patch.
    pub is_outdated: bool,
    /// The object is gone.
    pub is_gone: bool,
}

/// Why a patch could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The API said no.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A function in `patch.fns` raised.
    #[error("a function in patch.fns failed: {}", .0.message)]
    Transformation(Raised),
    /// Others changed the object each time before the patch came.
    #[error("conflicts with other changes of the object, {CONFLICTS_MAX} times in a row")]
    Conflict,
}

impl PatchError {
    /// Returns whether the same patch may be accepted later.
    pub fn is_transient(&self) -> bool {
        match self {
            PatchError::Api(error) => match error.class {
                // Missing: the path was not found, and not the object.
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

/// How the last two requests ended.
enum Attempt {
    Done,
    /// Somebody else was faster.
    Outdated,
    /// Why the server does not accept it, whatever the version.
    Refused(ApiError),
}

impl Patcher<'_> {
    /// Sends all of it, and resolves conflicts: transformations are applied to the object as it is then. What the server has
    /// accepted is taken out of the patch, also if this fails later; so it is never sent twice. An object that is gone is not
    /// an error.
    ///
    /// `answered` becomes the object after the last request that succeeded, also if a later one fails.
    ///
    /// # Errors
    /// When a request fails for another reason than a conflict, or transformations conflict too often; what was not accepted is
    /// left in the patch.
    pub async fn apply(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<Patched, PatchError> {
        let mut patched = self.apply_once(object, patch, answered).await?;
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
            if latest.header().deletion_timestamp.is_some() {
                patch.admit_deletion();
            }
            *answered = Some(Arc::clone(&latest));
            patched = self.apply_once(&latest, patch, answered).await?;
        }
        if patched.is_outdated { Err(PatchError::Conflict) } else { Ok(patched) }
    }

    /// The same without resolving conflicts: transformations that meet one are left in the patch.
    ///
    /// # Errors
    /// When a request fails for another reason than a conflict in the transformations.
    pub async fn apply_once(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<Patched, PatchError> {
        match self.send(object, patch, answered).await {
            Ok(is_outdated) => Ok(Patched { is_outdated, is_gone: false }),
            Err(PatchError::Api(error)) if names(&error, object) => Ok(self.gone()),
            Err(error) => Err(error),
        }
    }

    /// Returns the object as it is now; `None` if it is gone, also if another one has its name.
    async fn latest(&self, object: &Object) -> Result<Option<Arc<Object>>, PatchError> {
        let header = object.header();
        let address = Address {
            resource: self.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
        };
        match self.cluster.get(address).await {
            Ok(latest) => Ok((latest.header().uid == header.uid).then(|| Arc::new(latest))),
            Err(error) if names(&error, object) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn gone(&self) -> Patched {
        self.logger
            .log(LogLevel::Debug, "Patching was skipped: the object does not exist anymore.");
        Patched { is_gone: true, ..Patched::default() }
    }

    /// Returns whether transformations met a newer version of the object.
    async fn send(
        &self,
        object: &Arc<Object>,
        patch: &mut Patch,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<bool, PatchError> {
        let is_merged = !patch.merge.is_empty();
        self.merge(object, &mut patch.merge, answered).await?;
        if patch.transformations.is_empty() {
            return Ok(false);
        }
        let freshest = answered.as_ref().filter(|_| is_merged).unwrap_or(object);
        let freshest = Arc::clone(freshest);
        self.transform(freshest, patch, answered).await
    }

    /// The first two requests.
    async fn merge(
        &self,
        object: &Object,
        merge: &mut Map<String, Value>,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<(), PatchError> {
        let (main, status) = self.split(merge);
        let all = merge.clone();
        if !main.is_empty() {
            let payload = Value::Object(main);
            self.announce(|| format!("Merge-patching the resource with: {payload}"));
            *answered = Some(self.request(object, None, PatchKind::Merge, &payload).await?);
            merge.retain(|key, _| key == "status" && status.is_some());
        }
        if let Some(status) = status {
            let payload = json!({ "status": status });
            self.announce(|| format!("Merge-patching the status with: {payload}"));
            *answered =
                Some(self.request(object, Some("status"), PatchKind::Merge, &payload).await?);
        }
        merge.clear();
        if let Some(answer) = answered {
            self.verify(&all, answer);
        }
        Ok(())
    }

    /// The last two requests: what the functions change on the freshest body, unless it has changed meanwhile. Returns whether it
    /// has.
    ///
    /// All of them go together. If the server does not accept that, each goes alone, so that one that is wrong takes none of the
    /// others with it; it is reported and left out, as the server would refuse it again.
    async fn transform(
        &self,
        mut freshest: Arc<Object>,
        patch: &mut Patch,
        answered: &mut Option<Arc<Object>>,
    ) -> Result<bool, PatchError> {
        let all = patch.transformations.clone();
        let before = Arc::clone(&freshest);
        let mut ended = self.attempt(&mut freshest, &all, &mut patch.is_main_applied).await;
        if matches!(ended, Ok(Attempt::Refused(_))) && all.len() > 1 {
            for transformation in &all {
                // What is applied already is not applied twice.
                let mut is_main_applied = patch.is_main_applied;
                let alone = std::slice::from_ref(transformation);
                ended = self.attempt(&mut freshest, alone, &mut is_main_applied).await;
                match ended {
                    Ok(Attempt::Refused(error)) => self.leave_out(transformation, error)?,
                    Ok(Attempt::Done) => {}
                    Ok(Attempt::Outdated) | Err(_) => break,
                }
                ended = Ok(Attempt::Done);
                patch.transformations.remove(0);
            }
        }
        if !Arc::ptr_eq(&before, &freshest) {
            *answered = Some(freshest);
        }
        match (ended?, all.as_slice()) {
            (Attempt::Outdated, _) => {
                self.conflict(&patch.transformations);
                return Ok(true);
            }
            (Attempt::Refused(error), [only, ..]) => self.leave_out(only, error)?,
            (Attempt::Refused(_), []) | (Attempt::Done, _) => {}
        }
        patch.transformations.clear();
        patch.is_main_applied = false;
        Ok(false)
    }

    /// Sends what some of the functions change on the freshest body, which becomes the answer. What is not the status is left out
    /// if `is_main_applied`, which is set when that part was accepted.
    async fn attempt(
        &self,
        freshest: &mut Arc<Object>,
        transformations: &[Transformation],
        is_main_applied: &mut bool,
    ) -> Result<Attempt, PatchError> {
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
            let payload = Value::Array(std::iter::once(test).chain(operations).collect());
            self.announce(|| format!("JSON-patching the {what} with: {payload}"));
            match self.request(freshest, subresource, PatchKind::Json, &payload).await {
                Ok(object) => {
                    *freshest = object;
                    *is_main_applied |= is_main;
                }
                Err(error) if error.class == ErrorClass::Outdated => return Ok(Attempt::Outdated),
                Err(error) if error.class == ErrorClass::Invalid => {
                    return Ok(Attempt::Refused(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Attempt::Done)
    }

    /// Tells of a change that the server does not accept.
    ///
    /// # Errors
    /// For those of the operator itself: without its finalizer an object would be lost, or stay for ever.
    fn leave_out(&self, transformation: &Transformation, error: ApiError) -> Result<(), ApiError> {
        match transformation {
            Transformation::BlockDeletion(_) | Transformation::AllowDeletion(_) => Err(error),
            Transformation::Condition(_) | Transformation::Scripted(_) => {
                let text = format!(
                    "The server does not accept a part of the patch, which is left out: {transformation}: {error}. \
                     The rest is applied, and the handlers are not called again for it: correct the script."
                );
                self.logger.log(LogLevel::Warning, &text);
                Ok(())
            }
        }
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

    /// Warns if the cluster did not take what was sent: most often a schema has pruned unknown fields.
    fn verify(&self, merge: &Map<String, Value>, answer: &Object) {
        if merge.is_empty() {
            return;
        }
        let differences = patch::inconsistencies(merge, answer.body());
        if !differences.is_empty() {
            let differences = crate::logic::diff::to_text(&differences);
            let text = format!("Merge-patching finished with inconsistencies: {differences}");
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    fn split(&self, merge: &Map<String, Value>) -> (Map<String, Value>, Option<Value>) {
        let mut main = merge.clone();
        let status = if self.has_status() { main.shift_remove("status") } else { None };
        (main, status.filter(|it| !it.is_null()))
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

    async fn request(
        &self,
        object: &Object,
        subresource: Option<&str>,
        kind: PatchKind,
        payload: &Value,
    ) -> Result<Arc<Object>, ApiError> {
        let header = object.header();
        let request = PatchRequest {
            resource: self.resource,
            namespace: header.namespace.as_deref(),
            name: header.name.as_deref().unwrap_or_default(),
            subresource,
            kind,
            payload: Bytes::from(payload.to_string()),
        };
        self.cluster.patch(request).await.map(Arc::new)
    }

    /// Payloads are long: they are written out only if somebody reads them.
    fn announce(&self, text: impl FnOnce() -> String) {
        if self.logger.is_enabled(LogLevel::Debug) {
            self.logger.log(LogLevel::Debug, &text());
        }
    }
}

/// Returns whether an error says that this object does not exist. Other answers with 404 are about the path: a server that
/// starts, a proxy without a route, a subresource that the definition has lost.
fn names(error: &ApiError, object: &Object) -> bool {
    let said = error.answer.as_ref().and_then(|it| it.details.get("name")?.as_str());
    error.class == ErrorClass::Missing && said == object.header().name.as_deref()
}
