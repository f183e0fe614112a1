//! Selects the handlers that react to a cause, in the order of their declaration.
//!
//! The contract is `tests/vectors/handler-selection.json`. Before: `registry/` returns the handlers of a resource. After:
//! `logic/handlers/lifecycle.rs` chooses which of them run now.

use std::{collections::BTreeSet, sync::Arc};

use super::filters::{self, Answers, Question, Subject};
use crate::logic::handlers::handler::{Handler, Kind};

/// A question that must be answered before the selection is known.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// The handler of the filter.
    pub handler: Arc<Handler>,
    /// The question to its filter.
    pub question: Question,
}

/// Handlers of one resource, in order.
pub type Selected = Vec<Arc<Handler>>;

/// Selected handlers, and those that are undecided because a filter has no answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Handlers whose filters pass.
    pub selected: Selected,
    /// Handlers whose filters may pass.
    pub undecided: Selected,
}

/// The answer to whether a condition holds for any handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It holds for at least one.
    Yes,
    /// It holds for none.
    No,
    /// It holds for none of the decided handlers, but some are undecided.
    Unknown,
}

impl Certainty {
    /// Returns whether either holds.
    #[must_use]
    pub fn or(self, other: Certainty) -> Self {
        match (self, other) {
            (Certainty::Yes, _) | (_, Certainty::Yes) => Certainty::Yes,
            (Certainty::Unknown, _) | (_, Certainty::Unknown) => Certainty::Unknown,
            (Certainty::No, Certainty::No) => Certainty::No,
        }
    }
}

/// The parts of an admission request that select handlers.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmissionRequest<'a> {
    /// The kind of the handlers, if the path of the request contains it.
    pub kind: Option<Kind>,
    /// The id of the handler, if the path of the request contains it.
    pub id: Option<&'a str>,
    /// The operation, such as `CREATE`.
    pub operation: Option<&'a str>,
    /// The subresource, if the request concerns one.
    pub subresource: Option<&'a str>,
}

/// Selects event handlers for the object. The same rule selects index handlers.
pub fn watching(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selection, OpenQuestion> {
    select(handlers, answers, |it| filters::matches(it, subject, answers))
}

/// Selects daemons and timers for the object; `is_over` returns which of them must not start again.
pub fn spawning(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
    is_over: impl Fn(&Handler) -> bool,
) -> Result<Selection, OpenQuestion> {
    select(handlers, answers, |it| Ok(!is_over(it) && filters::matches(it, subject, answers)?))
}

/// Selects change handlers for a change, without undecided ones. The subject must have a change.
pub fn changing(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, OpenQuestion> {
    Ok(sort_changing(handlers, subject, answers)?.selected)
}

/// Selects change handlers for a change, and those that are undecided. The subject must have a change.
pub fn sort_changing(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selection, OpenQuestion> {
    let Some(change) = subject.change else { return Ok(Selection::default()) };
    let deleting = subject.object.header().deletion_timestamp.is_some();
    select(handlers, answers, |it| {
        let resumes = change.initial && (!deleting || it.deleted);
        Ok(it.reason().is_none_or(|reason| reason == change.reason)
            && (!it.is_initial() || resumes)
            && filters::matches(it, subject, answers)?)
    })
}

/// Selects admission handlers for a request.
pub fn admission(
    handlers: &[Arc<Handler>],
    request: &AdmissionRequest<'_>,
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Selected, OpenQuestion> {
    let is_selected =
        |it: &Handler| Ok(is_wanted(it, request) && filters::matches(it, subject, answers)?);
    Ok(select(handlers, answers, is_selected)?.selected)
}

/// Returns whether an object is in the scope of any change handler; other objects are not changed.
pub fn prematched(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Certainty, OpenQuestion> {
    any(handlers, answers, |it| filters::prematches(it, subject, answers))
}

/// Returns whether an object needs the finalizer for change handlers.
pub fn requires_finalizer(
    handlers: &[Arc<Handler>],
    subject: &Subject<'_>,
    answers: &Answers,
) -> Result<Certainty, OpenQuestion> {
    any(handlers, answers, |it| {
        Ok(it.requires_finalizer() && filters::prematches(it, subject, answers)?)
    })
}

/// Removes repeated declarations of one function under one id: it must run once.
pub(crate) fn without_repeats(handlers: impl IntoIterator<Item = Arc<Handler>>) -> Selected {
    let mut seen = BTreeSet::new();
    let is_new = |it: &Arc<Handler>| seen.insert((it.function.identity(), Arc::clone(&it.id)));
    handlers.into_iter().filter(is_new).collect()
}

fn is_wanted(handler: &Handler, request: &AdmissionRequest<'_>) -> bool {
    let options = &handler.admission;
    let subresource = match options.subresource.as_deref() {
        Some("*") => true,
        wanted => wanted == request.subresource,
    };
    // There is no object to change in a deletion, unless the handler is declared for exactly that.
    let changes_nothing = handler.kind == Kind::Mutate
        && request.operation == Some("DELETE")
        && options.operations != ["DELETE"];
    handler.kind != Kind::Convert
        && subresource
        && !changes_nothing
        && request.kind.is_none_or(|it| it == handler.kind)
        && request.id.is_none_or(|it| it == &*handler.id)
}

fn select(
    handlers: &[Arc<Handler>],
    answers: &Answers,
    is_selected: impl Fn(&Handler) -> filters::Matched,
) -> Result<Selection, OpenQuestion> {
    let (mut selected, mut undecided) = (Vec::new(), Vec::new());
    for handler in handlers {
        match verdict(handler, answers, &is_selected)? {
            Certainty::Yes => selected.push(Arc::clone(handler)),
            Certainty::No => {}
            Certainty::Unknown => undecided.push(Arc::clone(handler)),
        }
    }
    Ok(Selection { selected: without_repeats(selected), undecided: without_repeats(undecided) })
}

fn any(
    handlers: &[Arc<Handler>],
    answers: &Answers,
    is_so: impl Fn(&Handler) -> filters::Matched,
) -> Result<Certainty, OpenQuestion> {
    let mut sum = Certainty::No;
    for handler in handlers {
        sum = sum.or(verdict(handler, answers, &is_so)?);
        if sum == Certainty::Yes {
            break;
        }
    }
    Ok(sum)
}

/// Returns whether a handler is selected. An excluded handler is undecided only if its filters do not rule it out.
fn verdict(
    handler: &Arc<Handler>,
    answers: &Answers,
    is_so: impl Fn(&Handler) -> filters::Matched,
) -> Result<Certainty, OpenQuestion> {
    match is_so(handler) {
        Ok(false) => Ok(Certainty::No),
        Ok(true) if answers.excludes(handler) => Ok(Certainty::Unknown),
        Ok(true) => Ok(Certainty::Yes),
        Err(question) if answers.excludes(handler) || answers.has_failed(&question) => {
            Ok(Certainty::Unknown)
        }
        Err(question) => Err(OpenQuestion { handler: Arc::clone(handler), question }),
    }
}
