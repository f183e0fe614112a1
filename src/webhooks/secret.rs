//! Certificates that all replicas share: generated once, and stored in a Secret.
//!
//! Replicas that start together agree by the rules of the API: only one of them creates the Secret, and a replica that replaces an
//! outdated version fails and reads again. `logic/admission/certificates.rs` decides when certificates are replaced.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use tokio::{sync::watch, time};

use super::{connection::TARGET, generated, tls::ServerCertificate};
use crate::logic::{
    admission::{
        certificates::{CA_LIFE, CertificateStep, LEAF_LIFE, Leaf, Life, Lives},
        configuration::{ClientConfig, WebhookEndpoint},
    },
    object::{Object, resource::Resource},
};
use crate::ports::{Address, Clock, Cluster, ErrorClass, NewObject};
use crate::telemetry::{Health, HealthState};

/// The annotation with the validity of the certificates.
const LIVES: &str = "kopf.dev/webhook-certificates";

/// The keys of the data: the certificate and the key of the server, the trusted CAs, and the key of the newest CA.
const LEAF: &str = "tls.crt";
const LEAF_KEY: &str = "tls.key";
const CAS: &str = "ca.crt";
const CA_KEY: &str = "ca.key";

/// How often the Secret is read: replicas use a new certificate within this time.
const POLL: Duration = Duration::from_mins(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of requests until the certificates are complete. Each conflict is the success of another replica.
const STEPS_MAX: usize = 20;

/// The name of the part in the health report.
const PART: &str = "webhook-certificates";

/// The certificates in one Secret.
pub(super) struct CertificateSecret {
    pub(super) cluster: Arc<dyn Cluster>,
    pub(super) clock: Clock,
    pub(super) health: Health,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The names of the server.
    pub(super) names: Vec<String>,
    /// The resource `secrets`, for the requests.
    pub(super) resource: Resource,
}

/// The content of the Secret.
#[derive(Default)]
struct SecretContent {
    /// `None`: the Secret does not exist yet.
    version: Option<String>,
    lives: Lives,
    data: Map<String, Value>,
}

impl CertificateSecret {
    /// Keeps the certificates valid, uses them, and publishes the CAs; never ends.
    pub(super) async fn follow(
        self,
        certificate: ServerCertificate,
        client: Arc<watch::Sender<Option<ClientConfig>>>,
        endpoint: WebhookEndpoint,
    ) {
        self.health.note(PART, HealthState::Unready, "there is no certificate yet");
        loop {
            let pause = match self.update(&certificate).await {
                Ok(ca) => {
                    let config = ClientConfig { endpoint: endpoint.clone(), ca: Some(ca) };
                    client.send_if_modified(|it| it.replace(config.clone()) != Some(config));
                    self.health.note(PART, HealthState::Ready, "the certificate is valid");
                    POLL
                }
                Err(problem) => {
                    let seconds = PAUSE.as_secs();
                    let text = format!(
                        "Cannot use the webhook certificates in the Secret {}/{}, retrying in {seconds} s: {problem}",
                        self.namespace, self.name
                    );
                    tracing::error!(target: TARGET, "{text}");
                    // The previous certificate is still valid.
                    if client.borrow().is_none() {
                        self.health.note(PART, HealthState::Unready, &text);
                    }
                    PAUSE
                }
            };
            time::sleep(pause).await;
        }
    }

    /// Replaces the certificates that are due, and uses the result. Returns the trusted CAs.
    async fn update(&self, certificate: &ServerCertificate) -> Result<String, String> {
        for _ in 0..STEPS_MAX {
            let content = self.read().await?;
            let step = content.lives.next(&self.names, self.clock.now());
            if let CertificateStep::Wait(_) = step {
                certificate.set(&content.text(LEAF)?, &content.text(LEAF_KEY)?)?;
                return content.text(CAS);
            }
            let version = content.version.clone();
            let next = self.executed(step, content).map_err(|it| it.to_string())?;
            self.write(version, &next).await?;
        }
        Err("other replicas keep changing it".to_owned())
    }

    async fn read(&self) -> Result<SecretContent, String> {
        let address = self.address();
        let secret = match self.cluster.get(address).await {
            Ok(secret) => secret,
            Err(error) if error.class == ErrorClass::Missing => return Ok(SecretContent::default()),
            Err(error) => return Err(error.to_string()),
        };
        SecretContent::of(&secret)
    }

    /// Writes the next content. A conflict is not an error: another replica was faster.
    async fn write(&self, version: Option<String>, next: &SecretContent) -> Result<(), String> {
        let lives = serde_json::to_string(&next.lives).map_err(|it| it.to_string())?;
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": self.name, "namespace": self.namespace, "annotations": { LIVES: lives },
            },
            "data": next.data,
        });
        let written = if let Some(version) = version {
            if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".to_owned(), version.into());
            }
            self.cluster.replace(self.address(), secret.to_string().into()).await
        } else {
            let payload = secret.to_string().into();
            let namespace = Some(self.namespace.as_str());
            let new = NewObject { resource: &self.resource, namespace, payload, backoffs: None };
            self.cluster.create(new).await
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.class == ErrorClass::Conflict => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the content after a step.
    fn executed(
        &self,
        step: CertificateStep,
        mut content: SecretContent,
    ) -> Result<SecretContent, rcgen::Error> {
        match step {
            CertificateStep::Wait(_) => {}
            CertificateStep::Create => {
                tracing::info!(target: TARGET, "Generating the webhook certificates in the Secret {}/{}.", self.namespace, self.name);
                content.lives = Lives::default();
                content.data.clear();
                let name = self.add_ca(&mut content)?;
                self.sign(&mut content, name)?;
            }
            CertificateStep::AddCa => {
                tracing::info!(target: TARGET, "Adding a CA to the webhook certificates.");
                self.add_ca(&mut content)?;
            }
            CertificateStep::Sign(name) => {
                tracing::info!(target: TARGET, "Renewing the certificate of the webhook server.");
                self.sign(&mut content, name)?;
            }
            CertificateStep::DropCa(name) => {
                let index = content.lives.cas.iter().position(|it| it.name == name);
                let kept = blocks(&content.text(CAS).unwrap_or_default())
                    .into_iter()
                    .enumerate()
                    .filter(|(it, _)| Some(*it) != index)
                    .map(|(_, it)| it)
                    .collect::<String>();
                content.put(CAS, &kept);
                content.lives.cas.retain(|it| it.name != name);
            }
        }
        Ok(content)
    }

    /// Adds a CA to the trusted ones. Returns its name.
    fn add_ca(&self, content: &mut SecretContent) -> Result<String, rcgen::Error> {
        let from = self.clock.now();
        let until = from.saturating_add(CA_LIFE).unwrap_or(from);
        let name = format!("kopf-webhook-ca-{}", from.as_second());
        let ca = generated::ca(&name, (from, until))?;
        let before = content.text(CAS).unwrap_or_default();
        content.put(CAS, &format!("{before}{}", ca.certificate));
        content.put(CA_KEY, &ca.key);
        content.lives.cas.push(Life { name: name.clone(), from, until });
        Ok(name)
    }

    fn sign(&self, content: &mut SecretContent, ca: String) -> Result<(), rcgen::Error> {
        let from = self.clock.now();
        let newest = content.lives.cas.last().map(|it| it.until);
        let until = from.saturating_add(LEAF_LIFE).unwrap_or(from);
        let until = newest.map_or(until, |it| it.min(until));
        let key = content.text(CA_KEY).unwrap_or_default();
        let leaf = generated::leaf(&self.names, (from, until), (&ca, &key))?;
        content.put(LEAF, &leaf.certificate);
        content.put(LEAF_KEY, &leaf.key);
        content.lives.leaf = Some(Leaf { names: self.names.clone(), ca, from, until });
        Ok(())
    }

    fn address(&self) -> Address<'_> {
        Address { resource: &self.resource, namespace: Some(&self.namespace), name: &self.name }
    }
}

impl SecretContent {
    fn of(secret: &Object) -> Result<Self, String> {
        let header = secret.header();
        let data = secret.body().get("data").and_then(Value::as_object).cloned();
        let data = data.unwrap_or_default();
        let lives = match header.annotations.get(LIVES).and_then(Value::as_str) {
            Some(text) => serde_json::from_str(text).unwrap_or_default(),
            None if data.is_empty() => Lives::default(),
            None => {
                return Err(
                    "it contains data of another owner: choose another name with `settings.admission.secret`, or mount it and set `certfile`, `pkeyfile` and `cafile` of `settings.admission.server`"
                        .to_owned(),
                );
            }
        };
        Ok(SecretContent { version: header.resource_version.clone(), lives, data })
    }

    fn text(&self, key: &str) -> Result<String, String> {
        let encoded = self.data.get(key).and_then(Value::as_str).unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|it| format!("{key}: {it}"))?;
        String::from_utf8(bytes).map_err(|it| format!("{key}: {it}"))
    }

    fn put(&mut self, key: &str, text: &str) {
        self.data.insert(key.to_owned(), BASE64_STANDARD.encode(text).into());
    }
}

/// Splits a PEM text into its certificates.
fn blocks(pem: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    pem.split_inclusive(END)
        .map(str::trim)
        .filter(|it| it.ends_with(END))
        .map(|it| format!("{it}\n"))
        .collect()
}

/// Returns the resource `secrets`.
pub(super) fn secrets() -> Resource {
    Resource {
        version: "v1".into(),
        plural: "secrets".into(),
        kind: "Secret".into(),
        singular: "secret".into(),
        namespaced: true,
        preferred: true,
        ..Resource::default()
    }
}
