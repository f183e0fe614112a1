//! Keeps the webhook configurations of the cluster as the handlers need them.
//!
//! There are two, of one name: for validating and for mutating webhooks. Both are written when the handlers, their resources or the
//! server have changed, and when somebody else has changed or deleted them. Only one replica writes: the leader. The last writer
//! is stored in an annotation: a process leaves the webhooks to another one that has written them later, as in a rolling update,
//! until that one has removed them.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, future, stream::BoxStream};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::reviewer::TARGET;
use crate::logic::{
    admission::configuration::{self, ClientConfig, Extent, Rule},
    handlers::{handler::Kind, selector::Restrictions},
    object::{Object, reason::EventType, resource::Resource},
};
use crate::ports::{
    Address, ApiError, Cluster, ErrorClass, Extent as StreamExtent, Leadership, NewObject,
    PatchKind, PatchRequest, Pauses, StreamEvent, StreamTarget, until,
};
use crate::settings::Settings;
use crate::telemetry::{Health, HealthState};

/// The name of the part in the health report.
const PART: &str = "webhook-configurations";

/// The annotation with the identity of the last writer.
const WRITER: &str = "kopf.dev/webhook-writer";

/// The first pause after a failed request; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The maximum of these pauses.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// Time limit of the removal at the end.
const END_MAX: Duration = Duration::from_secs(5);

/// What the configurations must contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// How API servers reach the operator.
    pub client: ClientConfig,
    /// The handlers, each with the resources that it selects.
    pub rules: Vec<Rule>,
}

/// What happens to the webhooks when the operator ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Remove those that are not persistent, unless another operator has written them meanwhile.
    Remove,
    /// Keep them: other replicas answer the reviews.
    Keep,
}

/// The webhook configurations of one operator.
#[derive(Clone)]
pub struct Configurations {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The settings of the requests.
    pub settings: Arc<Settings>,
    /// The name of both objects.
    pub name: String,
    /// The identity of this process.
    pub identity: String,
    /// Whether this replica writes.
    pub leadership: Leadership,
    /// A paused operator does not write.
    pub pauses: Pauses,
    /// Where problems are reported.
    pub health: Health,
    /// What happens at the end.
    pub exit: Exit,
}

impl Configurations {
    /// Keeps both objects until `stop`.
    pub async fn run(self, wanted: watch::Receiver<Option<Wanted>>, stop: CancellationToken) {
        self.health.note(PART, HealthState::Unready, "the webhooks are not configured yet");
        let [validating, mutating] = [Kind::Validate, Kind::Mutate].map(|kind| {
            let keeper = Keeper::new(&self, kind, wanted.clone());
            keeper.run(stop.clone())
        });
        future::join(validating, mutating).await;
    }
}

/// Keeps one of the two objects.
struct Keeper<'a> {
    parts: &'a Configurations,
    kind: Kind,
    resource: Arc<Resource>,
    wanted: watch::Receiver<Option<Wanted>>,
    /// What was written last.
    written: Option<Written>,
    /// The object as the server shows it: its webhooks. `None`: it does not exist.
    shown: Option<Value>,
    /// Another process has written the object later.
    is_left: bool,
    /// Whether the present listing has shown the object.
    is_listed: bool,
    /// When to try again after a failure, and the pause before that.
    retry: Option<(Instant, Duration)>,
}

/// What was written last.
struct Written {
    webhooks: Value,
    /// What the server made of it.
    stored: Value,
    /// The version that the server made, if it is a number: older ones do not show it.
    version: Option<u64>,
}

impl<'a> Keeper<'a> {
    fn new(parts: &'a Configurations, kind: Kind, wanted: watch::Receiver<Option<Wanted>>) -> Self {
        let resource = Arc::new(resource_of(kind));
        Keeper {
            parts,
            kind,
            resource,
            wanted,
            written: None,
            shown: None,
            is_left: false,
            is_listed: false,
            retry: None,
        }
    }

    async fn run(mut self, stop: CancellationToken) {
        let mut events = self.watch();
        loop {
            self.write().await;
            let (retry, parts) = (self.retry.map(|(at, _)| at), self.parts);
            let is_writer = self.is_writer();
            tokio::select! {
                biased; // the end first
                () = stop.cancelled() => break,
                changed = self.wanted.changed() => if changed.is_err() { break },
                () = parts.until_writer(), if !is_writer => {}
                event = events.next() => self.note(event),
                () = until(retry) => {}
            }
        }
        self.end().await;
    }

    fn watch(&self) -> BoxStream<'static, Result<StreamEvent, ApiError>> {
        let fields = format!("metadata.name={}", self.parts.name);
        self.parts.cluster.stream(StreamTarget {
            resource: Arc::clone(&self.resource),
            namespace: None,
            extent: StreamExtent::Whole,
            settings: Arc::clone(&self.parts.settings),
            restrictions: Some(Restrictions { fields: Some(fields), ..Restrictions::default() }),
        })
    }

    fn note(&mut self, event: Option<Result<StreamEvent, ApiError>>) {
        match event {
            Some(Ok(StreamEvent::Listing)) => self.is_listed = false,
            Some(Ok(StreamEvent::Object(event_type, object))) => {
                if object.header().name.as_deref() == Some(&*self.parts.name) {
                    self.is_listed = true;
                    self.note_object(event_type, &object);
                }
            }
            Some(Ok(StreamEvent::Listed)) if !self.is_listed && self.was_written() => {
                // Deleted while nobody watched.
                (self.written, self.shown, self.is_left) = (None, None, false);
            }
            Some(Ok(StreamEvent::Listed | StreamEvent::Alive) | Err(_)) | None => {}
        }
    }

    fn note_object(&mut self, event_type: Option<EventType>, object: &Object) {
        let is_deleted = event_type == Some(EventType::Deleted);
        let shown = (!is_deleted).then(|| webhooks_of(object));
        let version = version_of(object);
        if self.written.as_ref().is_some_and(|it| it.version >= version && version.is_some()) {
            return;
        }
        let writer = object.header().annotations.get(WRITER).and_then(Value::as_str);
        let is_other = !is_deleted && writer.is_some_and(|it| it != self.parts.identity);
        let is_left = is_other && self.was_written();
        let was_left = std::mem::replace(&mut self.is_left, is_left);
        if self.is_left && !was_left {
            tracing::info!(target: TARGET, "Another process has configured {}: leaving it alone.", self.name());
        } else if was_left && !self.is_left {
            self.written = None;
        } else if !self.is_left
            && self.written.as_ref().is_some_and(|it| shown.as_ref() != Some(&it.stored))
        {
            tracing::warn!(
                target: TARGET,
                "{} was {} by somebody else: restoring it.",
                self.name(),
                if is_deleted { "deleted" } else { "changed" }
            );
            self.written = None;
        }
        self.shown = shown;
    }

    fn was_written(&self) -> bool {
        self.is_left || self.written.is_some()
    }

    fn is_writer(&self) -> bool {
        self.parts.leadership.is_leading() && !self.parts.pauses.is_paused()
    }

    /// Writes the object, unless it is as wanted.
    async fn write(&mut self) {
        if !self.is_writer() {
            // The leader writes.
            (self.written, self.is_left) = (None, false);
            self.parts.health.note(PART, HealthState::Ready, "configured by another replica");
            return;
        }
        let wanted = self.wanted.borrow_and_update().clone();
        let Some(wanted) = wanted.filter(|_| !self.is_left) else { return };
        let webhooks = self.webhooks(&wanted, Extent::All);
        if self.written.as_ref().is_some_and(|it| it.webhooks == webhooks) {
            return;
        }
        if self.retry.is_some_and(|(at, _)| at > Instant::now()) {
            return;
        }
        let is_needless = self.shown.is_none() && webhooks == json!([]);
        if is_needless && self.written.is_none() {
            // Nobody needs an empty object.
            self.settle();
            return;
        }
        tracing::info!(target: TARGET, "Reconfiguring {}.", self.name());
        match self.send(&webhooks).await {
            Ok(object) => {
                let stored = webhooks_of(&object);
                self.shown = Some(stored.clone());
                let version = version_of(&object);
                self.written = Some(Written { webhooks, stored, version });
                self.settle();
            }
            Err(error) => self.fail(&error),
        }
    }

    fn settle(&mut self) {
        self.retry = None;
        self.parts.health.note(PART, HealthState::Ready, "configured");
    }

    fn fail(&mut self, error: &ApiError) {
        let pause = self.retry.map_or(PAUSE_MIN, |(_, it)| (it * 2).min(PAUSE_MAX));
        self.retry = Some((Instant::now() + pause, pause));
        let seconds = pause.as_secs();
        let text = format!("Cannot configure {}, retrying in {seconds} s: {error}", self.name());
        self.parts.health.note(PART, HealthState::Unready, &text);
        let hint = (error.class == ErrorClass::Denied).then(|| {
            format!(" Grant the verbs list, watch, create and patch for {}.", self.resource.plural)
        });
        tracing::error!(target: TARGET, "{text}{}", hint.unwrap_or_default());
    }

    /// Creates the object if it does not exist, and replaces its webhooks.
    async fn send(&self, webhooks: &Value) -> Result<Object, ApiError> {
        match self.patch(webhooks, Some(&self.parts.identity)).await {
            Err(error) if error.class == ErrorClass::Missing => {}
            sent => return sent,
        }
        let Configurations { name, identity, cluster, .. } = self.parts;
        let object = json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "metadata": { "name": name, "annotations": { WRITER: identity } },
            "webhooks": webhooks,
        });
        let payload = object.to_string().into();
        let new = NewObject { resource: &self.resource, namespace: None, payload, backoffs: None };
        match cluster.create(new).await {
            Err(error) if error.class == ErrorClass::Conflict => {
                self.patch(webhooks, Some(identity)).await
            }
            sent => sent,
        }
    }

    async fn patch(&self, webhooks: &Value, writer: Option<&str>) -> Result<Object, ApiError> {
        let annotations = json!({ WRITER: writer });
        let payload = json!({ "metadata": { "annotations": annotations }, "webhooks": webhooks });
        let request = PatchRequest {
            resource: &self.resource,
            namespace: None,
            name: &self.parts.name,
            subresource: None,
            kind: PatchKind::Merge,
            payload: payload.to_string().into(),
            interrupt: None,
        };
        self.parts.cluster.patch(request).await
    }

    /// Removes the webhooks that nobody answers from now on.
    async fn end(self) {
        let is_ours = self.written.is_some() && !self.is_left && self.is_writer();
        if !is_ours || self.parts.exit == Exit::Keep {
            return;
        }
        let Some(wanted) = self.wanted.borrow().clone() else { return };
        let removal = async {
            let Configurations { name, cluster, identity, .. } = self.parts;
            let address = Address { resource: &self.resource, namespace: None, name };
            let present = cluster.get(address).await?;
            let writer = present.header().annotations.get(WRITER).and_then(Value::as_str);
            if writer != Some(identity) {
                return Ok(());
            }
            tracing::info!(target: TARGET, "Cleaning up {}.", self.name());
            let webhooks = self.webhooks(&wanted, Extent::Persistent);
            self.patch(&webhooks, None).await.map(drop)
        };
        let problem = match time::timeout(END_MAX, removal).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "the API server does not respond".to_owned(),
        };
        tracing::error!(
            target: TARGET,
            "Cannot clean up {}: {problem}. API servers still call these webhooks, and their requests fail: remove them with kubectl.",
            self.name()
        );
    }

    fn webhooks(&self, wanted: &Wanted, extent: Extent) -> Value {
        let Wanted { client, rules } = wanted;
        configuration::webhooks(self.kind, rules, (&self.parts.name, client), extent).into()
    }

    /// Returns the name of the object in log lines.
    fn name(&self) -> String {
        let adjective = if self.kind == Kind::Mutate { "mutating" } else { "validating" };
        format!("the {adjective} webhook {}", self.parts.name)
    }
}

impl Configurations {
    async fn until_writer(&self) {
        self.leadership.until_leading().await;
        self.pauses.until(false).await;
    }
}

fn version_of(object: &Object) -> Option<u64> {
    object.header().resource_version.as_deref()?.parse().ok()
}

fn webhooks_of(object: &Object) -> Value {
    object.body().get("webhooks").cloned().unwrap_or_else(|| json!([]))
}

fn resource_of(kind: Kind) -> Resource {
    let (name, plural) = if kind == Kind::Mutate {
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
    } else {
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
    };
    Resource {
        group: "admissionregistration.k8s.io".into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: name.into(),
        singular: name.to_ascii_lowercase(),
        preferred: true,
        ..Resource::default()
    }
}
