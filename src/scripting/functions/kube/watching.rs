//! `kube.watch` and `kube.wait`.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{
    client::{KubeClient, ObjectAddress, failed, object, option, selected},
    reading::selectors,
};
use crate::call::Stopped;
use crate::logic::{
    access::kube::{Delta, KubeVerb, Predicate, Reference, Subject, WatchCache, without_nulls},
    handlers::selector::Restrictions,
    object::{Object, reason::EventType, resource::Resource},
    text::duration,
};
use crate::ports::{ApiError, ErrorClass, Extent, StreamEvent, StreamTarget, Verb};
use crate::scripting::functions::{
    Call,
    call::aside,
    outcome::{Datum, Failure, Flow, Outcome},
};

/// The default time limit of `kube.wait`, as in kubectl.
pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Thirty years stand for never, as in tokio.
const NEVER: Duration = Duration::from_hours(24 * 365 * 30);

/// Implements `kube.watch`: returns a stream of events.
pub(super) fn watch(call: &Call) -> Result<Flow, Failure> {
    let client = KubeClient::of(call, KubeVerb::Read)?;
    // Checked at once, so that a mistake is reported before the loop.
    let wanted = selected(call)?;
    let mut query = selectors(call)?;
    let timeout = duration::parse(call.value("timeout"));
    if let Some(name) = option(call, "name").or(wanted.name.as_deref()) {
        query.push(("fieldSelector", format!("metadata.name={name}")));
    }
    let restrictions = restrictions(query);
    let namespace = option(call, "namespace").map(str::to_owned).or(wanted.namespace);
    let stopped = client.stopped.clone();
    let opening = async move {
        let resource = client.resource(&wanted.resource).await?;
        let namespace = client.place(&resource, namespace.as_deref()).await?;
        let events = events(&client, resource, namespace, restrictions).await?;
        Ok::<_, Failure>(outcomes(client, events))
    };
    let flow = stream::once(opening).try_flatten();
    Ok(flow.take_until(ended(stopped, timeout)).boxed())
}

fn restrictions(query: Vec<(&'static str, String)>) -> Restrictions {
    let mut restrictions = Restrictions::default();
    for (parameter, text) in query {
        let place = match parameter {
            "labelSelector" => &mut restrictions.labels,
            _ => &mut restrictions.fields,
        };
        *place = Some(place.take().map_or_else(|| text.clone(), |it| format!("{it},{text}")));
    }
    restrictions
}

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

async fn events(
    client: &KubeClient,
    resource: Arc<Resource>,
    namespace: Option<String>,
    restrictions: Restrictions,
) -> Result<Events, Failure> {
    let target = StreamTarget {
        resource,
        namespace: namespace.map(Arc::from),
        extent: Extent::Whole,
        settings: client.kube.settings(),
        restrictions: Some(restrictions),
    };
    client.kube.stream(target).await.map_err(|it| client.refused(it))
}

/// Waits until the daemon must stop, or the time is over.
async fn ended(stopped: Option<Stopped>, timeout: Option<Duration>) {
    let over = time::sleep(timeout.unwrap_or(NEVER));
    match stopped {
        None => over.await,
        Some(stopped) => tokio::select! {
            biased; // either ends it
            () = stopped.wait() => {}
            () = over => {}
        },
    }
}

/// A watch and its pending events.
struct ScriptWatch {
    client: KubeClient,
    events: Events,
    cache: WatchCache,
    /// Events that the script has not received yet.
    ready: VecDeque<Value>,
    /// Whether the first list is complete: a refusal before that is caused by a mistake, a later one is temporary or logged.
    is_settled: bool,
}

/// Returns the events as the script receives them.
fn outcomes(client: KubeClient, events: Events) -> impl futures::Stream<Item = Outcome> + Send {
    let watch = ScriptWatch {
        client,
        events,
        cache: WatchCache::default(),
        ready: VecDeque::new(),
        is_settled: false,
    };
    stream::try_unfold(watch, |mut watch| async move {
        loop {
            if let Some(event) = watch.ready.pop_front() {
                return Ok(Some((Datum::Json(event), watch)));
            }
            let Some(event) = watch.events.next().await else { return Ok(None) };
            match event {
                Ok(event) => watch.take(event).await?,
                Err(error) if watch.is_final(&error) => return Err(watch.client.refused(error)),
                Err(error) => {
                    let hint =
                        error.hint.as_deref().map(|it| format!("; {it}")).unwrap_or_default();
                    tracing::warn!(target: "kopf.kube", "kube.watch: {error}, retrying{hint}");
                }
            }
        }
    })
}

impl ScriptWatch {
    fn is_final(&self, error: &ApiError) -> bool {
        !self.is_settled && error.class != ErrorClass::Retry
    }

    async fn take(&mut self, event: StreamEvent) -> Result<(), Failure> {
        match event {
            StreamEvent::Listing => self.cache.begin(),
            StreamEvent::Object(kind, object) => {
                let (bytes, read) = (object.size(), Arc::clone(&object));
                aside(bytes, move || _ = read.body()).await?;
                let header = object.header();
                if let Some(problem) = object.problem() {
                    let name = header.name.as_deref().unwrap_or_default();
                    tracing::error!(
                        target: "kopf.kube",
                        "kube.watch: skipping {} '{name}': {problem}",
                        header.kind
                    );
                    return Ok(());
                }
                let changes = self.cache.see(kind, header);
                if !changes.is_empty() {
                    let body = body_of(object).await?;
                    self.push_changes(changes, body);
                }
            }
            StreamEvent::Listed => {
                self.is_settled = true;
                let gone = self.cache.end();
                self.push_changes(gone, Value::Null);
            }
            StreamEvent::Alive => {}
        }
        Ok(())
    }

    /// Adds the events for the script. At most one of the changes is not about an object that is gone: it takes the body.
    fn push_changes(&mut self, changes: Vec<Delta>, mut body: Value) {
        self.ready.extend(changes.into_iter().map(|change| {
            let (kind, object) = match change {
                Delta::Event(kind) => (kind, body.take()),
                Delta::Gone(identity) => (EventType::Deleted, identity),
            };
            json!({ "type": kind.as_str(), "object": object })
        }));
    }
}

/// Returns the body of an object as scripts receive it.
async fn body_of(object: Arc<Object>) -> Result<Value, Failure> {
    let bytes = object.size();
    let read = move || {
        let mut body = Value::clone(object.body());
        without_nulls(&mut body);
        body
    };
    aside(bytes, read).await
}

/// Returns the states that `kube.wait` waits for: those of one object for which the predicate is true, or all of them without a
/// predicate.
pub(super) fn wait(call: &Call) -> Result<Flow, Failure> {
    let client = KubeClient::of(call, KubeVerb::Read)?;
    let predicate = option(call, "predicate").map(Predicate::parse).transpose()?;
    let reference = Reference::of(call.value("object"))?;
    let timeout = duration::parse(call.value("timeout")).unwrap_or(TIMEOUT_DEFAULT);
    let wanted = match option(call, "predicate") {
        Some(text) => format!("{text:?}"),
        None => "the condition of the function".into(),
    };
    let namespace = option(call, "namespace").map(str::to_owned);
    let deadline = Instant::now() + timeout;
    let opening = async move {
        let address = client.address(reference, namespace.as_deref()).await?;
        address.named()?;
        let seconds = timeout.as_secs_f64();
        let late = format!("{} did not meet {wanted} within {seconds} s", address.shown());
        let source = StateSource::Nothing;
        let waiting = ObjectWait { client, address, predicate, deadline, late, source, last: None };
        Ok::<_, Failure>(stream::try_unfold(waiting, ObjectWait::step))
    };
    Ok(stream::once(opening).try_flatten().boxed())
}

/// A wait for one object.
struct ObjectWait {
    client: KubeClient,
    address: ObjectAddress,
    predicate: Option<Predicate>,
    deadline: Instant,
    /// The message at the deadline.
    late: String,
    source: StateSource,
    /// The version of the last state; null if the object did not exist.
    last: Option<Value>,
}

/// The source of the states.
enum StateSource {
    /// Nothing was read yet.
    Nothing,
    /// The object was read once. Mostly that is enough, and costs less than a watch.
    Looked,
    Watched {
        events: Events,
        /// The object in the list that is being read.
        listed: Option<Value>,
        /// Whether the first list is complete.
        is_settled: bool,
    },
}

impl ObjectWait {
    /// Returns the next state for which the predicate is true; `None` if a daemon must stop.
    async fn step(mut self) -> Result<Option<(Datum, Self)>, Failure> {
        let stopped = self.client.stopped.clone();
        let (deadline, late) = (self.deadline, self.late.clone());
        let next = async move {
            let state = self.next().await?;
            let state = state.map_or_else(|| json!({}), |it| json!({ "object": it }));
            Ok(Some((Datum::Json(state), self)))
        };
        tokio::select! {
            biased; // a state that has arrived is returned, even at the deadline
            next = time::timeout_at(deadline, next) => {
                next.unwrap_or_else(|_late| Err(failed("Timeout", late)))
            }
            () = ended(stopped, None) => Ok(None),
        }
    }

    async fn next(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            if let Some(present) = self.seen().await?
                && self.is_new(present.as_ref())
                && self.holds(present.as_ref())
            {
                return Ok(present);
            }
        }
    }

    /// Reads the next state; `None` if it is not known yet.
    async fn seen(&mut self) -> Result<Option<Option<Value>>, Failure> {
        let (events, listed, is_settled) = match &mut self.source {
            StateSource::Nothing => {
                self.source = StateSource::Looked;
                return look(&self.client, &self.address).await.map(Some);
            }
            StateSource::Looked => {
                let events = watched(&self.client, &self.address).await?;
                self.source = StateSource::Watched { events, listed: None, is_settled: false };
                return Ok(None);
            }
            StateSource::Watched { events, listed, is_settled } => (events, listed, is_settled),
        };
        let Some(event) = events.next().await else {
            let message = format!("the watch of {} has ended", self.address.shown());
            return Err(failed("Failed", message));
        };
        Ok(match event {
            Ok(StreamEvent::Listing) => {
                *listed = None;
                None
            }
            Ok(StreamEvent::Object(Some(EventType::Deleted), _)) => Some(None),
            Ok(StreamEvent::Object(Some(_), object)) => Some(Some(body_of(object).await?)),
            Ok(StreamEvent::Object(None, object)) => {
                *listed = Some(body_of(object).await?);
                None
            }
            Ok(StreamEvent::Listed) => {
                *is_settled = true;
                Some(listed.take())
            }
            Err(error) if !*is_settled && error.class != ErrorClass::Retry => {
                return Err(self.client.refused(error));
            }
            Ok(StreamEvent::Alive) | Err(_) => None,
        })
    }

    /// Returns whether the state differs from the last one.
    fn is_new(&mut self, present: Option<&Value>) -> bool {
        let version = |it: &Value| it.pointer("/metadata/resourceVersion").cloned();
        let state = Some(present.and_then(version).unwrap_or_default());
        if self.last == state {
            return false;
        }
        self.last = state;
        true
    }

    fn holds(&self, body: Option<&Value>) -> bool {
        let subject = Subject { body, uid: self.address.uid.as_deref() };
        self.predicate.as_ref().is_none_or(|it| it.holds(subject))
    }
}

async fn watched(client: &KubeClient, address: &ObjectAddress) -> Result<Events, Failure> {
    let name = address.named()?;
    let restrictions =
        Restrictions { fields: Some(format!("metadata.name={name}")), ..Restrictions::default() };
    events(client, Arc::clone(&address.resource), address.namespace.clone(), restrictions).await
}

/// Returns the current object; `None` if it does not exist.
async fn look(client: &KubeClient, address: &ObjectAddress) -> Result<Option<Value>, Failure> {
    match client.send(address.demand(Verb::Get)).await {
        Ok(answer) => object(answer).await.map(Some),
        Err(error) if error.class == ErrorClass::Missing => Ok(None),
        Err(error) => Err(client.refused(error)),
    }
}
