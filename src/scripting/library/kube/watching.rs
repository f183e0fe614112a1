//! `kube.watch` and `kube.wait`.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{
    desk::{Desk, Spot, failed, option, plain, selected},
    reading::selectors,
};
use crate::logic::{
    duration,
    kube::{Attempt, Change, Predicate, Reference, Sight, Subject, without_nulls},
    object::Object,
    reason::EventType,
    resource::Resource,
    selector::Restrictions,
};
use crate::ports::{
    ApiError, BoxFuture, ErrorClass, Extent, Stopped, StreamEvent, StreamTarget, Verb,
};
use crate::scripting::library::{Call, Datum, Failure, Flow, Outcome};

/// How long `kube.wait` waits if it is not told, as kubectl does.
const WAIT: Duration = Duration::from_secs(30);
/// Thirty years stand for never, as in tokio.
const NEVER: Duration = Duration::from_hours(24 * 365 * 30);

/// `kube.watch`
pub(super) fn watch(call: &Call) -> Result<Flow, Failure> {
    let desk = Desk::of(call, Attempt::Read)?;
    // Checked at once, so that a mistake is told before the loop.
    let wanted = selected(call)?;
    let mut query = selectors(call)?;
    let timeout = duration::parse(call.value("timeout"));
    if let Some(name) = option(call, "name").or(wanted.name.as_deref()) {
        query.push(("fieldSelector", format!("metadata.name={name}")));
    }
    let restrictions = restrictions(query);
    let namespace = option(call, "namespace").map(str::to_owned).or(wanted.namespace);
    let stopped = desk.stopped.clone();
    let opening = async move {
        let resource = desk.resource(&wanted.meant).await?;
        let namespace = desk.place(&resource, namespace.as_deref()).await?;
        let events = events(&desk, resource, namespace, restrictions).await?;
        Ok::<_, Failure>(told(desk, events))
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
    desk: &Desk,
    resource: Arc<Resource>,
    namespace: Option<String>,
    restrictions: Restrictions,
) -> Result<Events, Failure> {
    let target = StreamTarget {
        resource,
        namespace: namespace.map(Arc::from),
        extent: Extent::Whole,
        settings: desk.kube.settings(),
        restrictions: Some(restrictions),
    };
    desk.kube.stream(target).await.map_err(|it| desk.refused(it))
}

/// When the daemon must stop, or the time is over.
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

/// A watch and what it has told.
struct Watch {
    desk: Desk,
    events: Events,
    sight: Sight,
    /// What is still to be told.
    ready: VecDeque<Value>,
    /// Whether the first list is complete: a refusal before is that of a mistake, a later one passes or is logged.
    is_settled: bool,
}

/// The events as the script gets them.
fn told(desk: Desk, events: Events) -> impl futures::Stream<Item = Outcome> + Send {
    let watch =
        Watch { desk, events, sight: Sight::default(), ready: VecDeque::new(), is_settled: false };
    stream::try_unfold(watch, |mut watch| async move {
        loop {
            if let Some(event) = watch.ready.pop_front() {
                return Ok(Some((Datum::Json(event), watch)));
            }
            let Some(event) = watch.events.next().await else { return Ok(None) };
            match event {
                Ok(event) => watch.take(event),
                Err(error) if watch.is_final(&error) => return Err(watch.desk.refused(error)),
                Err(error) => {
                    tracing::warn!(target: "kopf.kube", "kube.watch: {error}; it goes on.");
                }
            }
        }
    })
}

impl Watch {
    fn is_final(&self, error: &ApiError) -> bool {
        !self.is_settled && error.class != ErrorClass::Retry
    }

    fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Listing => self.sight.begin(),
            StreamEvent::Object(kind, object) => {
                for change in self.sight.see(kind, object.header()) {
                    self.tell(change, Some(&object));
                }
            }
            StreamEvent::Listed => {
                self.is_settled = true;
                for change in self.sight.end() {
                    self.tell(change, None);
                }
            }
            StreamEvent::Alive => {}
        }
    }

    fn tell(&mut self, change: Change, object: Option<&Object>) {
        let (kind, body) = match change {
            Change::Told(kind) => (kind, object.map(body_of).unwrap_or_default()),
            Change::Gone(identity) => (EventType::Deleted, identity),
        };
        self.ready.push_back(json!({ "type": kind.as_str(), "object": body }));
    }
}

fn body_of(object: &Object) -> Value {
    let mut body = Value::clone(object.body());
    without_nulls(&mut body);
    body
}

/// `kube.wait`
pub(super) fn wait(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let desk = Desk::of(&call, Attempt::Read)?;
        let predicate = Predicate::parse(call.text("predicate"))?;
        let reference = Reference::of(call.value("object"))?;
        let timeout = duration::parse(call.value("timeout")).unwrap_or(WAIT);
        let deadline = Instant::now() + timeout;
        let spot = desk.spot(reference, option(&call, "namespace")).await?;
        spot.named()?;
        let stopped = desk.stopped.clone();
        let waiting = time::timeout_at(deadline, waited(&desk, &spot, &predicate));
        let outcome = tokio::select! {
            biased; // what has come is given, also at the last moment
            outcome = waiting => outcome,
            () = ended(stopped, None) => return Ok(Value::Null.into()),
        };
        outcome.unwrap_or_else(|_late| {
            let seconds = timeout.as_secs_f64();
            let message =
                format!("{} is not {:?} after {seconds} s", spot.shown(), call.text("predicate"));
            Err(failed("Timeout", message))
        })
    })
}

/// The object as soon as the predicate holds; true if that is because it is gone.
async fn waited(desk: &Desk, spot: &Spot, predicate: &Predicate) -> Outcome {
    let name = spot.named()?;
    let holds = |body: Option<&Value>| {
        let subject = Subject { body, uid: spot.uid.as_deref() };
        predicate.holds(subject).then(|| body.map_or(Value::Bool(true), Value::clone))
    };
    // Most often it holds already, or soon: one look costs less than a watch.
    let present = look(desk, spot).await?;
    if let Some(found) = holds(present.as_ref()) {
        return Ok(found.into());
    }
    let restrictions =
        Restrictions { fields: Some(format!("metadata.name={name}")), ..Restrictions::default() };
    let (resource, namespace) = (Arc::clone(&spot.resource), spot.namespace.clone());
    let mut events = events(desk, resource, namespace, restrictions).await?;
    let mut listed = None;
    let mut is_settled = false;
    while let Some(event) = events.next().await {
        let present = match event {
            Ok(StreamEvent::Listing) => {
                listed = None;
                continue;
            }
            Ok(StreamEvent::Object(Some(EventType::Deleted), _)) => None,
            Ok(StreamEvent::Object(_, object)) => {
                listed = Some(object);
                listed.as_deref().map(body_of)
            }
            Ok(StreamEvent::Listed) => {
                is_settled = true;
                listed.as_deref().map(body_of)
            }
            Err(error) if !is_settled && error.class != ErrorClass::Retry => {
                return Err(desk.refused(error));
            }
            Ok(StreamEvent::Alive) | Err(_) => continue,
        };
        if let Some(found) = holds(present.as_ref()) {
            return Ok(found.into());
        }
    }
    Err(failed("Failed", format!("the watch of {} has ended", spot.shown())))
}

/// The object as it is; nothing if it is not there.
async fn look(desk: &Desk, spot: &Spot) -> Result<Option<Value>, Failure> {
    match desk.send(spot.demand(Verb::Get)).await {
        Ok(answer) => {
            let parsed = Object::parse(answer);
            let parsed = parsed.map_err(|it| Failure::Plain(it.to_string()))?;
            Ok(Some(plain(parsed)))
        }
        Err(error) if error.class == ErrorClass::Missing => Ok(None),
        Err(error) => Err(desk.refused(error)),
    }
}
