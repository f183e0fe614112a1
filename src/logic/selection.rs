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

/// Handlers that are selected, and those of which nobody knows, as there is no answer of their filters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted {
    /// Those that want it.
    pub selected: Selected,
    /// Those that may want it.
    pub undecided: Selected,
}

/// Whether something is so for any handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// For one it is.
    Yes,
    /// For none.
    No,
    /// For none that is known of, but for some there is no answer of their filters.
    Unknown,
}

impl Certainty {
    /// Whether either is so.
    #[must_use]
    pub fn or(self, other: Certainty) -> Self {
        match (self, other) {
            (Certainty::Yes, _) | (_, Certainty::Yes) => Certainty::Yes,
            (Certainty::Unknown, _) | (_, Certainty::Unknown) => Certainty::Unknown,
            (Certainty::No, Certainty::No) => Certainty::No,
        }
    }
}

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
) -> Result<Sorted, Ask> {
    select(handlers, answers, |it| filters::matches(it, subject, answers))
}

/// Daemons and timers that should run for the object; `is_over` tells which of them ended for good.
pub fn spawning(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
    is_over: impl Fn(&Handler) -> bool,
) -> Result<Sorted, Ask> {
    select(handlers, answers, |it| Ok(!is_over(it) && filters::matches(it, subject, answers)?))
}

/// Change handlers for a change, without those that are undecided. The subject must have one.
pub fn changing(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, Ask> {
    Ok(sort_changing(handlers, subject, answers)?.selected)
}

/// Change handlers for a change, and those that are undecided. The subject must have one.
pub fn sort_changing(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Sorted, Ask> {
    let Some(change) = subject.change else { return Ok(Sorted::default()) };
    let deleting = subject.object.header().deletion_timestamp.is_some();
    select(handlers, answers, |it| {
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
    let is_selected =
        |it: &Handler| Ok(is_wanted(it, request) && filters::matches(it, subject, answers)?);
    Ok(select(handlers, answers, is_selected)?.selected)
}

/// Whether an object is in the scope of any change handler; objects of nobody are left alone.
pub fn prematched(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Certainty, Ask> {
    any(handlers, answers, |it| filters::prematches(it, subject, answers))
}

/// Whether an object must not go before change handlers had their say.
pub fn requires_finalizer(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Certainty, Ask> {
    any(handlers, answers, |it| {
        Ok(it.requires_finalizer() && filters::prematches(it, subject, answers)?)
    })
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
    answers: &Answers,
    is_selected: impl Fn(&Handler) -> filters::Verdict,
) -> Result<Sorted, Ask> {
    let (mut selected, mut undecided) = (Vec::new(), Vec::new());
    for handler in handlers {
        match verdict(handler, answers, &is_selected)? {
            Certainty::Yes => selected.push(Arc::clone(handler)),
            Certainty::No => {}
            Certainty::Unknown => undecided.push(Arc::clone(handler)),
        }
    }
    Ok(Sorted { selected: without_repeats(selected), undecided: without_repeats(undecided) })
}

fn any(
    handlers: &[Arc<Handler>],
    answers: &Answers,
    is_so: impl Fn(&Handler) -> filters::Verdict,
) -> Result<Certainty, Ask> {
    let mut sum = Certainty::No;
    for handler in handlers {
        sum = sum.or(verdict(handler, answers, &is_so)?);
        if sum == Certainty::Yes {
            break;
        }
    }
    Ok(sum)
}

/// A handler that is excluded is undecided only if the rest of what is asked does not rule it out.
fn verdict(
    handler: &Arc<Handler>,
    answers: &Answers,
    is_so: impl Fn(&Handler) -> filters::Verdict,
) -> Result<Certainty, Ask> {
    match is_so(handler) {
        Ok(false) => Ok(Certainty::No),
        Ok(true) if answers.excludes(handler) => Ok(Certainty::Unknown),
        Ok(true) => Ok(Certainty::Yes),
        Err(question) if answers.excludes(handler) || answers.has_failed(&question) => {
            Ok(Certainty::Unknown)
        }
        Err(question) => Err(ask(handler, question)),
    }
}

fn ask(handler: &Arc<Handler>, question: Question) -> Ask {
    Ask { handler: Arc::clone(handler), question }
}
