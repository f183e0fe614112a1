//! Checks whether an object, or a change of it, matches the filters of a handler.
//!
//! Filters are checked in a fixed order; the first that fails ends the check. Some are functions of scripts, which only the async shell can
//! call. So this module calls nothing: an open question is returned as an error; the shell calls the function, records its result in
//! [`Answers`], and checks again from the start. If the call fails, the handler is undecided.
//!
//! The contract is `tests/vectors/filters-matching.json`.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use kopf_json::values;
use serde_json::Value;

use super::cause::Change;
use crate::logic::{
    handlers::{
        function::{Function, ScriptId},
        handler::{Callback, Criterion, Filters, Handler},
    },
    object::{Object, fields, hidden},
};

/// A question to a filter callback.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The filter function to call.
    pub function: Function,
    /// `None`: about the whole object (`when`). `Some`: about one value; its inner `None` is an absent value.
    pub about: Option<Option<Value>>,
}

/// The answers collected so far for one cause of one object.
///
/// Callbacks see the kwargs of the cause, so answers for one cause do not apply to another.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    known: Vec<(Question, bool)>,
    /// Questions that have no answer, or none yet. They must not be asked again until then.
    failed: Vec<Question>,
    /// Scripts whose handlers are undecided, whatever their filters return.
    excluded: Arc<BTreeSet<ScriptId>>,
}

/// The input of the filters.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The current object. Filters on labels and annotations do not parse its body.
    pub object: &'a Object,
    /// The change, for change handlers.
    pub change: Option<&'a Change>,
}

/// The result of the filters, or the question to answer first. Without an answer, the result is undecided.
pub type Matched = Result<bool, Question>;

impl Answers {
    /// Returns an empty set of answers. Handlers of the excluded scripts are undecided, whatever their filters return.
    pub fn without(excluded: &Arc<BTreeSet<ScriptId>>) -> Self {
        Answers { excluded: Arc::clone(excluded), ..Answers::default() }
    }

    /// Records what the function of a question has returned.
    pub fn note(&mut self, question: Question, answer: bool) {
        self.failed.retain(|it| *it != question);
        self.known.push((question, answer));
    }

    /// Records that a question has no answer.
    pub fn note_failure(&mut self, question: Question) {
        self.failed.push(question);
    }

    /// Returns whether a question has no answer.
    pub fn has_failed(&self, question: &Question) -> bool {
        self.failed.contains(question)
    }

    /// Returns whether a handler is undecided, whatever its filters return.
    pub fn excludes(&self, handler: &Handler) -> bool {
        self.excluded.contains(&handler.function.script)
    }

    fn of(&self, question: Question) -> Matched {
        let known = self.known.iter().find(|(it, _)| *it == question).map(|(_, answer)| *answer);
        known.ok_or(question)
    }
}

/// Returns whether all filters pass, including the conditions on a change of the field.
pub fn matches(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Matched {
    Ok(passes_metadata(&handler.filters, subject, answers)?
        && passes_value(&handler.filters, subject, answers)?
        && passes_change(handler, subject, answers)?
        && passes_when(&handler.filters, answers)?)
}

/// Returns whether the object is in the handler's scope, whatever has changed in it.
pub fn prematches(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Matched {
    Ok(passes_metadata(&handler.filters, subject, answers)?
        && passes_value(&handler.filters, subject, answers)?
        && passes_when(&handler.filters, answers)?)
}

/// Returns whether labels and annotations pass. They are those of the current object, also for updates and deletions.
fn passes_metadata(filters: &Filters, subject: &Subject<'_>, answers: &Answers) -> Matched {
    let header = subject.object.header();
    for (criteria, actual) in
        [(&filters.labels, &header.labels), (&filters.annotations, &header.annotations)]
    {
        for (key, criterion) in criteria {
            if !passes(criterion, actual.get(key), answers)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns whether the value of the field passes. For a change, one side is enough: the new value is tested first.
fn passes_value(filters: &Filters, subject: &Subject<'_>, answers: &Answers) -> Matched {
    let Some(field) = &filters.field else { return Ok(true) };
    let values = match subject.change {
        Some(change) => vec![after(change, field), before(change, field)],
        None => vec![fields::get(subject.object.body(), field)],
    };
    let criterion = filters.value.as_ref().unwrap_or(&Criterion::Present);
    for value in values {
        if passes(criterion, value, answers)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn passes_change(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Matched {
    let (Some(field), Some(change)) = (&handler.filters.field, subject.change) else {
        return Ok(true);
    };
    let (old, new) = (before(change, field), after(change, field));
    // A null and an absent field differ here, although no diff shows that.
    let same = match (old, new) {
        (Some(old), Some(new)) => values::equal(old, new),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if handler.needs_change() && same {
        return Ok(false);
    }
    for (criterion, value) in [(&handler.filters.old, old), (&handler.filters.new, new)] {
        if let Some(criterion) = criterion
            && !passes(criterion, value, answers)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn passes_when(filters: &Filters, answers: &Answers) -> Matched {
    filters.when.as_ref().map_or(Ok(true), |it| ask(it, QuestionSubject::Object, answers))
}

fn before<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(change.old.as_ref()?, field)
}

fn after<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(&change.new, field)
}

fn passes(criterion: &Criterion, value: Option<&Value>, answers: &Answers) -> Matched {
    match criterion {
        Criterion::Equals(wanted) => Ok(value.is_some_and(|it| values::equal(it, wanted))),
        Criterion::Present => Ok(value.is_some()),
        Criterion::Absent => Ok(value.is_none()),
        Criterion::Callback(callback) => ask(callback, QuestionSubject::Value(value), answers),
    }
}

/// The subject of a question.
#[derive(Clone, Copy)]
enum QuestionSubject<'a> {
    Object,
    Value(Option<&'a Value>),
}

fn ask(callback: &Callback, about: QuestionSubject<'_>, answers: &Answers) -> Matched {
    match callback {
        Callback::Function(function) => {
            let about = match about {
                QuestionSubject::Object => None,
                QuestionSubject::Value(value) => Some(value.map(hidden::readable)),
            };
            answers.of(Question { function: function.clone(), about })
        }
        Callback::Not(inner) => Ok(!ask(inner, about, answers)?),
        Callback::All(inner) => Ok(!some(inner, false, about, answers)?),
        Callback::Any(inner) => some(inner, true, about, answers),
        Callback::None(inner) => Ok(!some(inner, true, about, answers)?),
    }
}

/// Returns whether one of the callbacks returns `wanted`; those after it are not called.
fn some(
    callbacks: &[Callback],
    wanted: bool,
    about: QuestionSubject<'_>,
    answers: &Answers,
) -> Matched {
    for callback in callbacks {
        if ask(callback, about, answers)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}
