//! Sends a patch: up to four requests, in a fixed order.
//!
//! Hop 8 of the walk. The contract is `tests/vectors/patching-requests.json`. What is in the requests is decided in
//! `logic/patch/`; here they are only sent, and conflicts sorted out.

use std::sync::Arc;

use bytes::Bytes;
use json_patch::PatchOperation;
use serde_json::{Map, Value, json};

use crate::logic::{
    object::Object,
    outcome::{LogLevel, Raised},
    patch::{self, Patch, Transformation},
    resource::Resource,
};
use crate::ports::{ApiError, Cluster, ErrorClass, Logger, PatchKind, PatchRequest, Scripts};

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

/// What came of a patch.
#[derive(Debug, Default)]
pub struct Patched {
    /// The object after the last request that succeeded; `None` if nothing was sent, or if the object is gone.
    pub object: Option<Arc<Object>>,
    /// Transformations that met a newer version of the object; for the next cycle.
    pub leftovers: Vec<Transformation>,
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
}

/// Which of the last two requests are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Both,
    Status,
}

/// How the last two requests went.
#[derive(Default)]
struct Attempt {
    /// The object after the last request that succeeded, also one before these two.
    answer: Option<Arc<Object>>,
    /// What is not the status is as wanted.
    is_main_applied: bool,
    /// Somebody else was faster.
    is_outdated: bool,
    /// Why the server does not accept it, whatever the version.
    refusal: Option<ApiError>,
}

impl Patcher<'_> {
    /// Sends all of it. An object that is gone is not an error.
    ///
    /// # Errors
    /// When a request fails for another reason than a conflict in the transformations, or one of them that is not acceptable; the
    /// rest is then not sent.
    pub async fn apply(&self, object: &Arc<Object>, patch: &Patch) -> Result<Patched, PatchError> {
        match self.send(object, patch).await {
            Ok(patched) => Ok(patched),
            Err(PatchError::Api(error)) if error.class == ErrorClass::Missing => {
                self.logger.log(
                    LogLevel::Debug,
                    "Patching was skipped: the object does not exist anymore.",
                );
                Ok(Patched { is_gone: true, ..Patched::default() })
            }
            Err(error) => Err(error),
        }
    }

    async fn send(&self, object: &Arc<Object>, patch: &Patch) -> Result<Patched, PatchError> {
        let merged = self.merge(object, &patch.merge).await?;
        if let Some(answer) = &merged {
            self.verify(&patch.merge, answer);
        }
        if patch.transformations.is_empty() {
            return Ok(Patched { object: merged, ..Patched::default() });
        }
        self.transform(object, &patch.transformations, merged).await
    }

    /// The first two requests. Gives the answer to the last one that was needed.
    async fn merge(
        &self,
        object: &Object,
        merge: &Map<String, Value>,
    ) -> Result<Option<Arc<Object>>, PatchError> {
        let (main, status) = self.split(merge);
        let mut answer = None;
        if !main.is_empty() {
            let payload = Value::Object(main);
            self.announce(|| format!("Merge-patching the resource with: {payload}"));
            answer = Some(self.request(object, None, PatchKind::Merge, &payload).await?);
        }
        if let Some(status) = status {
            let payload = json!({ "status": status });
            self.announce(|| format!("Merge-patching the status with: {payload}"));
            answer = Some(self.request(object, Some("status"), PatchKind::Merge, &payload).await?);
        }
        Ok(answer)
    }

    /// The last two requests: what the functions change on the freshest body, unless it has changed meanwhile.
    ///
    /// All of them go together. If the server does not accept that, each goes alone, so that one that is wrong takes none of the
    /// others with it; it is told and left out, as the server would refuse it again.
    async fn transform(
        &self,
        object: &Arc<Object>,
        transformations: &[Transformation],
        answer: Option<Arc<Object>>,
    ) -> Result<Patched, PatchError> {
        let mut sent = self.attempt(object, transformations, answer, Parts::Both).await?;
        if sent.refusal.is_some() && transformations.len() > 1 {
            // What is applied already is not applied twice.
            let parts = if sent.is_main_applied { Parts::Status } else { Parts::Both };
            for (place, transformation) in transformations.iter().enumerate() {
                let alone = std::slice::from_ref(transformation);
                sent = self.attempt(object, alone, sent.answer, parts).await?;
                if sent.is_outdated {
                    let left = transformations.get(place..).unwrap_or_default();
                    return Ok(self.conflict(left, sent.answer));
                }
                if let Some(error) = sent.refusal.take() {
                    self.leave_out(transformation, error)?;
                }
            }
        }
        if sent.is_outdated {
            return Ok(self.conflict(transformations, sent.answer));
        }
        if let (Some(error), [only]) = (sent.refusal, transformations) {
            self.leave_out(only, error)?;
        }
        Ok(Patched { object: sent.answer, ..Patched::default() })
    }

    /// Sends what some of the functions change.
    async fn attempt(
        &self,
        object: &Arc<Object>,
        transformations: &[Transformation],
        answer: Option<Arc<Object>>,
        parts: Parts,
    ) -> Result<Attempt, PatchError> {
        let mut sent = Attempt { answer, ..Attempt::default() };
        let freshest = Arc::clone(sent.answer.as_ref().unwrap_or(object));
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
            if operations.is_empty() || (is_main && parts == Parts::Status) {
                continue;
            }
            let version =
                sent.answer.as_ref().unwrap_or(&freshest).header().resource_version.clone();
            let test =
                json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version });
            let operations = operations.iter().map(|it| json!(it));
            let payload = Value::Array(std::iter::once(test).chain(operations).collect());
            self.announce(|| format!("JSON-patching the {what} with: {payload}"));
            match self.request(&freshest, subresource, PatchKind::Json, &payload).await {
                Ok(object) => {
                    sent.answer = Some(object);
                    sent.is_main_applied |= is_main;
                }
                Err(error) if error.class == ErrorClass::Outdated => {
                    return Ok(Attempt { is_outdated: true, ..sent });
                }
                Err(error) if error.class == ErrorClass::Invalid => {
                    return Ok(Attempt { refusal: Some(error), ..sent });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sent)
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

    fn conflict(&self, transformations: &[Transformation], object: Option<Arc<Object>>) -> Patched {
        let remaining = transformations.iter().map(Transformation::to_string).collect::<Vec<_>>();
        let text = format!(
            "Could not apply the patch in full due to conflicts with newer changes. Will try on the next cycle soon. \
             Remaining: {}",
            remaining.join(", ")
        );
        self.logger.log(LogLevel::Debug, &text);
        Patched { object, leftovers: transformations.to_vec(), is_gone: false }
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
