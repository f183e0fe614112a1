//! Asks the functions of selectors which resources they want.
//!
//! Selectors are matched in `logic`, which cannot call anybody: the functions are asked beforehand, once for each resource as
//! it is described, and the answers are kept.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::logic::{
    function::Function, handler::Handler, registry::Registry, resource::Resource, served,
};
use crate::ports::Scripts;

/// How long a function may think about one resource. It has nothing to wait for.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What the functions have answered.
#[derive(Debug, Default)]
pub struct Choices(BTreeMap<Function, BTreeMap<Resource, Choice>>);

#[derive(Clone, Debug)]
struct Choice {
    /// As it was described when the function was asked; another description is another question.
    about: Arc<Resource>,
    answer: bool,
}

impl Choices {
    /// Asks what is not known yet. A function that fails does not want the resource; that is told, once.
    pub async fn ask(&mut self, scripts: &dyn Scripts, registry: &Registry, known: &[Resource]) {
        for (function, resource) in served::questions(registry, known) {
            let choices = self.0.entry(function.clone()).or_default();
            if choices.get(resource).is_some_and(|it| it.about.is_described_as(resource)) {
                continue;
            }
            let about = Arc::new(resource.clone());
            let asked = scripts.choose(function.clone(), Arc::clone(&about));
            let answer = match timeout(ANSWER_MAX, asked).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(raised)) => refuse(function, resource, &raised.message),
                Err(_elapsed) => {
                    let text = format!("no answer within {} s", ANSWER_MAX.as_secs());
                    refuse(function, resource, &text)
                }
            };
            choices.insert(resource.clone(), Choice { about, answer });
        }
    }

    /// Functions of another generation of which nothing was edited have answered already, as their predecessors.
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

    /// Forgets what functions have answered that these handlers do not ask.
    pub fn keep(&mut self, registry: &Registry) {
        let asked = registry.handlers().iter().filter_map(|it| function_of(it));
        let asked = asked.collect::<Vec<_>>();
        self.0.retain(|it, _| asked.contains(&it));
    }

    /// Whether a function wants a resource.
    pub fn of(&self, function: &Function, resource: &Resource) -> bool {
        let choice = self.0.get(function).and_then(|it| it.get(resource));
        choice.is_some_and(|it| it.answer)
    }
}

fn function_of(handler: &Handler) -> Option<&Function> {
    handler.selector.as_ref()?.function.as_ref()
}

fn refuse(function: &Function, resource: &Resource, reason: &str) -> bool {
    let name = if function.name.is_empty() { "a function" } else { &*function.name };
    tracing::error!(
        target: "kopf.observation",
        "The resource selector {name} has failed for {resource}, which it will not serve: {reason}"
    );
    false
}
