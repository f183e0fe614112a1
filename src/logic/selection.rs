//! Which handlers react to a cause, in the order of their declaration.
//!
//! The contract is `tests/vectors/handler-selection.json`. Before: `registry/` gives the handlers of a resource.
//! After: `lifecycle.rs` says which of them run now.

use std::sync::Arc;

use super::{
    filters::{self, Answers, Question, Subject},
    handler::{Handler, Kind},
};

/// A question that must be answered before the selection is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Whose filter it is.
    pub handler: Arc<Handler>,
    /// What to ask.
    pub question: Question,
}

/// Some handlers of one resource, in order.
pub type Selected = Vec<Arc<Handler>>;

/// What an admission request says about the handlers it wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmissionRequest<'a> {
    /// Only handlers of this kind, if the path of the request tells.
    pub kind: Option<Kind>,
    /// Only the handler of this id, if the path of the request tells.
    pub id: Option<&'a str>,
    /// Such as `CREATE`.
    pub operation: Option<&'a str>,
    /// The subresource, if it is about one.
    pub subresource: Option<&'a str>,
}

/// Event handlers that want the object. The same rule selects indexing handlers.
pub fn watching(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, Ask> {
    select(handlers, |it| filters::matches(it, subject, answers))
}

/// Daemons and timers that should run for the object; `is_over` tells which of them ended for good.
pub fn spawning(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
    is_over: impl Fn(&Handler) -> bool,
) -> Result<Selected, Ask> {
    select(handlers, |it| Ok(!is_over(it) && filters::matches(it, subject, answers)?))
}

/// Change handlers for a change. The subject must have one.
pub fn changing(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, Ask> {
    let Some(change) = subject.change else { return Ok(Vec::new()) };
    let deleting = subject.object.header().deletion_timestamp.is_some();
    select(handlers, |it| {
        let resumes = change.initial && (!deleting || it.deleted);
        Ok(it.reason().is_none_or(|reason| reason == change.reason)
            && (!it.is_initial() || resumes)
            && filters::matches(it, subject, answers)?)
    })
}

/// Admission handlers that must answer a request.
pub fn admission(
    handlers: &[Arc<Handler>],
    request: &AdmissionRequest<'_>,
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, Ask> {
    select(handlers, |it| Ok(is_wanted(it, request) && filters::matches(it, subject, answers)?))
}

/// Whether an object is in the scope of any change handler; objects of nobody are left alone.
pub fn prematched(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<bool, Ask> {
    any(handlers, |it| filters::prematches(it, subject, answers))
}

/// Whether an object must not go before change handlers had their say.
pub fn requires_finalizer(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<bool, Ask> {
    any(handlers, |it| Ok(it.requires_finalizer() && filters::prematches(it, subject, answers)?))
}

/// Drops repeated declarations of one function under one id: it must run once.
pub(crate) fn without_repeats(handlers: impl IntoIterator<Item = Arc<Handler>>) -> Selected {
    let mut kept: Selected = Vec::new();
    for handler in handlers {
        let is_same = |it: &Arc<Handler>| it.id == handler.id && it.function == handler.function;
        if !kept.iter().any(is_same) {
            kept.push(handler);
        }
    }
    kept
}

fn is_wanted(handler: &Handler, request: &AdmissionRequest<'_>) -> bool {
    let options = &handler.admission;
    let subresource = match options.subresource.as_deref() {
        Some("*") => true,
        wanted => wanted == request.subresource,
    };
    // There is no object to change in a deletion, unless the handler says that it knows.
    let changes_nothing = handler.kind == Kind::Mutate
        && request.operation == Some("DELETE")
        && options.operations != ["DELETE"];
    subresource
        && !changes_nothing
        && request.kind.is_none_or(|it| it == handler.kind)
        && request.id.is_none_or(|it| it == &*handler.id)
}

fn select(
    handlers: &[Arc<Handler>],
    is_selected: impl Fn(&Handler) -> filters::Verdict,
) -> Result<Selected, Ask> {
    let mut selected = Vec::new();
    for handler in handlers {
        if is_selected(handler).map_err(|question| ask(handler, question))? {
            selected.push(Arc::clone(handler));
        }
    }
    Ok(without_repeats(selected))
}

fn any(
    handlers: &[Arc<Handler>],
    is_so: impl Fn(&Handler) -> filters::Verdict,
) -> Result<bool, Ask> {
    for handler in handlers {
        if is_so(handler).map_err(|question| ask(handler, question))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn ask(handler: &Arc<Handler>, question: Question) -> Ask {
    Ask { handler: Arc::clone(handler), question }
}
