//! Calls the handlers for one review.
//!
//! Reviews are answered on every replica, also on standbys and while the operator is paused: no other process would answer them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::converter::{Converter, exceeds_limit, late};
use crate::call::{
    AdmissionCause, CallServices, Cause, LiveGeneration, Logger, LoggerKind, Memo, ObjectCause,
    ObjectDetail, Scripts, SharedPatch, Warnings,
};
use crate::handling::{
    asking::FilterCaller,
    run::{HandlerRunner, Try},
    time_slice::TimeSlice,
    turns::InTurns,
};
use crate::logic::{
    admission::{
        conversion::ConversionReview,
        reading::AnyReview,
        response::Decision,
        review::{ReviewError, ReviewedRequest},
    },
    change::{
        filters::{Answers, Subject},
        patch::{self, Patch, Transformation},
        selection::{self, AdmissionRequest, Selected},
    },
    handlers::{
        handler::{Handler, Kind},
        outcome::{CallEnd, Failure, LogLevel, Outcome},
    },
    object::{Header, resource::Resource},
    text::python_text,
};
use crate::ports::{BoxFuture, Clock, Leadership, ReviewRequest, Reviewer};
use crate::settings::ExecutionSettings;
use crate::telemetry::Metrics;

/// The log target of admission.
pub(super) const TARGET: &str = "kopf.admission";

/// The default timeout of API servers for a review.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// The timeout of API servers for a conversion.
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);
/// The divisor of the remaining time that yields the part reserved for the delivery of the response.
const RESERVE: u32 = 10;

/// A function that returns the memo of a known object.
pub type RecallMemo = Arc<dyn Fn(&Header) -> Option<Memo> + Send + Sync>;

/// The handlers that answer reviews, and the inputs of their calls.
#[derive(Clone)]
pub struct AdmissionHandlers {
    /// The generation of the handlers.
    pub live: Arc<LiveGeneration>,
    /// The default options of handlers.
    pub execution: ExecutionSettings,
    /// The resources that handlers select, each with its handlers.
    pub resources: Vec<(Arc<Resource>, Selected)>,
}

/// A reviewer that calls the handlers of one operator.
pub struct OperatorReviewer {
    /// The scripts whose handlers are called.
    pub scripts: Arc<dyn Scripts>,
    /// The clock for start times and limits.
    pub clock: Clock,
    /// The memo of the operator, which is the memo of objects that are unknown.
    pub memo: Memo,
    /// The memos of known objects.
    pub recall: RecallMemo,
    /// The metrics in which reviews are counted.
    pub metrics: Metrics,
    /// `None` until the operator is ready.
    pub serving: Mutex<Option<Arc<Serving>>>,
}

/// The handlers that answer reviews now.
pub struct Serving {
    handlers: AdmissionHandlers,
    services: Arc<CallServices>,
}

impl Reviewer for OperatorReviewer {
    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<Bytes, ReviewError>> {
        Box::pin(InTurns::new(Box::pin(async move {
            let answered = self.answer(&request).await;
            if let Err(error) = &answered {
                let id = request.handler.as_deref().unwrap_or_default();
                tracing::error!(target: TARGET, "Cannot respond to a review for the webhook '{id}': {error}");
            }
            answered
        })))
    }
}

impl OperatorReviewer {
    /// Sets the handlers that answer reviews from now on. Reviews in progress finish with the handlers that they started with.
    pub fn serve(&self, handlers: AdmissionHandlers) {
        let services = standalone(&handlers.live.services, self.clock);
        let next = Some(Arc::new(Serving { handlers, services }));
        // Dropped after the lock is released, because this may end a virtual machine.
        let _before = std::mem::replace(&mut *self.serving.lock(), next);
    }

    fn runner<'a>(&'a self, serving: &'a Serving) -> HandlerRunner<'a> {
        HandlerRunner {
            scripts: &*self.scripts,
            clock: self.clock,
            settings: &serving.handlers.execution,
            services: &serving.services,
        }
    }

    async fn answer(&self, delivered: &ReviewRequest) -> Result<Bytes, ReviewError> {
        let serving = self.serving.lock().clone();
        let serving = serving
            .ok_or_else(|| ReviewError::Unavailable("the operator is not ready yet".into()))?;
        let handlers = &serving.handlers;
        let mut review = match AnyReview::parse(&delivered.body)? {
            AnyReview::Admission(review) => review,
            AnyReview::Conversion(review) => {
                return self.convert(&serving, review, delivered.deadline).await;
            }
        };
        let served = handlers.resources.iter().find(|(it, _)| review.resource.names(it));
        let Some((resource, selected)) = served else {
            return Err(ReviewError::UnknownResource(review.resource));
        };
        let request = Arc::new(review.take_request()?);
        if let Some(id) = &delivered.handler
            && !selected.iter().any(|it| *it.id == **id)
        {
            tracing::warn!(target: TARGET, "No handler '{id}' of {resource}: the request is allowed.");
        }
        let runner = self.runner(&serving);
        let cause = AdmissionCause {
            request: Arc::clone(&request),
            client: delivered.client.clone(),
            warnings: Warnings::default(),
        };
        let detail = ObjectDetail::Admission(cause.clone());
        let (resource, object) = (Arc::clone(resource), Arc::clone(&request.object));
        let patch = SharedPatch::default();
        let reference = Arc::new(resource.reference_to(object.header()));
        let call = ReviewCalls {
            runner,
            deadline: deadline(delivered),
            cause: ObjectCause { resource, object, patch, detail },
            request: &request,
            memo: self.memo_of(&request),
            is_stopped: AtomicBool::new(false),
            logger: Logger::of_object(LoggerKind::Local, reference),
        };
        let begun = Instant::now();
        let id = delivered.handler.as_deref();
        let decision = call.decide(selected, id, &cause.warnings).await?;
        if let Some(id) = id.filter(|id| selected.iter().any(|it| *it.id == **id)) {
            self.metrics.reviewed(id, result(&decision, &call), begun.elapsed());
        }
        Ok(decision.answer(&review).into())
    }

    async fn convert(
        &self,
        serving: &Serving,
        review: ConversionReview,
        deadline: Option<Instant>,
    ) -> Result<Bytes, ReviewError> {
        let (runner, handlers) = (self.runner(serving), &serving.handlers);
        let usual = Instant::now() + CONVERSION_TIMEOUT;
        let deadline = before(deadline.unwrap_or(usual));
        let converter =
            Converter { runner, deadline, served: &handlers.resources, memo: &self.memo };
        let begun = Instant::now();
        let converted = converter.convert(&review).await;
        if let Some(crd) = review.objects.first().and_then(|it| converter.crd(it)) {
            let result = if converted.is_ok() { "converted" } else { "failed" };
            self.metrics.reviewed(&crd, result, begun.elapsed());
        }
        if let Err(why) = &converted {
            tracing::error!(target: TARGET, "A conversion to {} failed: {why}", review.version);
        }
        Ok(review.answer(converted).to_string().into())
    }

    /// Returns the memo of the object, or an empty one: a new object has no memory yet, and may never have one.
    fn memo_of(&self, request: &ReviewedRequest) -> Memo {
        let known = (request.operation.as_deref() != Some("CREATE"))
            .then(|| (self.recall)(request.object.header()))
            .flatten();
        known.unwrap_or_else(|| self.memo.detached())
    }
}

/// Returns the services without the leader election: standbys answer reviews, too.
fn standalone(services: &CallServices, clock: Clock) -> Arc<CallServices> {
    Arc::new(CallServices { leadership: Leadership::new(clock), ..services.clone() })
}

/// Returns when the response must be sent: before the client stops waiting.
fn deadline(delivered: &ReviewRequest) -> Instant {
    before(delivered.deadline.unwrap_or_else(|| Instant::now() + TIMEOUT_DEFAULT))
}

/// Returns a moment before the deadline of a client, so that the response arrives in time.
fn before(deadline: Instant) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    now + left.saturating_sub(left / RESERVE)
}

/// The calls for one review.
struct ReviewCalls<'a> {
    runner: HandlerRunner<'a>,
    deadline: Instant,
    cause: ObjectCause,
    request: &'a ReviewedRequest,
    memo: Memo,
    logger: Logger,
    /// Whether any handler was stopped at a limit.
    is_stopped: AtomicBool,
}

/// Returns the result of a review for the metrics.
fn result(decision: &Decision, call: &ReviewCalls<'_>) -> &'static str {
    match (call.is_stopped.load(Ordering::Relaxed), decision.is_allowed()) {
        (true, _) => "timeout",
        (false, true) => "allowed",
        (false, false) => "denied",
    }
}

impl ReviewCalls<'_> {
    async fn decide(
        &self,
        handlers: &Selected,
        id: Option<&str>,
        warnings: &Warnings,
    ) -> Result<Decision, ReviewError> {
        let (mut failures, mut slice) = (Vec::new(), TimeSlice::start());
        for handler in self.select(handlers, id).await? {
            slice.yield_if_over().await;
            let failure = self.run(&handler, warnings).await;
            failures.extend(failure);
            self.warn_of_patch(&handler);
        }
        let patch = self.cause.patch.take();
        let operations = self.operations(&patch).await?;
        Ok(Decision { failures, warnings: warnings.all(), operations })
    }

    async fn select(&self, handlers: &Selected, id: Option<&str>) -> Result<Selected, ReviewError> {
        let filter_caller = FilterCaller {
            scripts: self.runner.scripts,
            cause: &self.cause,
            memo: &self.memo,
            logger: &self.logger,
            services: self.runner.services,
        };
        let request = AdmissionRequest {
            kind: None,
            id,
            operation: self.request.operation.as_deref(),
            subresource: self.request.subresource.as_deref(),
        };
        let subject = Subject { object: &self.request.object, change: None };
        let mut answers = Answers::default();
        let selected = filter_caller.decide(&mut answers, |answers| {
            selection::admission(handlers, &request, &subject, answers)
        });
        let selected = timeout_at(self.deadline, selected).await;
        let late = |_elapsed| {
            ReviewError::Internal(
                "its filters did not return before the timeout of the API server".into(),
            )
        };
        selected.map_err(late)?.map_err(|it| ReviewError::Internal(it.to_string()))
    }

    /// Calls one handler. Returns the failure if the request must be denied.
    async fn run(&self, handler: &Arc<Handler>, warnings: &Warnings) -> Option<Failure> {
        let attempt = Try {
            handler: Arc::clone(handler),
            retries: 0,
            started: self.runner.clock.now(),
            cause: Cause::Object(self.cause.clone()),
            memo: self.memo.clone(),
            logger: self.logger.clone(),
        };
        let is_stopped = AtomicBool::new(false);
        let call = |invocation| async {
            let call = timeout_at(self.deadline, self.runner.scripts.call(invocation));
            let ended = call.await.unwrap_or_else(|_elapsed| CallEnd::Raised(late()));
            is_stopped.store(exceeds_limit(&ended), Ordering::Relaxed);
            ended
        };
        let Outcome { error, .. } = self.runner.run_with(attempt, None, call).await;
        let failure = error?;
        if !is_stopped.into_inner() && failure.class != "HandlerTimeoutError" {
            return Some(failure);
        }
        self.is_stopped.store(true, Ordering::Relaxed);
        let message = format!("the handler {} failed", python_text::quoted(&handler.id));
        if handler.admission.ignore_failures {
            // A full list of warnings is not a reason to deny.
            drop(warnings.add(&format!("{message}; the failure is ignored")));
            return None;
        }
        Some(Failure { message, ..failure })
    }

    fn warn_of_patch(&self, handler: &Handler) {
        let has_patch = self.cause.patch.peek().is_some_and(|it| !it.is_empty());
        if handler.kind == Kind::Validate && has_patch {
            let text = format!(
                "{handler} changes the object, which API servers reject: use kopf.on_mutate instead."
            );
            self.logger.log(LogLevel::Warning, &text);
        }
    }

    /// Returns the changes of the patch as operations.
    async fn operations(
        &self,
        patch: &Patch,
    ) -> Result<Vec<json_patch::PatchOperation>, ReviewError> {
        if patch.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.request.object.body();
        let mut body = Value::clone(before);
        patch::apply_merge(&mut body, &patch.merge);
        for transformation in &patch.transformations {
            body = self.transformed(body, transformation).await?;
        }
        Ok(patch::operations(before, &body))
    }

    async fn transformed(
        &self,
        mut body: Value,
        transformation: &Transformation,
    ) -> Result<Value, ReviewError> {
        match transformation {
            Transformation::BlockDeletion(finalizer) => patch::block_deletion(&mut body, finalizer),
            Transformation::AllowDeletion(finalizer) => patch::allow_deletion(&mut body, finalizer),
            Transformation::Condition(change) => change.apply(&mut body),
            Transformation::Scripted(function) => {
                let changed = self.runner.scripts.transform(function.clone(), body);
                let changed = timeout_at(self.deadline, changed).await;
                let changed = changed.unwrap_or_else(|_elapsed| Err(late()));
                return changed.map_err(|raised| {
                    let message = raised.message;
                    ReviewError::Internal(format!("a function of patch.fns failed: {message}"))
                });
            }
        }
        Ok(body)
    }
}
