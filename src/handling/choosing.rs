//! Calls the functions of selectors to find the resources that they select.
//!
//! `logic` matches selectors, but cannot call scripts: the functions are called before, once for each description of a resource, and their
//! results are stored.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, future, stream};
use tokio::time::{Instant, timeout_at};

use super::{asking::ANSWER_MAX, time_slice::TimeSlice};
use crate::call::Scripts;
use crate::logic::{
    change::registry::Registry,
    discovery::served,
    handlers::{function::Function, handler::Handler},
    object::resource::Resource,
};

/// Maximum number of concurrent calls of one function. In Rhai, each call takes a thread of the script.
const ASKED_MAX: usize = 4;

/// The results of the functions, by function and resource.
#[derive(Debug, Default)]
pub struct Choices(BTreeMap<Function, BTreeMap<Arc<Resource>, Choice>>);

#[derive(Clone, Debug)]
struct Choice {
    /// The resource as described in the call; a changed description needs another call.
    about: Arc<Resource>,
    answer: bool,
}

/// The failures of functions in one round of calls.
#[derive(Debug, Default)]
pub struct ChooserFailures(BTreeMap<Function, AskedFunction>);

#[derive(Debug, Default)]
struct AskedFunction {
    has_answered: bool,
    /// The resources for which the function has failed, by the error message.
    failures: BTreeMap<String, Vec<String>>,
}

impl Choices {
    /// Calls the functions for resources without a result. A function that fails does not select the resource. All calls of one function
    /// together are limited to [`ANSWER_MAX`]; it does not select the remaining resources.
    pub async fn ask(
        &mut self,
        scripts: &dyn Scripts,
        registry: &Registry,
        known: &[Resource],
    ) -> ChooserFailures {
        let known: Vec<_> = known.iter().cloned().map(Arc::new).collect();
        let mut open = BTreeMap::<&Function, Vec<Arc<Resource>>>::new();
        let mut slice = TimeSlice::start();
        for selector in registry.handlers().iter().filter_map(|it| it.selector.as_ref()) {
            slice.yield_if_over().await;
            let Some(function) = &selector.function else { continue };
            let choices = self.0.entry(function.clone()).or_default();
            let is_open = |it: &Arc<Resource>| {
                served::may_select(selector, it)
                    && choices.get(it).is_none_or(|known| !known.about.is_described_as(it))
            };
            let resources = known.iter().filter(|it| is_open(it)).cloned();
            open.entry(function).or_default().extend(resources);
        }
        let asked = open.into_iter().map(|(function, resources)| async move {
            (function, answers(scripts, function, resources).await)
        });
        let mut failures = ChooserFailures::default();
        for (function, answers) in future::join_all(asked).await {
            slice.yield_if_over().await;
            let choices = self.0.entry(function.clone()).or_default();
            for (about, answer) in answers {
                failures.note(function, &about, answer.as_ref().err());
                let resource = Arc::clone(&about);
                choices.insert(resource, Choice { about, answer: answer.unwrap_or(false) });
            }
        }
        failures
    }

    /// Copies the results of unedited functions from the previous generation.
    pub fn inherit(&mut self, before: &Registry, now: &Registry) {
        for handler in now.handlers() {
            let Some(function) = function_of(handler) else { continue };
            let is_same = |it: &&Arc<Handler>| it.selects_same(handler);
            let predecessor = before.handlers().iter().find(is_same).and_then(|it| function_of(it));
            if let Some(answered) = predecessor.and_then(|it| self.0.get(it)).cloned() {
                self.0.entry(function.clone()).or_insert(answered);
            }
        }
    }

    /// Drops the results of functions that these handlers do not use.
    pub fn keep(&mut self, registry: &Registry) {
        let asked = registry.handlers().iter().filter_map(|it| function_of(it));
        let asked = asked.collect::<Vec<_>>();
        self.0.retain(|it, _| asked.contains(&it));
    }

    /// Returns whether a function selects a resource.
    pub fn of(&self, function: &Function, resource: &Resource) -> bool {
        let choice = self.0.get(function).and_then(|it| it.get(resource));
        choice.is_some_and(|it| it.answer)
    }
}

/// Calls a function for resources, and returns the results in the same order. The errors are messages.
async fn answers(
    scripts: &dyn Scripts,
    function: &Function,
    resources: Vec<Arc<Resource>>,
) -> Vec<(Arc<Resource>, Result<bool, String>)> {
    let deadline = Instant::now() + ANSWER_MAX;
    let questions = resources.into_iter().map(|about| async move {
        let late = || Err(format!("no result within {} s", ANSWER_MAX.as_secs()));
        if Instant::now() >= deadline {
            return (about, late());
        }
        let asked = scripts.choose(function.clone(), Arc::clone(&about));
        let answer = match timeout_at(deadline, asked).await {
            Ok(answer) => answer.map_err(|raised| raised.message),
            Err(_elapsed) => late(),
        };
        (about, answer)
    });
    stream::iter(questions).buffered(ASKED_MAX).collect().await
}

impl ChooserFailures {
    fn note(&mut self, function: &Function, resource: &Resource, reason: Option<&String>) {
        let asked = self.0.entry(function.clone()).or_default();
        match reason {
            None => asked.has_answered = true,
            Some(reason) => {
                let resources = asked.failures.entry(reason.clone()).or_default();
                resources.push(resource.to_string());
            }
        }
    }

    /// Logs each reason once.
    pub fn log(&self) {
        for (function, asked) in &self.0 {
            for (reason, resources) in &asked.failures {
                tracing::error!(
                    target: "kopf.discovery",
                    "The resource selector {} failed for {}, which it does not select: {reason}",
                    name_of(function),
                    list(resources)
                );
            }
        }
    }

    /// Returns an error if a function of these handlers has failed for every resource, so that it selects nothing.
    pub fn hopeless(&self, registry: &Registry) -> Option<String> {
        let mut hopeless = self.0.iter().filter(|(_, asked)| !asked.has_answered);
        let (function, asked) = hopeless.next()?;
        let (reason, resources) = asked.failures.first_key_value()?;
        let (name, resources) = (name_of(function), list(resources));
        let mut handlers = registry.handlers().iter();
        let handler = handlers.find(|it| function_of(it) == Some(function));
        let place = handler.map(|it| format!("{}: ", it.location)).unwrap_or_default();
        Some(format!("{place}the resource selector {name} fails for {resources}: {reason}"))
    }
}

/// Formats one resource by its name, several by their number: a cluster has dozens of them.
fn list(resources: &[String]) -> String {
    match resources {
        [only] => only.clone(),
        [first, ..] => format!("{} resources ({first} and others)", resources.len()),
        [] => "nothing".into(),
    }
}

fn name_of(function: &Function) -> &str {
    if function.name.is_empty() { "a function" } else { &function.name }
}

fn function_of(handler: &Handler) -> Option<&Function> {
    handler.selector.as_ref()?.function.as_ref()
}

#[cfg(test)]
mod tests {
    use super::{ChooserFailures, Function, Registry, Resource};
    use crate::logic::handlers::function::ScriptId;

    fn resource(plural: &str) -> Resource {
        Resource { plural: plural.into(), version: "v1".into(), ..Resource::default() }
    }

    #[test]
    fn a_function_that_fails_for_every_resource_is_reported_once() {
        let function = Function::new(ScriptId(1), 1, "wanted");
        let mut failures = ChooserFailures::default();
        assert_eq!(failures.hopeless(&Registry::default()), None, "no function was called");
        failures.note(&function, &resource("pods"), Some(&"no idea".into()));
        let expected = "the resource selector wanted fails for pods.v1: no idea";
        assert_eq!(failures.hopeless(&Registry::default()).as_deref(), Some(expected));
        failures.note(&function, &resource("secrets"), Some(&"no idea".into()));
        let expected =
            "the resource selector wanted fails for 2 resources (pods.v1 and others): no idea";
        assert_eq!(failures.hopeless(&Registry::default()).as_deref(), Some(expected));
        failures.note(&function, &resource("nodes"), None);
        assert_eq!(failures.hopeless(&Registry::default()), None, "one call succeeded");
    }
}
