//! Does a handler want this object, or this change of it?
//!
//! Criteria are checked in a fixed order and stop at the first that fails. Some are functions of scripts, which only the async
//! shell can call. So nothing is called here: an unanswered question comes back as an error; the shell asks it, notes the
//! answer in [`Answers`], and checks again from the start. What cannot be answered leaves its handler undecided.
//!
//! The contract is `tests/vectors/filters-matching.json`.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    cause::Change,
    fields,
    function::{Function, ScriptId},
    handler::{Callback, Criterion, Filters, Handler},
    json,
    object::Object,
};

/// What a filter callback is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The callback.
    pub function: Function,
    /// `None`: about the whole object (`when`). `Some`: about one value; its inner `None` is an absent one.
    pub about: Option<Option<Value>>,
}

/// The answers collected so far about one cause of one object.
///
/// Callbacks see the kwargs of the cause, so answers of one cause say nothing about another.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    known: Vec<(Question, bool)>,
    /// Questions without an answer, or without one yet. They must not be asked again meanwhile.
    failed: Vec<Question>,
    /// Scripts whose handlers are undecided, whatever their filters say.
    excluded: Arc<BTreeSet<ScriptId>>,
}

/// What the filters look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The object as it is. Criteria on labels and annotations do not parse its body.
    pub object: &'a Object,
    /// What happened to it, for change handlers.
    pub change: Option<&'a Change>,
}

/// Whether something passes, or what must be asked to know. If there is no answer to that, nobody knows.
pub type Verdict = Result<bool, Question>;

impl Answers {
    /// No answers yet. Handlers of these scripts are undecided, whatever their filters say.
    pub fn without(excluded: &Arc<BTreeSet<ScriptId>>) -> Self {
        Answers { excluded: Arc::clone(excluded), ..Answers::default() }
    }

    /// Notes an answer.
    pub fn note(&mut self, question: Question, answer: bool) {
        self.failed.retain(|it| *it != question);
        self.known.push((question, answer));
    }

    /// Notes that there is no answer.
    pub fn note_failure(&mut self, question: Question) {
        self.failed.push(question);
    }

    /// Whether there is no answer to a question.
    pub fn has_failed(&self, question: &Question) -> bool {
        self.failed.contains(question)
    }

    /// Whether a handler is undecided, whatever its filters say.
    pub fn excludes(&self, handler: &Handler) -> bool {
        self.excluded.contains(&handler.function.script)
    }

    fn of(&self, question: Question) -> Verdict {
        let known = self.known.iter().find(|(it, _)| *it == question).map(|(_, answer)| *answer);
        known.ok_or(question)
    }
}

/// Whether all filters pass, the demands on a change of the field included.
pub fn matches(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Verdict {
    Ok(passes_metadata(&handler.filters, subject, answers)?
        && passes_value(&handler.filters, subject, answers)?
        && passes_change(handler, subject, answers)?
        && passes_when(&handler.filters, answers)?)
}

/// Whether the object is in the handler's scope at all, whatever has changed in it.
pub fn prematches(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Verdict {
    Ok(passes_metadata(&handler.filters, subject, answers)?
        && passes_value(&handler.filters, subject, answers)?
        && passes_when(&handler.filters, answers)?)
}

/// These look at the object as it is now, also for updates and deletions.
fn passes_metadata(filters: &Filters, subject: &Subject<'_>, answers: &Answers) -> Verdict {
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

/// Of a change, it is enough that one side of it passes: the new one is asked first.
fn passes_value(filters: &Filters, subject: &Subject<'_>, answers: &Answers) -> Verdict {
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

fn passes_change(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Verdict {
    let (Some(field), Some(change)) = (&handler.filters.field, subject.change) else {
        return Ok(true);
    };
    let (old, new) = (before(change, field), after(change, field));
    // A null and an absent field differ here, although no diff shows that.
    let same = match (old, new) {
        (Some(old), Some(new)) => json::equal(old, new),
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

fn passes_when(filters: &Filters, answers: &Answers) -> Verdict {
    filters.when.as_ref().map_or(Ok(true), |it| ask(it, About::Object, answers))
}

fn before<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(change.old.as_ref()?, field)
}

fn after<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(&change.new, field)
}

fn passes(criterion: &Criterion, value: Option<&Value>, answers: &Answers) -> Verdict {
    match criterion {
        Criterion::Equals(wanted) => Ok(value.is_some_and(|it| json::equal(it, wanted))),
        Criterion::Present => Ok(value.is_some()),
        Criterion::Absent => Ok(value.is_none()),
        Criterion::Callback(callback) => ask(callback, About::Value(value), answers),
    }
}

/// What a question is about.
#[derive(Clone, Copy)]
enum About<'a> {
    Object,
    Value(Option<&'a Value>),
}

fn ask(callback: &Callback, about: About<'_>, answers: &Answers) -> Verdict {
    match callback {
        Callback::Function(function) => {
            let about = match about {
                About::Object => None,
                About::Value(value) => Some(value.cloned()),
            };
            answers.of(Question { function: function.clone(), about })
        }
        Callback::Not(inner) => Ok(!ask(inner, about, answers)?),
        Callback::All(inner) => Ok(!some(inner, false, about, answers)?),
        Callback::Any(inner) => some(inner, true, about, answers),
        Callback::None(inner) => Ok(!some(inner, true, about, answers)?),
    }
}

/// Whether one of the callbacks gives this answer; the ones after it are not asked.
fn some(callbacks: &[Callback], wanted: bool, about: About<'_>, answers: &Answers) -> Verdict {
    for callback in callbacks {
        if ask(callback, about, answers)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}
