//! Chooses which of the due handlers run in one cycle.
//!
//! The contract is `tests/vectors/lifecycles.json`. Before: `logic/change/selection.rs` and `progress/`. After: `handling/`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{function::Function, handler::Handler, progress::ProgressRecord};
use crate::logic::text::nearest::nearest;

/// A rule for the handlers of a cycle and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifecycle {
    /// The one with the fewest attempts so far, so that a failing handler does not block the others.
    #[default]
    Asap,
    /// The first one, in the order of declaration.
    OneByOne,
    /// All, one after another.
    AllAtOnce,
    /// All, in random order.
    Shuffled,
    /// One of them, chosen at random.
    Randomized,
}

/// The choice of the handlers that run in one cycle.
#[derive(Clone, Debug, PartialEq)]
pub enum Chooser {
    /// One of the built-in lifecycles.
    BuiltIn(Lifecycle),
    /// A function of a script: receives the due handlers and `ctx`, and returns those to run now.
    Custom(Function),
}

impl From<Lifecycle> for Chooser {
    fn from(lifecycle: Lifecycle) -> Self {
        Chooser::BuiltIn(lifecycle)
    }
}

impl fmt::Display for Chooser {
    /// Formats the name for log lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Chooser::BuiltIn(lifecycle) => lifecycle.name(),
            Chooser::Custom(function) if function.name.is_empty() => "function",
            Chooser::Custom(function) => &function.name,
        })
    }
}

impl Lifecycle {
    /// All lifecycles, by their names in scripts.
    pub const ALL: [(&'static str, Lifecycle); 5] = [
        ("asap", Lifecycle::Asap),
        ("one_by_one", Lifecycle::OneByOne),
        ("all_at_once", Lifecycle::AllAtOnce),
        ("shuffled", Lifecycle::Shuffled),
        ("randomized", Lifecycle::Randomized),
    ];

    /// Returns the lifecycle of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(it, _)| *it == name).map(|(_, lifecycle)| lifecycle)
    }

    /// Returns its name in scripts.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, it)| *it == self).map_or("asap", |(name, _)| name)
    }

    /// Picks from the due handlers, given in order. `random` returns a number below its argument.
    pub fn pick(
        self,
        handlers: &[Arc<Handler>],
        retries: impl Fn(&str) -> u64,
        random: &mut dyn FnMut(usize) -> usize,
    ) -> Vec<Arc<Handler>> {
        match self {
            Lifecycle::AllAtOnce => handlers.to_vec(),
            Lifecycle::OneByOne => handlers.first().cloned().into_iter().collect(),
            // Of equals, the minimum is the first.
            Lifecycle::Asap => {
                handlers.iter().min_by_key(|it| retries(&it.id)).cloned().into_iter().collect()
            }
            Lifecycle::Randomized if handlers.is_empty() => Vec::new(),
            Lifecycle::Randomized => {
                handlers.get(random(handlers.len())).cloned().into_iter().collect()
            }
            Lifecycle::Shuffled => {
                let mut shuffled = handlers.to_vec();
                for last in (1..shuffled.len()).rev() {
                    shuffled.swap(last, random(last + 1));
                }
                shuffled
            }
        }
    }
}

/// Returns a due handler in the form that a lifecycle function receives: its identity and its progress.
pub fn candidate(handler: &Handler, record: Option<&ProgressRecord>) -> Value {
    let fields = [
        ("id", Some((*handler.id).into())),
        ("kind", Some(handler.kind.name().into())),
        ("param", handler.param.clone()),
        ("retries", Some(record.map_or(0, |it| it.retries).into())),
        ("started", record.map(|it| it.started.to_string().into())),
        ("message", record.and_then(|it| it.message.clone()).map(Value::from)),
    ];
    let known = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(known.collect())
}

/// Returns the handlers that a lifecycle function chose: it returns one or a list, each by its record or by its id.
///
/// # Errors
/// Fails if it returned anything else, or nothing: then the cycle would be repeated endlessly.
pub fn chosen(given: &Value, due: &[Arc<Handler>]) -> Result<Vec<Arc<Handler>>, String> {
    let one = std::slice::from_ref(given);
    let items = match given {
        Value::Array(items) => items,
        Value::Null => &[][..],
        // A language may have one empty table for both lists and maps.
        Value::Object(fields) if fields.is_empty() => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => one,
    };
    let known: BTreeMap<&str, &Arc<Handler>> = due.iter().rev().map(|it| (&*it.id, it)).collect();
    let (mut chosen, mut seen) = (Vec::new(), BTreeSet::new());
    for item in items {
        let id = item.as_str().or_else(|| item.get("id")?.as_str());
        let handler = id.and_then(|it| known.get(it)).ok_or_else(|| {
            let meant = id.and_then(|id| nearest(id, known.keys().copied()));
            let hint = meant.map(|it| format!("; did you mean '{it}'?")).unwrap_or_default();
            format!("it returned {item}, which is not one of the due handlers{hint}")
        })?;
        if seen.insert(&*handler.id) {
            chosen.push(Arc::clone(handler));
        }
    }
    if chosen.is_empty() && !due.is_empty() {
        return Err("it returned none of the due handlers".into());
    }
    Ok(chosen)
}
