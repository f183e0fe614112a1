//! Checks whether an object, or a change of it, matches the filters of a handler.
//!
//! Filters are checked in a fixed order; the first that fails ends the check. Some are functions of scripts, which only the async shell can
//! call. So this module calls nothing: an open question is returned as an error; the shell calls the function, records its result in
//! [`Answers`], and checks again from the start. If the call fails, the handler is undecided.
//!
//! The contract is `tests/vectors/filters-matching.json`.

#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
use crate::settings::FieldPath;

/// A question to a filter callback.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The filter function to call.
    pub function: Function,
    /// `None`: about the whole object (`when`). `Some`: about one value; its inner `None` is an absent value.
    pub about: Option<Option<Value>>,
    /// Where the value is from; its answer is kept by this, because values can be large.
    pub place: Box<Place>,
}

/// The place of a value, within one cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The whole object.
    Object,
    /// A label.
    Label(String),
    /// An annotation.
    Annotation(String),
    /// A field of the object, after the change if there is one.
    After(FieldPath),
    /// A field before the change.
    Before(FieldPath),
}

/// The answers collected so far for one cause of one object.
///
/// Callbacks see the kwargs of the cause, so answers for one cause do not apply to another.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    known: BTreeMap<AnswerKey, bool>,
    /// Questions that have no answer, or none yet. They must not be asked again until then.
    failed: BTreeSet<AnswerKey>,
    /// Whether fields are the same before and after the change. Many handlers may ask for one field, and fields can be large.
    unchanged: RefCell<BTreeMap<FieldPath, bool>>,
    /// Scripts whose handlers are undecided, whatever their filters return.
    excluded: Arc<BTreeSet<ScriptId>>,
}

/// The function of a question, and the place of its value.
type AnswerKey = ((ScriptId, u32), Place);

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
    pub fn note(&mut self, question: &Question, answer: bool) {
        let key = question.key();
        self.failed.remove(&key);
        self.known.insert(key, answer);
    }

    /// Records that a question has no answer.
    pub fn note_failure(&mut self, question: &Question) {
        self.failed.insert(question.key());
    }

    /// Returns whether a question has no answer.
    pub fn has_failed(&self, question: &Question) -> bool {
        self.failed.contains(&question.key())
    }

    /// Returns whether a handler is undecided, whatever its filters return.
    pub fn excludes(&self, handler: &Handler) -> bool {
        self.excluded.contains(&handler.function.script)
    }

    /// Returns the answer of a function about a value, which is copied only if there is none.
    fn of(&self, function: &Function, value: &PlacedValue<'_>) -> Matched {
        let key = (function.identity(), value.place.clone());
        self.known.get(&key).copied().ok_or_else(|| Question {
            function: function.clone(),
            about: (key.1 != Place::Object).then(|| value.value.map(hidden::readable)),
            place: Box::new(key.1),
        })
    }

    /// Returns whether a field is the same before and after the change.
    fn is_unchanged(&self, change: &Change, field: &FieldPath) -> bool {
        let mut known = self.unchanged.borrow_mut();
        if let Some(known) = known.get(field) {
            return *known;
        }
        // A null and an absent field differ here, although no diff shows that.
        let same = match (before(change, field), after(change, field)) {
            (Some(old), Some(new)) => values::equal(old, new),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        known.insert(field.clone(), same);
        same
    }
}

impl Question {
    fn key(&self) -> AnswerKey {
        (self.function.identity(), Place::clone(&self.place))
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
    let labels = filters.labels.iter().map(|it| (it, &header.labels, Place::Label as fn(_) -> _));
    let annotations =
        filters.annotations.iter().map(|it| (it, &header.annotations, Place::Annotation as _));
    for ((key, criterion), actual, place) in labels.chain(annotations) {
        if !passes(criterion, actual.get(key), || place(key.clone()), answers)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the value of the field passes. For a change, one side is enough: the new value is tested first.
fn passes_value(filters: &Filters, subject: &Subject<'_>, answers: &Answers) -> Matched {
    let Some(field) = &filters.field else { return Ok(true) };
    let criterion = filters.value.as_ref().unwrap_or(&Criterion::Present);
    let now = match subject.change {
        Some(change) => after(change, field),
        None => fields::get(subject.object.body(), field),
    };
    if passes(criterion, now, || Place::After(field.clone()), answers)? {
        return Ok(true);
    }
    let Some(change) = subject.change.filter(|it| !answers.is_unchanged(it, field)) else {
        return Ok(false);
    };
    passes(criterion, before(change, field), || Place::Before(field.clone()), answers)
}

fn passes_change(handler: &Handler, subject: &Subject<'_>, answers: &Answers) -> Matched {
    let (Some(field), Some(change)) = (&handler.filters.field, subject.change) else {
        return Ok(true);
    };
    if handler.needs_change() && answers.is_unchanged(change, field) {
        return Ok(false);
    }
    let Filters { old, new, .. } = &handler.filters;
    if let Some(old) = old
        && !passes(old, before(change, field), || Place::Before(field.clone()), answers)?
    {
        return Ok(false);
    }
    new.as_ref().map_or(Ok(true), |new| {
        passes(new, after(change, field), || Place::After(field.clone()), answers)
    })
}

fn passes_when(filters: &Filters, answers: &Answers) -> Matched {
    let object = PlacedValue { place: Place::Object, value: None };
    filters.when.as_ref().map_or(Ok(true), |it| ask(it, &object, answers))
}

fn before<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(change.old.as_ref()?, field)
}

fn after<'a>(change: &'a Change, field: &[String]) -> Option<&'a Value> {
    fields::get(&change.new, field)
}

fn passes(
    criterion: &Criterion,
    value: Option<&Value>,
    place: impl FnOnce() -> Place,
    answers: &Answers,
) -> Matched {
    match criterion {
        Criterion::Equals(wanted) => Ok(value.is_some_and(|it| values::equal(it, wanted))),
        Criterion::Present => Ok(value.is_some()),
        Criterion::Absent => Ok(value.is_none()),
        Criterion::Callback(callback) => {
            ask(callback, &PlacedValue { place: place(), value }, answers)
        }
    }
}

/// A value that a function is asked about, and its place; no value for the whole object, and if there is none.
struct PlacedValue<'a> {
    place: Place,
    value: Option<&'a Value>,
}

fn ask(callback: &Callback, about: &PlacedValue<'_>, answers: &Answers) -> Matched {
    match callback {
        Callback::Function(function) => answers.of(function, about),
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
    about: &PlacedValue<'_>,
    answers: &Answers,
) -> Matched {
    for callback in callbacks {
        if ask(callback, about, answers)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}
