//! Converts the objects of one review, one after the other, each by the shortest chain of handlers.
//!
//! Like admission reviews, these are answered on every replica, and before the operator lists anything: its own lists may need them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::call::{Cause, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, SharedPatch};
use crate::handling::run::{HandlerRunner, Try};
use crate::logic::{
    admission::conversion::{self, ConversionReview},
    change::selection::Selected,
    handlers::{
        handler::{Conversion, Handler},
        outcome::{CallEnd, Failure, Raised, RaisedKind},
    },
    object::{Object, resource::Resource},
    text::python_text,
};

/// The calls for one review.
pub(super) struct Converter<'a> {
    pub(super) runner: HandlerRunner<'a>,
    pub(super) deadline: Instant,
    /// The resources, each with its handlers.
    pub(super) served: &'a [(Arc<Resource>, Selected)],
    pub(super) memo: &'a Memo,
}

/// A handler, its versions, and the resource as its calls see it.
type ConversionStep = (Arc<Handler>, Conversion, Arc<Resource>);

impl Converter<'_> {
    /// Converts all objects. The whole review fails if one of them fails.
    pub(super) async fn convert(&self, review: &ConversionReview) -> Result<Vec<Value>, String> {
        let mut chains: BTreeMap<(&str, &str), Vec<ConversionStep>> = BTreeMap::new();
        let mut converted = Vec::with_capacity(review.objects.len());
        for original in &review.objects {
            let from = conversion::version_of(original);
            let kind = original.get("kind").and_then(Value::as_str).unwrap_or_default();
            let chain = match chains.entry((kind, from)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.chain(original, &review.version)?),
            };
            let mut object = original.clone();
            for (handler, versions, resource) in &*chain {
                let next = self.call(handler, resource, &object).await;
                let next = next.and_then(|it| conversion::completed(&object, it, versions));
                object = next.map_err(|why| {
                    let (id, name) =
                        (python_text::quoted(&handler.id), conversion::name_of(original));
                    let Conversion { from, to } = versions;
                    format!("the handler {id} failed to convert {name} from {from} to {to}: {why}")
                })?;
            }
            converted.push(object);
        }
        Ok(converted)
    }

    /// Returns the name of the CRD of an object, if its objects are converted.
    pub(super) fn crd(&self, object: &Value) -> Option<String> {
        let (resource, _) = conversion::handlers_of(self.served, object)?;
        Some(format!("{}.{}", resource.plural, resource.group))
    }

    fn chain(&self, object: &Value, to: &str) -> Result<Vec<ConversionStep>, String> {
        let (from, name) = (conversion::version_of(object), conversion::name_of(object));
        let missing =
            || format!("no chain of on_convert handlers converts {name} from {from} to {to}");
        let served = conversion::handlers_of(self.served, object);
        let (resource, handlers) = served.ok_or_else(missing)?;
        let chain = conversion::chain(handlers, from, to).ok_or_else(missing)?;
        let step = |handler: Arc<Handler>| {
            let versions = handler.admission.conversion.clone()?;
            let version = versions.from.clone();
            let resource = Resource { version, ..Resource::clone(resource) };
            Some((handler, versions, Arc::new(resource)))
        };
        Ok(chain.into_iter().filter_map(step).collect())
    }

    /// Calls one handler. Successful calls are not logged: lists have many objects.
    async fn call(
        &self,
        handler: &Arc<Handler>,
        resource: &Arc<Resource>,
        object: &Value,
    ) -> Result<Option<Value>, String> {
        let object = Arc::new(Object::from_value(object.clone()));
        let reference = Arc::new(resource.reference_to(object.header()));
        let patch = SharedPatch::default();
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: 0,
            started: self.runner.clock.now(),
            cause: Cause::Object(ObjectCause {
                resource: Arc::clone(resource),
                object,
                patch: Arc::clone(&patch),
                detail: ObjectDetail::Conversion,
            }),
            memo: self.memo.detached(),
            logger: Logger::of_object(LoggerKind::Local, reference),
        };
        let begun = self.runner.begin(attempt, None).map_err(|it| message(it.error))?;
        let call = self.runner.scripts.call(Arc::clone(&begun.invocation));
        let ended = timeout_at(self.deadline, call).await;
        let mut ended = ended.unwrap_or_else(|_elapsed| CallEnd::Raised(late()));
        if !patch.take().is_empty() {
            let why = "it changes ctx.patch or ctx.conditions: return the converted object instead";
            ended = CallEnd::Raised(Raised::of_host(why));
        }
        match ended {
            CallEnd::Returned(object) => Ok(object),
            CallEnd::Keyed(_) => Ok(None),
            ended @ CallEnd::Raised(_) => {
                let is_stopped = exceeds_limit(&ended);
                let outcome = self.runner.end(&begun, Some(ended));
                Err(if is_stopped {
                    "it exceeded a limit and was stopped; see the log of the operator".to_owned()
                } else {
                    message(outcome.error)
                })
            }
        }
    }
}

fn message(failure: Option<Failure>) -> String {
    failure.map(|it| it.described()).unwrap_or_default()
}

/// Returns whether the call exceeded a limit of the operator: it was ended at one, or its error names the setting. Such errors are
/// about the operator, not about the object, so their details are only in the log.
pub(super) fn exceeds_limit(ended: &CallEnd) -> bool {
    let CallEnd::Raised(raised) = ended else { return false };
    match raised.kind {
        RaisedKind::Aborted(_) => true,
        RaisedKind::Arbitrary(_) => raised.message.contains("(settings.sandbox."),
        RaisedKind::Temporary(_)
        | RaisedKind::Permanent
        | RaisedKind::Admission(_)
        | RaisedKind::Unfinished(_) => false,
    }
}

/// Returns the error of a call that has exceeded the deadline.
pub(super) fn late() -> Raised {
    let message = "it did not return before the timeout of the API server".to_owned();
    Raised { kind: RaisedKind::Aborted(None), message, trace: None }
}
