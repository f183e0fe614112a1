//! Keeps the webhook configurations of the cluster in line with the handlers.
//!
//! There are two with one name, for validating and for mutating webhooks; and the CRDs whose objects handlers convert, each with a webhook
//! in its spec. All are written when the handlers, their resources or the server have changed, and when another client has changed or
//! deleted them. Only the leader writes. The last writer is stored in an annotation: a process does not change webhooks that another
//! process has written later, as in a rolling update, until that process has removed them.
//!
//! Webhooks of CRDs are never removed: without them, API servers would serve and store objects unconverted.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    stream::{BoxStream, FuturesUnordered},
};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::reviewer::TARGET;
use crate::logic::{
    admission::{
        configuration::{self, ClientConfig, Extent, WebhookRule},
        guard::{self, Guarded},
        own_objects::OwnObjects,
    },
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
/// The name of the part for CRDs.
const CONVERSIONS: &str = "conversion-webhooks";

/// The annotation with the identity of the last writer.
const WRITER: &str = "kopf.dev/webhook-writer";

/// The first pause after a failed request; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The maximum of these pauses.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// Time limit of the removal at the end.
const END_MAX: Duration = Duration::from_secs(5);

/// The content of the configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredWebhooks {
    /// The address at which API servers reach the operator.
    pub client: ClientConfig,
    /// The handlers, each with the resources that it selects.
    pub rules: Vec<WebhookRule>,
    /// The names of the CRDs whose objects handlers convert.
    pub conversions: BTreeSet<String>,
    /// The `ConfigMap`s of scripts whose edits are checked.
    pub guarded: Vec<Guarded>,
}

/// The webhook configurations of one operator.
#[derive(Clone)]
pub struct Configurations {
    /// The cluster that contains the configurations.
    pub cluster: Arc<dyn Cluster>,
    /// The settings of the requests.
    pub settings: Arc<Settings>,
    /// The name of both objects.
    pub name: String,
    /// The objects that the webhooks do not review.
    pub own: OwnObjects,
    /// The identity of this process.
    pub identity: String,
    /// Whether this replica writes.
    pub leadership: Leadership,
    /// A paused operator does not write.
    pub pauses: Pauses,
    /// Where problems are reported.
    pub health: Health,
    /// The CRDs for which the first attempt to write has ended, or that another replica writes.
    pub settled: watch::Sender<BTreeSet<String>>,
}

impl Configurations {
    /// Keeps all objects up to date until `stop`, and then removes the webhooks that are not persistent, unless another process has written
    /// them meanwhile. If it is dropped before, the webhooks stay: other replicas answer the reviews.
    pub async fn run(
        self,
        wanted: watch::Receiver<Option<DesiredWebhooks>>,
        stop: CancellationToken,
    ) {
        self.health.note(PART, HealthState::Unready, "the webhooks are not configured yet");
        let keep = |part| Keeper::new(&self, part, wanted.clone()).run(stop.clone());
        let kinds = [Kind::Validate, Kind::Mutate].map(Hook::Reviews);
        let mut keepers: FuturesUnordered<_> = kinds.into_iter().map(keep).collect();
        let mut kept = BTreeSet::new();
        let mut changes = wanted.clone();
        loop {
            let conversions = changes.borrow_and_update().as_ref().map(|it| it.conversions.clone());
            for crd in conversions.into_iter().flatten() {
                if kept.insert(crd.clone()) {
                    keepers.push(keep(Hook::Conversion(crd)));
                }
            }
            tokio::select! {
                ended = keepers.next() => if ended.is_none() { return },
                changed = changes.changed() => if changed.is_err() {
                    while keepers.next().await.is_some() {}
                    return;
                }
            }
        }
    }
}

/// One of the objects, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hook {
    /// The configuration of the handlers of this kind.
    Reviews(Kind),
    /// The webhook in the CRD of this name.
    Conversion(String),
}

/// The task that keeps one of the objects up to date.
struct Keeper<'a> {
    parts: &'a Configurations,
    part: Hook,
    resource: Arc<Resource>,
    wanted: watch::Receiver<Option<DesiredWebhooks>>,
    /// The content that was written last.
    written: Option<Written>,
    /// The webhooks of the object on the server; `None` if the object does not exist.
    shown: Option<Value>,
    /// Another process has written the object later.
    is_left: bool,
    /// Whether the present listing has shown the object.
    is_listed: bool,
    /// When to try again after a failure, and the pause before that.
    retry: Option<(Instant, Duration)>,
}

/// The content that was written last.
struct Written {
    webhooks: Value,
    /// The content as the server has stored it.
    stored: Value,
    /// The version that the server has returned, if it is a number: older versions do not show the content.
    version: Option<u64>,
}

/// The writer of an object.
#[derive(Clone, Copy)]
struct Writer<'a> {
    /// The identity that is stored; `None` removes it.
    identity: Option<&'a str>,
    /// The version that the object must still have.
    version: Option<&'a str>,
}

impl<'a> Keeper<'a> {
    fn new(
        parts: &'a Configurations,
        part: Hook,
        wanted: watch::Receiver<Option<DesiredWebhooks>>,
    ) -> Self {
        let resource = Arc::new(part.resource());
        Keeper {
            parts,
            part,
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
        let fields = format!("metadata.name={}", self.object_name());
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
                if object.header().name.as_deref() == Some(self.object_name()) {
                    self.is_listed = true;
                    self.note_object(event_type, &object);
                }
            }
            Some(Ok(StreamEvent::Listed)) if !self.is_listed && self.was_written() => {
                // The object was deleted while the watch was interrupted.
                (self.written, self.shown, self.is_left) = (None, None, false);
            }
            Some(Ok(StreamEvent::Listed | StreamEvent::Alive) | Err(_)) | None => {}
        }
    }

    fn note_object(&mut self, event_type: Option<EventType>, object: &Object) {
        let is_deleted = event_type == Some(EventType::Deleted);
        let shown = (!is_deleted).then(|| self.part.content_of(object));
        let version = version_of(object);
        if self.written.as_ref().is_some_and(|it| it.version >= version && version.is_some()) {
            return;
        }
        let writer = object.header().annotations.get(WRITER).and_then(Value::as_str);
        let is_other = !is_deleted && writer.is_some_and(|it| it != self.parts.identity);
        let is_left = is_other && self.was_written();
        let was_left = std::mem::replace(&mut self.is_left, is_left);
        if self.is_left && !was_left {
            tracing::info!(target: TARGET, "Another process has configured {}: not changing it.", self.name());
        } else if was_left && !self.is_left {
            self.written = None;
        } else if !self.is_left
            && self.written.as_ref().is_some_and(|it| shown.as_ref() != Some(&it.stored))
        {
            tracing::warn!(
                target: TARGET,
                "{} was {} by another client: restoring it.",
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

    /// Writes the object, unless it has the wanted content.
    async fn write(&mut self) {
        if !self.is_writer() {
            (self.written, self.is_left) = (None, false);
            self.settle(if self.parts.pauses.is_paused() {
                "not configured: the operator is paused"
            } else {
                "configured by another replica"
            });
            return;
        }
        let wanted = self.wanted.borrow_and_update().clone();
        let Some(wanted) = wanted.filter(|_| !self.is_left) else { return };
        let Some(webhooks) = self.webhooks(&wanted, Extent::All) else { return };
        if self.written.as_ref().is_some_and(|it| it.webhooks == webhooks) {
            return;
        }
        if self.retry.is_some_and(|(at, _)| at > Instant::now()) {
            return;
        }
        let is_needless = self.shown.is_none() && webhooks == json!([]);
        if is_needless && self.written.is_none() {
            // An object without webhooks is not created.
            self.settle("configured");
            return;
        }
        tracing::info!(target: TARGET, "Reconfiguring {}.", self.name());
        match self.send(&webhooks).await {
            Ok(object) => {
                let stored = self.part.content_of(&object);
                self.shown = Some(stored.clone());
                let version = version_of(&object);
                self.written = Some(Written { webhooks, stored, version });
                self.settle("configured");
            }
            Err(error) => self.fail(&error),
        }
    }

    fn settle(&mut self, text: &str) {
        self.retry = None;
        self.parts.health.note(self.part.health(), HealthState::Ready, text);
        self.note_settled();
    }

    /// Notes that the first attempt has ended.
    fn note_settled(&self) {
        let Hook::Conversion(crd) = &self.part else { return };
        self.parts.settled.send_if_modified(|it| it.insert(crd.clone()));
    }

    fn fail(&mut self, error: &ApiError) {
        let pause = self.retry.map_or(PAUSE_MIN, |(_, it)| (it * 2).min(PAUSE_MAX));
        self.retry = Some((Instant::now() + pause, pause));
        let seconds = pause.as_secs();
        let text = format!("Cannot configure {}, retrying in {seconds} s: {error}", self.name());
        self.parts.health.note(self.part.health(), HealthState::Unready, &text);
        self.note_settled();
        let verbs = match self.part {
            Hook::Reviews(_) => "list, watch, create and patch",
            Hook::Conversion(_) => "list, watch and patch",
        };
        let hint = (error.class == ErrorClass::Denied)
            .then(|| format!(" Grant the verbs {verbs} for {}.", self.resource.plural));
        tracing::error!(target: TARGET, "{text}{}", hint.unwrap_or_default());
    }

    /// Creates the object if it does not exist, and replaces its webhooks.
    async fn send(&self, webhooks: &Value) -> Result<Arc<Object>, ApiError> {
        let Configurations { name, identity, cluster, .. } = self.parts;
        let writer = Writer { identity: Some(identity), version: None };
        match self.patch(webhooks, writer).await {
            Err(error) if error.class == ErrorClass::Missing && self.part.is_created() => {}
            sent => return sent,
        }
        let object = json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "metadata": { "name": name, "annotations": { WRITER: identity } },
            "webhooks": webhooks,
        });
        let payload = object.to_string().into();
        let new = NewObject { resource: &self.resource, namespace: None, payload, backoffs: None };
        match cluster.create(new).await {
            Err(error) if error.class == ErrorClass::Conflict => self.patch(webhooks, writer).await,
            sent => sent.map(Arc::new),
        }
    }

    async fn patch(&self, webhooks: &Value, writer: Writer<'_>) -> Result<Arc<Object>, ApiError> {
        let annotations = json!({ WRITER: writer.identity });
        let mut metadata = json!({ "annotations": annotations });
        if let (Some(version), Some(metadata)) = (writer.version, metadata.as_object_mut()) {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        let payload = match self.part {
            Hook::Reviews(_) => json!({ "metadata": metadata, "webhooks": webhooks }),
            Hook::Conversion(_) => {
                json!({ "metadata": metadata, "spec": { "conversion": webhooks } })
            }
        };
        let request = PatchRequest {
            resource: &self.resource,
            namespace: None,
            name: self.object_name(),
            subresource: None,
            kind: PatchKind::Merge,
            payload: payload.to_string().into(),
            interrupt: None,
        };
        self.parts.cluster.patch(request).await
    }

    /// Removes the webhooks that no process answers after the end.
    async fn end(self) {
        let is_ours = self.written.is_some() && !self.is_left && self.is_writer();
        if !is_ours {
            return;
        }
        let Some(wanted) = self.wanted.borrow().clone() else { return };
        let Some(webhooks) = self.webhooks(&wanted, Extent::Persistent) else { return };
        let removal = async {
            let Configurations { name, cluster, identity, .. } = self.parts;
            let address = Address { resource: &self.resource, namespace: None, name };
            let present = cluster.get(address).await?;
            let writer = present.header().annotations.get(WRITER).and_then(Value::as_str);
            if writer != Some(identity) {
                return Ok(());
            }
            tracing::info!(target: TARGET, "Cleaning up {}.", self.name());
            let version = present.header().resource_version.as_deref();
            match self.patch(&webhooks, Writer { identity: None, version }).await {
                // Another process has written them since.
                Err(error) if error.class == ErrorClass::Conflict => Ok(()),
                sent => sent.map(drop),
            }
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

    /// Returns the wanted content of the object; `None` if it is not changed.
    fn webhooks(&self, wanted: &DesiredWebhooks, extent: Extent) -> Option<Value> {
        let DesiredWebhooks { client, rules, conversions, guarded } = wanted;
        match &self.part {
            Hook::Reviews(kind) => {
                let place = (&*self.parts.name, client);
                let mut webhooks =
                    configuration::webhooks(*kind, rules, place, &self.parts.own, extent);
                if *kind == Kind::Validate && extent == Extent::All {
                    webhooks.extend(guard::webhooks(guarded, place));
                }
                Some(webhooks.into())
            }
            Hook::Conversion(crd) => {
                let is_wanted = conversions.contains(crd) && extent == Extent::All;
                is_wanted.then(|| configuration::conversion(crd, client))
            }
        }
    }

    /// Returns the name of the object.
    fn object_name(&self) -> &str {
        match &self.part {
            Hook::Reviews(_) => &self.parts.name,
            Hook::Conversion(crd) => crd,
        }
    }

    /// Returns the name of the object in log lines.
    fn name(&self) -> String {
        match &self.part {
            Hook::Reviews(Kind::Mutate) => format!("the mutating webhook {}", self.parts.name),
            Hook::Reviews(_) => format!("the validating webhook {}", self.parts.name),
            Hook::Conversion(crd) => format!("the conversion webhook of {crd}"),
        }
    }
}

impl Hook {
    /// Returns the name of the part in the health report.
    fn health(&self) -> &'static str {
        match self {
            Hook::Reviews(_) => PART,
            Hook::Conversion(_) => CONVERSIONS,
        }
    }

    /// Returns whether the operator creates the object; CRDs belong to the user.
    fn is_created(&self) -> bool {
        matches!(self, Hook::Reviews(_))
    }

    /// Returns the part of an object that is kept up to date.
    fn content_of(&self, object: &Object) -> Value {
        let body = object.body();
        match self {
            Hook::Reviews(_) => body.get("webhooks").cloned().unwrap_or_else(|| json!([])),
            Hook::Conversion(_) => body.pointer("/spec/conversion").cloned().unwrap_or_default(),
        }
    }

    fn resource(&self) -> Resource {
        let (group, kind) = match self {
            Hook::Reviews(Kind::Mutate) => {
                ("admissionregistration.k8s.io", "MutatingWebhookConfiguration")
            }
            Hook::Reviews(_) => ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            Hook::Conversion(_) => ("apiextensions.k8s.io", "CustomResourceDefinition"),
        };
        let singular = kind.to_ascii_lowercase();
        Resource {
            group: group.into(),
            version: "v1".into(),
            plural: format!("{singular}s"),
            kind: kind.into(),
            singular,
            preferred: true,
            ..Resource::default()
        }
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
