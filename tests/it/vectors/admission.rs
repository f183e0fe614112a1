//! Admission: the responses to reviews, and the managed configurations.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kopf::call::{Cause, Invocation, LiveGeneration, Memo, ObjectCause, ObjectDetail, Scripts};
use kopf::features::admission::{AdmissionHandlers, OperatorReviewer};
use kopf::logic::admission::configuration::{self, ClientConfig, Extent, Service, WebhookEndpoint};
use kopf::logic::admission::own_objects::OwnObjects;
use kopf::logic::handlers::outcome::{CallEnd, Raised, RaisedKind};
use kopf::logic::object::resource::Resource;
use kopf::logic::{
    change::{filters::Question, patch::Transformation, registry::ResourceHandlers},
    handlers::{function::Function, handler::Handler},
};
use kopf::ports::{BoxFuture, Clock, ReviewClient, ReviewRequest, Reviewer};
use kopf::settings::ExecutionSettings;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Vector, catalogue, run, same};

/// Handlers that act as the vectors describe, by their ids.
struct Actors {
    does: BTreeMap<String, Value>,
    calls: Mutex<Vec<String>>,
}

impl Scripts for Actors {
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let name = invocation.handler.function.name.to_string();
        let ended = act(&self.does[&name], cause(&invocation));
        self.calls.lock().push(name);
        Box::pin(async { ended })
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        let object = cause(&invocation).current();
        let context = catalogue::Context { body: object.body(), reason: None, has_diff: false };
        let answer = catalogue::answer(&question, &context);
        Box::pin(async move { Ok(answer) })
    }

    fn choose(&self, _: Function, _: Arc<Resource>) -> BoxFuture<'static, Result<bool, Raised>> {
        panic!("no selector is a function")
    }

    fn compute(
        &self,
        _: Function,
        _: Option<Value>,
        _: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        panic!("nothing is computed")
    }

    fn transform(
        &self,
        function: Function,
        mut body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        transform(&function.name, &mut body);
        Box::pin(async { Ok(body) })
    }
}

fn cause(invocation: &Invocation) -> &ObjectCause {
    match &invocation.cause {
        Cause::Object(cause) => cause,
        Cause::Activity(_) => panic!("a review is about an object"),
    }
}

fn act(does: &Value, cause: &ObjectCause) -> CallEnd {
    let ObjectDetail::Admission(admission) = &cause.detail else { panic!("no review") };
    let list = |key: &str| does[key].as_array().cloned().unwrap_or_default();
    for text in list("warns") {
        admission.warnings.add(text.as_str().expect("a warning")).expect("there is room");
    }
    let mut patch = cause.patch.lock();
    for (key, value) in does["merge"].as_object().into_iter().flatten() {
        patch.merge.insert(key.clone(), value.clone());
    }
    for name in list("fns") {
        let function = catalogue::function(name.as_str().expect("a name"));
        patch.transformations.push(Transformation::Scripted(function));
    }
    if does["raises"][0] != "AdmissionError" {
        return catalogue::ended(does);
    }
    let text = does["raises"][1].as_str().unwrap_or_default();
    let code = does["raises"][2].as_u64().unwrap_or(500);
    let kind = RaisedKind::Admission(u16::try_from(code).expect("a status"));
    CallEnd::Raised(Raised { kind, message: text.to_owned(), trace: None })
}

fn transform(name: &str, body: &mut Value) {
    match name {
        "add_finalizer" => body["metadata"]["finalizers"] = json!(["example.com/f"]),
        "append_item" => {
            body["spec"]["items"].as_array_mut().expect("a list").push(9.into());
        }
        "drop_x" => drop(body["spec"].as_object_mut().map(|it| it.shift_remove("x"))),
        "set_y" => body["spec"]["y"] = json!([{"z": true}]),
        other => panic!("no function {other}"),
    }
}

fn handlers(vector: &Vector) -> Result<Vec<Arc<Handler>>, String> {
    let specs = vector.input["handlers"].as_array().cloned().unwrap_or_default();
    let declared = specs.iter().map(|spec| {
        let mut spec = spec.clone();
        if let Some(fields) = spec.as_object_mut() {
            // Python's errors of this kind need two arguments.
            fields.shift_remove("do");
        }
        catalogue::handler(&spec).map(Arc::new).map_err(|it| it.to_string())
    });
    declared.collect()
}

fn resources(vector: &Vector) -> Vec<Resource> {
    vector.input["resources"].as_array().into_iter().flatten().map(catalogue::resource).collect()
}

/// Returns the response of this operator, in the notation of the vectors.
async fn response(vector: &Vector) -> Result<Value, String> {
    let handlers = handlers(vector)?;
    let specs = vector.input["handlers"].as_array().cloned().unwrap_or_default();
    let does =
        specs.iter().map(|it| (it["fn"].as_str().unwrap_or("fn").to_owned(), it["do"].clone()));
    let actors = Arc::new(Actors { does: does.collect(), calls: Mutex::default() });
    let of = |resource: Resource| {
        let found = ResourceHandlers::among(&handlers, &resource, &|_, _| false).admission;
        (Arc::new(resource), found)
    };
    let reviewer = OperatorReviewer {
        metrics: kopf::telemetry::Metrics::default(),
        scripts: Arc::clone(&actors) as Arc<dyn Scripts>,
        clock: Clock::system(),
        memo: Memo::default(),
        recall: Arc::new(|_| None),
        serving: Mutex::default(),
    };
    reviewer.serve(AdmissionHandlers {
        live: Arc::new(LiveGeneration::default()),
        execution: ExecutionSettings::default(),
        resources: resources(vector).into_iter().map(of).collect(),
    });
    let request = ReviewRequest {
        handler: vector.input["hint"].as_str().map(str::to_owned),
        body: vector.input["review"].to_string().into(),
        client: ReviewClient::default(),
        deadline: None,
    };
    let body = match reviewer.review(request).await {
        Ok(body) => body,
        Err(error) => return Ok(json!({ "status": error.status() })),
    };
    let mut review: Value = serde_json::from_slice(&body).map_err(|it| it.to_string())?;
    let mut actual = json!({ "calls": *actors.calls.lock() });
    if let Some(patch) = review["response"]["patch"].as_str() {
        let patch = BASE64_STANDARD.decode(patch).map_err(|it| it.to_string())?;
        let patch: json_patch::Patch =
            serde_json::from_slice(&patch).map_err(|it| it.to_string())?;
        let request = &vector.input["review"]["request"];
        let object = Some(&request["object"]).filter(|it| !it.is_null());
        let mut patched = object.unwrap_or(&request["oldObject"]).clone();
        json_patch::patch(&mut patched, &patch).map_err(|it| it.to_string())?;
        actual["patched"] = patched;
        review["response"]["patch"] = "…".into();
    }
    actual["review"] = review;
    Ok(actual)
}

#[test]
fn admission_reviews() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    run("admission-reviews", |vector| {
        same("response", &runtime.block_on(response(vector))?, &vector.expected)
    });
}

#[test]
fn admission_configurations() {
    run("admission-configurations", |vector| {
        let handlers = handlers(vector)?;
        let resources = resources(vector);
        let rules = handlers.iter().map(|handler| {
            let selector = handler.selector.as_ref().expect("a selector");
            let own = resources.iter().filter(|it| selector.check(it, &|_, _| false));
            (Arc::clone(handler), own.cloned().collect())
        });
        let rules = rules.collect::<Vec<_>>();
        let extent =
            if vector.input["persistent"] == true { Extent::Persistent } else { Extent::All };
        let kind = catalogue::kind(vector.input["kind"].as_str().expect("a kind"));
        let client = client(&vector.input["client"]);
        let (place, own) = (("auto.kopf.dev", &client), OwnObjects::default());
        let webhooks = configuration::webhooks(kind, &rules, place, &own, extent);
        let mut actual = json!({ "webhooks": webhooks });
        let mut expected = vector.expected.clone();
        for webhooks in [&mut actual["webhooks"], &mut expected["webhooks"]] {
            webhooks.as_array_mut().expect("a list").iter_mut().for_each(in_order);
        }
        same("webhooks", &actual, &expected)
    });
}

/// Sorts a webhook: the reference processes its resources in random order.
fn in_order(webhook: &mut Value) {
    if let Some(rules) = webhook["rules"].as_array_mut() {
        rules.sort_by_key(Value::to_string);
    }
}

fn client(config: &Value) -> ClientConfig {
    let ca = config["caBundle"].as_str().map(|it| {
        let bytes = BASE64_STANDARD.decode(it).expect("base64");
        String::from_utf8(bytes).expect("text")
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let service = &config["service"];
    let endpoint = if service.is_null() {
        WebhookEndpoint::Url(text(&config["url"]))
    } else {
        WebhookEndpoint::Service(Service {
            namespace: text(&service["namespace"]),
            name: text(&service["name"]),
            port: service["port"].as_u64().and_then(|it| u16::try_from(it).ok()),
            path: text(&service["path"]),
        })
    };
    ClientConfig { endpoint, ca }
}
