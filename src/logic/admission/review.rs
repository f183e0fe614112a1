//! Reads an `AdmissionReview`: version `v1` or `v1beta1` of `admission.k8s.io`.
//!
//! Before: `webhooks/`, or the embedded server. After: `logic/change/selection.rs` chooses the handlers; `response.rs` responds.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use kopf_json::{managed_fields, review::ReviewText, shared::bytes_of};
use serde_json::{Map, Value};

use crate::logic::object::{
    Object,
    diff::{self, Diff},
    resource::Resource,
};

/// One request of an API server.
#[derive(Clone, Debug)]
pub struct Review {
    /// The version and kind of the review, which the response repeats.
    pub(super) api_version: Value,
    pub(super) kind: Value,
    /// `request.uid`, which the response repeats.
    pub(super) uid: Value,
    /// The resource of the object.
    pub resource: ResourceName,
    /// The request without its objects.
    request: Map<String, Value>,
    old: Option<State>,
    new: Option<State>,
}

/// The field `request.resource` of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceName {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version in which the webhook receives the object.
    pub version: String,
    /// The plural, as in URLs.
    pub plural: String,
}

/// The parts of a review that handlers see.
#[derive(Clone, Debug)]
pub struct ReviewedRequest {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Option<String>,
    /// The subresource; `None` is the object itself.
    pub subresource: Option<String>,
    /// The user who makes the request.
    pub user_info: Arc<Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The options of the request, such as `DeleteOptions`.
    pub options: Option<Arc<Value>>,
    old: Option<State>,
    new: Option<State>,
    diff: OnceLock<Arc<Diff>>,
    /// The new object, or the old one in deletions.
    pub object: Arc<Object>,
}

/// The object before or after a request.
#[derive(Clone, Debug)]
struct State {
    /// Without managed fields.
    object: Arc<Object>,
    /// What was removed from a tree.
    managed_fields: Option<Value>,
    /// With managed fields; built when it is first used.
    whole: OnceLock<Arc<Value>>,
}

impl State {
    fn of_tree(mut body: Value) -> Option<Self> {
        let managed_fields = managed_fields::take(&mut body);
        let object = Object::of_tree(Arc::new(body));
        let is_there = !object.body().is_null();
        is_there.then(|| State::of(object, managed_fields))
    }

    fn of_text(text: Bytes) -> Result<Option<Self>, serde_json::Error> {
        if *text == *b"null" {
            return Ok(None);
        }
        Object::parse_as_tape(text).map(|it| Some(State::of(it, None)))
    }

    fn of(object: Object, managed_fields: Option<Value>) -> Self {
        State { object: Arc::new(object), managed_fields, whole: OnceLock::new() }
    }

    fn whole(&self) -> &Arc<Value> {
        self.whole.get_or_init(|| {
            let body = self.object.body();
            let managed_fields = self.managed_fields.clone();
            let removed = || managed_fields::of_text(self.object.raw());
            let Some(managed_fields) = managed_fields.or_else(removed) else {
                return Arc::clone(body);
            };
            let mut whole = Value::clone(body);
            managed_fields::restore(&mut whole, managed_fields);
            Arc::new(whole)
        })
    }
}

impl ReviewedRequest {
    /// Returns the object before the request; `None` for new objects.
    pub fn old_object(&self) -> Option<&Arc<Value>> {
        self.old.as_ref().map(State::whole)
    }

    /// Returns the object as it will be stored; `None` for deletions.
    pub fn new_object(&self) -> Option<&Arc<Value>> {
        self.new.as_ref().map(State::whole)
    }

    /// Returns the approximate bytes of memory that both objects and their difference take.
    pub fn memory(&self) -> usize {
        let of_state =
            |it: &State| it.object.memory() + it.whole.get().map_or(0, |it| bytes_of(it));
        let states = self.old.iter().chain(&self.new).map(of_state).sum::<usize>();
        states + self.diff.get().map_or(0, |it| diff::memory(it))
    }

    /// Returns the difference between both.
    pub fn diff(&self) -> &Diff {
        self.diff.get_or_init(|| {
            let [old, new] = [self.old_object(), self.new_object()]
                .map(|it| it.map_or(&Value::Null, |it| &**it));
            Arc::new(diff::diff(old, new))
        })
    }
}

/// The reason why a review cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewError {
    /// The review is incomplete, or not a review at all.
    Malformed(String),
    /// No handler selects the resource.
    UnknownResource(ResourceName),
    /// The operator cannot answer reviews now.
    Unavailable(String),
    /// The operator failed to answer it.
    Internal(String),
}

impl Review {
    /// Reads a review whose objects are still text.
    ///
    /// # Errors
    /// Fails if an object is not JSON, or repeats a key: only [`Review::of_tree`] has a rule for that.
    pub(super) fn of_text(
        body: &Bytes,
        text: ReviewText<'_>,
    ) -> Result<Result<Self, ReviewError>, serde_json::Error> {
        let state = |text: Option<&str>| {
            text.map_or(Ok(None), |it| State::of_text(body.slice_ref(it.as_bytes())))
        };
        let states = (state(text.old_object)?, state(text.object)?);
        Ok(Review::of(states, &text.review, text.request))
    }

    /// Reads a review.
    ///
    /// # Errors
    /// Fails if it does not name the resource.
    pub(super) fn of_tree(mut review: Map<String, Value>) -> Result<Self, ReviewError> {
        let mut request = match review.shift_remove("request") {
            Some(Value::Object(request)) => Some(request),
            Some(_) | None => None,
        };
        let mut state = |name: &str| {
            let value = request.as_mut()?.get_mut(name).map(Value::take);
            value.and_then(State::of_tree)
        };
        let states = (state("oldObject"), state("object"));
        Review::of(states, &review, request)
    }

    fn of(
        (old, new): (Option<State>, Option<State>),
        review: &Map<String, Value>,
        request: Option<Map<String, Value>>,
    ) -> Result<Self, ReviewError> {
        let request = request.ok_or_else(|| malformed("the review has no field `request`"))?;
        let resource = ResourceName::of(&request)?;
        let field =
            |name: &str, default: &str| review.get(name).cloned().unwrap_or_else(|| default.into());
        Ok(Review {
            api_version: field("apiVersion", "admission.k8s.io/v1"),
            kind: field("kind", "AdmissionReview"),
            uid: request.get("uid").cloned().unwrap_or_else(|| "".into()),
            resource,
            request,
            old,
            new,
        })
    }

    /// Returns the request as handlers see it. Moves it out of the review, because objects are large.
    ///
    /// # Errors
    /// Fails if the user or both objects are missing.
    pub fn take_request(&mut self) -> Result<ReviewedRequest, ReviewError> {
        let mut request = std::mem::take(&mut self.request);
        let mut taken = |name: &str| {
            let value = request.get_mut(name).map(Value::take);
            value.filter(|it| !it.is_null())
        };
        let user_info = taken("userInfo")
            .ok_or_else(|| malformed("User info is missing from the admission request."))?;
        let (old, new) = (self.old.take(), self.new.take());
        let object = new.as_ref().or(old.as_ref()).map(|it| Arc::clone(&it.object));
        let object = object.ok_or_else(|| {
            malformed("Either old or new object is missing from the admission request.")
        })?;
        if !object.shared_body().root().is_map() {
            return Err(malformed("the object of the admission request is not a JSON object"));
        }
        let mut text = |name: &str| match taken(name) {
            Some(Value::String(text)) => Some(text),
            Some(_) | None => None,
        };
        Ok(ReviewedRequest {
            operation: text("operation"),
            subresource: text("subResource"),
            user_info: Arc::new(user_info),
            dry_run: taken("dryRun").as_ref().is_some_and(kopf_json::values::truthy),
            options: taken("options").map(Arc::new),
            diff: OnceLock::new(),
            object,
            old,
            new,
        })
    }
}

impl ResourceName {
    fn of(request: &Map<String, Value>) -> Result<Self, ReviewError> {
        let field = |name: &str| {
            let value = request.get("resource").and_then(|it| it.get(name)).and_then(Value::as_str);
            let problem = || malformed(format!("the request has no field `resource.{name}`"));
            value.map(str::to_owned).ok_or_else(problem)
        };
        let (group, version, plural) = (field("group")?, field("version")?, field("resource")?);
        Ok(ResourceName { group, version, plural })
    }

    /// Returns whether this is the name of a resource.
    pub fn names(&self, resource: &Resource) -> bool {
        let Resource { group, version, plural, .. } = resource;
        self.group == *group && self.version == *version && self.plural == *plural
    }
}

impl ReviewError {
    /// Returns the HTTP status of the response.
    pub fn status(&self) -> u16 {
        match self {
            ReviewError::Malformed(_) => 400,
            ReviewError::UnknownResource(_) => 404,
            ReviewError::Internal(_) => 500,
            ReviewError::Unavailable(_) => 503,
        }
    }
}

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReviewError::Malformed(text)
            | ReviewError::Unavailable(text)
            | ReviewError::Internal(text) => f.write_str(text),
            ReviewError::UnknownResource(resource) => {
                write!(f, "The specified resource has no handlers: {resource}")
            }
        }
    }
}

impl std::error::Error for ReviewError {}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.version)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

pub(super) fn malformed(text: impl Into<String>) -> ReviewError {
    ReviewError::Malformed(text.into())
}
