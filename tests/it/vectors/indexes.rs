//! The suite of the tables: events of objects are passed to the indexer, and after each of them the tables are compared.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use kopf::{
    call::{
        CallServices, Indexes, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, SharedPatch,
    },
    features::indexes::Indexer,
    handling::{asking::FilterRetries, run::HandlerRunner},
    logic::{
        background::indexing::{IndexFailures, Owner},
        handlers::{declare::declare, handler::Handler, outcome::CallEnd, progress::format_stamp},
        object::Object,
    },
    ports::Clock,
    settings::Settings,
    testing::{BASE, NativeScripts, run_paused},
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Vector, catalogue, run, same};

#[test]
fn indexing() {
    run("indexing", |vector| run_paused(check(vector)));
}

async fn check(vector: &Vector) -> Result<(), String> {
    let mut table = Table::new(&vector.input);
    let steps = vector.input["steps"].as_array().into_iter().flatten();
    let expected = vector.expected.as_array().cloned().unwrap_or_default();
    for (place, (step, expected)) in steps.zip(&expected).enumerate() {
        let told = table.step(step).await;
        same(&format!("step {place}"), &told, &arranged(&without_tuples(expected)))?;
    }
    Ok(())
}

/// The index handlers and tables of one operator, which sees one object after another.
struct Table {
    scripts: NativeScripts,
    handlers: Vec<Arc<Handler>>,
    /// The results of the current step.
    results: Arc<Mutex<Map<String, Value>>>,
    invoked: Arc<Mutex<Vec<String>>>,
    services: Arc<CallServices>,
    settings: Settings,
    clock: Clock,
    failures: BTreeMap<String, IndexFailures>,
}

impl Table {
    fn new(input: &Value) -> Self {
        let scripts = NativeScripts::default();
        let (results, invoked) =
            (Arc::<Mutex<Map<String, Value>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let mut handlers = Vec::new();
        for (id, options) in catalogue::map(&input["handlers"]) {
            let mut options = catalogue::map(&options);
            options.insert("on".into(), "index".into());
            options.insert("id".into(), id.as_str().into());
            // An object has the label of each index that should contain it.
            options.insert("labels".into(), json!({ id: { "$": "PRESENT" } }));
            let (results, invoked) = (Arc::clone(&results), Arc::clone(&invoked));
            let function = scripts.handler("fn", move |invocation| {
                let id = invocation.handler.id.to_string();
                let result = results.lock().get(&id).cloned();
                invoked.lock().push(id);
                Box::pin(async move { ended(&result.unwrap_or_default()) })
            });
            let mut declaration = catalogue::declaration(&Value::Object(options));
            declaration.function = function;
            handlers.push(Arc::new(declare(declaration).expect("a declaration")));
        }
        let indexes = Indexes::new(handlers.iter().map(|it: &Arc<Handler>| Arc::clone(&it.id)));
        Table {
            scripts,
            handlers,
            results,
            invoked,
            services: Arc::new(CallServices { indexes, ..CallServices::default() }),
            settings: Settings::default(),
            clock: Clock::starting_at(BASE.parse().expect("a timestamp")),
            failures: BTreeMap::new(),
        }
    }

    async fn step(&mut self, step: &Value) -> Value {
        tokio::time::advance(catalogue::seconds(&step["advance"]).unwrap_or_default()).await;
        let results = catalogue::map(&step["results"]);
        let labels: Map<_, _> = results.keys().map(|it| (it.clone(), "".into())).collect();
        *self.results.lock() = results;
        self.invoked.lock().clear();
        let mut metadata = Map::from_iter([("labels".to_owned(), Value::Object(labels))]);
        for key in ["name", "namespace", "uid"] {
            metadata.insert(key.into(), step[key].clone());
        }
        let object = Arc::new(Object::from_value(json!({ "metadata": metadata })));
        let uid = step["uid"].as_str().unwrap_or_default().to_owned();
        let mut failures = self.failures.remove(&uid).unwrap_or_default();
        let is_gone = step["type"] == "DELETED";
        if is_gone {
            self.services.indexes.remove(&Owner::of(object.header())).await;
        } else {
            self.index(object, &mut failures).await;
        }
        let told = self.told(&failures);
        if !is_gone {
            self.failures.insert(uid, failures);
        }
        told
    }

    async fn index(&self, object: Arc<Object>, failures: &mut IndexFailures) {
        let cause = ObjectCause {
            resource: Arc::new(catalogue::kopfexamples()),
            object,
            patch: SharedPatch::default(),
            detail: ObjectDetail::Index,
        };
        let runner = HandlerRunner {
            scripts: &self.scripts,
            clock: self.clock,
            settings: &self.settings.execution,
            services: &self.services,
        };
        let (memo, logger) =
            (Memo::default(), Logger::of_object(LoggerKind::Local, Arc::default()));
        let indexer = Indexer {
            runner,
            handlers: &self.handlers,
            only: None,
            cause,
            memo: &memo,
            logger: &logger,
        };
        let mut undecided = None;
        let (start, delays) = (Instant::now(), &self.settings.queueing.error_delays);
        let retries = FilterRetries { undecided: &mut undecided, delays, start, deadline: start };
        indexer.run(failures, retries).await;
        assert!(undecided.is_none(), "no filter raises");
    }

    fn told(&self, failures: &IndexFailures) -> Value {
        let index = |it: &kopf::call::Index| {
            let store = |key| {
                let values = it.get(&key).expect("a key with values");
                let values = values
                    .iter()
                    .filter_map(|it| it.value())
                    .map(|it| Value::clone(it))
                    .collect::<Value>();
                json!([key.to_value(), values])
            };
            (it.id().to_string(), it.keys().map(store).collect::<Value>())
        };
        let indices = self.services.indexes.all().map(index).collect::<Map<_, _>>();
        let state = failures.records().map(|(id, record)| {
            let delayed = record.delayed.map(format_stamp);
            let (retries, failure) = (record.retries, record.failure);
            let record = json!({ "retries": retries, "delayed": delayed, "failure": failure });
            (id.to_string(), record)
        });
        let invoked = self.invoked.lock().clone();
        arranged(&json!({
            "indices": indices, "invoked": invoked, "state": state.collect::<Map<_, _>>(),
        }))
    }
}

/// Returns the end of the function that has this result in the notation of the vectors.
fn ended(result: &Value) -> CallEnd {
    if let Some(error) = result.get("$raise") {
        return CallEnd::Raised(catalogue::raised(error));
    }
    if let Some(items) = result.get("$map").and_then(Value::as_array) {
        let item = |it: &Value| (without_tuples(&it[0]), without_tuples(&it[1]));
        return CallEnd::Keyed(items.iter().map(item).collect());
    }
    let result = result.get("$memo").unwrap_or(result);
    CallEnd::Returned(Some(without_tuples(result)).filter(|it| !it.is_null()))
}

/// Converts tuples to lists.
fn without_tuples(value: &Value) -> Value {
    match value {
        Value::Object(map) => match map.get("$tuple") {
            Some(items) => without_tuples(items),
            None => Value::Object(
                map.iter().map(|(key, it)| (key.clone(), without_tuples(it))).collect(),
            ),
        },
        Value::Array(items) => items.iter().map(without_tuples).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Sorts a table: the reference does not define the order of keys and values.
fn arranged(told: &Value) -> Value {
    let mut told = told.clone();
    for index in told["indices"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        let index = index.as_array_mut().expect("a list of stores");
        for store in index.iter_mut() {
            store[1].as_array_mut().expect("values").sort_by_key(Value::to_string);
        }
        index.sort_by_key(|it| it[0].to_string());
    }
    told
}
