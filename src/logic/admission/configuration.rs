//! Builds the webhooks of a `ValidatingWebhookConfiguration` or a `MutatingWebhookConfiguration`.
//!
//! One webhook per handler. The contract is `tests/vectors/admission-configurations.json`; deviations make invalid configurations
//! valid: API servers reject a configuration as a whole.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::own_objects::OwnObjects;
use crate::logic::{
    handlers::handler::{Admission, Category, Criterion, Handler, Kind},
    object::resource::Resource,
};
use crate::sorted::CollectSorted as _;

/// The longest time that API servers wait for a webhook, in seconds; also the default.
const TIMEOUT_MAX: u64 = 30;

/// The label that names a namespace; API servers set it.
pub(super) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// The characters of an id that stay as they are in a URL.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The address by which API servers reach the webhooks of an operator, and the certificates to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The address of the server.
    pub endpoint: WebhookEndpoint,
    /// The CA bundle of the server, PEM; `None`: API servers use the root certificates of their machine.
    pub ca: Option<String>,
}

/// The address of a webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookEndpoint {
    /// A URL, to which `/HANDLER` is appended.
    Url(String),
    /// A service in the cluster.
    Service(Service),
}

/// A service in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The port of the service; `None` is 443.
    pub port: Option<u16>,
    /// The path, to which `/HANDLER` is appended.
    pub path: String,
}

/// A handler with the resources that it selects.
pub type WebhookRule = (Arc<Handler>, Vec<Resource>);

/// The handlers of an operator that are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All, while the operator runs.
    All,
    /// Those with the option `persistent`, after the operator has ended.
    Persistent,
}

/// Returns the webhooks of the handlers of one kind. `name` is the name of the configuration.
pub fn webhooks(
    kind: Kind,
    rules: &[WebhookRule],
    (name, client): (&str, &ClientConfig),
    own: &OwnObjects,
    extent: Extent,
) -> Vec<Value> {
    let mut names = BTreeSet::new();
    let is_wanted = |handler: &Handler| {
        handler.kind == kind && (extent == Extent::All || handler.admission.persistent)
    };
    let wanted = rules.iter().filter(|(handler, _)| is_wanted(handler));
    wanted
        .map(|(handler, resources)| {
            let name = unique(&mut names, &handler.id, name);
            webhook(handler, resources, (&name, client), own)
        })
        .collect()
}

/// Returns the `spec.conversion` of a CRD whose objects an operator converts, as a merge patch.
pub fn conversion(crd: &str, client: &ClientConfig) -> Value {
    let mut config = client.of(crd);
    if let Some(fields) = config.as_object_mut() {
        // The other form, which the CRD may have had before, is removed.
        for form in ["url", "service"] {
            fields.entry(form).or_insert(Value::Null);
        }
    }
    let webhook = json!({ "clientConfig": config, "conversionReviewVersions": ["v1"] });
    json!({ "strategy": "Webhook", "webhook": webhook })
}

/// Returns the part of a handler's webhook that is known without a cluster; `selected` names its resource. `None` for other handlers.
pub fn summary(handler: &Handler, selected: &str) -> Option<Map<String, Value>> {
    if handler.kind.category() != Category::Admission {
        return None;
    }
    let rule =
        rule(&handler.admission, &Resource { plural: selected.into(), ..Resource::default() });
    let policy = if handler.admission.ignore_failures { "Ignore" } else { "Fail" };
    let fields = [
        ("name", normalized(&handler.id).into()),
        ("operations", rule.get("operations").cloned().unwrap_or_default()),
        ("resources", rule.get("resources").cloned().unwrap_or_default()),
        ("failurePolicy", policy.into()),
        ("timeoutSeconds", seconds(handler).into()),
    ];
    Some(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

/// Returns how long API servers wait for a handler.
fn seconds(handler: &Handler) -> u64 {
    let whole = |it: Duration| it.as_secs() + u64::from(it.subsec_nanos() > 0);
    handler.limits.timeout.map_or(TIMEOUT_MAX, whole).clamp(1, TIMEOUT_MAX)
}

fn webhook(
    handler: &Handler,
    resources: &[Resource],
    (name, client): (&str, &ClientConfig),
    own: &OwnObjects,
) -> Value {
    let Admission { side_effects, ignore_failures, .. } = handler.admission;
    let options = &handler.admission;
    let rules = resources.iter().map(|it| rule(options, it)).collect::<Vec<_>>();
    let policy = options.match_policy.as_deref().unwrap_or("Equivalent");
    let mut webhook = json!({
        "name": name,
        "sideEffects": if side_effects { "NoneOnDryRun" } else { "None" },
        "failurePolicy": if ignore_failures { "Ignore" } else { "Fail" },
        "matchPolicy": policy,
        "rules": rules,
        "objectSelector": object_selector(&handler.filters.labels),
        "clientConfig": client.of(&handler.id),
        "timeoutSeconds": seconds(handler),
        "admissionReviewVersions": ["v1", "v1beta1"],
    });
    let namespaces = client.namespace().into_iter().chain(own.namespace.as_deref());
    let namespaces = namespaces.collect_set();
    let others = (!namespaces.is_empty()).then(|| {
        let excluded = json!({ "key": NAMESPACE_LABEL, "operator": "NotIn", "values": namespaces });
        json!({ "matchExpressions": [excluded] })
    });
    let more = [
        ("namespaceSelector", options.namespace_selector.clone().or(others)),
        ("matchConditions", conditions(options, own.condition(resources))),
        ("reinvocationPolicy", options.reinvocation.then(|| "IfNeeded".into())),
    ];
    let more = more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    if let Some(fields) = webhook.as_object_mut() {
        fields.extend(more);
    }
    webhook
}

/// Returns the conditions of the user and that of the operator.
fn conditions(options: &Admission, own: Option<Value>) -> Option<Value> {
    let mut conditions = options.match_conditions.clone();
    if let Some(own) = own {
        match conditions.as_mut().and_then(Value::as_array_mut) {
            Some(conditions) => conditions.push(own),
            None => return Some(json!([own])),
        }
    }
    conditions
}

fn rule(options: &Admission, resource: &Resource) -> Value {
    let plural = &resource.plural;
    let resources = match options.subresource.as_deref() {
        None => vec![plural.clone()],
        // Unlike in Kubernetes, this pattern includes the object itself.
        Some("*") => vec![plural.clone(), format!("{plural}/*")],
        Some(subresource) => vec![format!("{plural}/{subresource}")],
    };
    let any = vec!["*".to_owned()];
    let operations = if options.operations.is_empty() { &any } else { &options.operations };
    json!({
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": resources,
        "operations": operations,
        "scope": "*",
    })
}

/// Returns the part of the label filters that API servers check; null if there is none.
fn object_selector(labels: &[(String, Criterion)]) -> Value {
    let expression = |(key, criterion): &(String, Criterion)| match criterion {
        Criterion::Present => Some(json!({ "key": key, "operator": "Exists" })),
        Criterion::Absent => Some(json!({ "key": key, "operator": "DoesNotExist" })),
        Criterion::Equals(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(json!({ "key": key, "operator": "In", "values": [text] }))
        }
        Criterion::Callback(_) => None,
    };
    let expressions = labels.iter().filter_map(expression).collect::<Vec<_>>();
    if expressions.is_empty() { Value::Null } else { json!({ "matchExpressions": expressions }) }
}

impl ClientConfig {
    /// Returns the `clientConfig` of the webhook of one handler, or of one CRD.
    pub(super) fn of(&self, id: &str) -> Value {
        let mut config = Map::new();
        match &self.endpoint {
            WebhookEndpoint::Url(url) => {
                let id = utf8_percent_encode(id, PLAIN);
                config.insert("url".into(), format!("{}/{id}", url.trim_end_matches('/')).into());
            }
            WebhookEndpoint::Service(service) => {
                let Service { namespace, name, port, path } = service;
                let path = format!("{path}/{}", segment(id));
                let mut service = json!({ "namespace": namespace, "name": name, "path": path });
                if let (Some(port), Some(fields)) = (port, service.as_object_mut()) {
                    fields.insert("port".into(), (*port).into());
                }
                config.insert("service".into(), service);
            }
        }
        if let Some(ca) = &self.ca {
            config.insert("caBundle".into(), BASE64_STANDARD.encode(ca).into());
        }
        Value::Object(config)
    }

    /// Returns the namespace of the operator, if it runs in the cluster. Its own objects are not reviewed: otherwise it could never
    /// start again after an outage.
    fn namespace(&self) -> Option<&str> {
        match &self.endpoint {
            WebhookEndpoint::Url(_) => None,
            WebhookEndpoint::Service(service) => Some(&service.namespace),
        }
    }
}

/// The first character of a [`segment`].
const SEGMENT: char = 'h';

/// Returns an id as one segment of the path of a service, which API servers accept only if it is also a domain name: all other
/// characters than lower-case letters and digits become `-` and the two hexadecimal digits of each byte.
fn segment(id: &str) -> String {
    let mut segment = SEGMENT.to_string();
    for byte in id.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            segment.push(byte.into());
        } else {
            segment.push('-');
            segment.extend([byte >> 4, byte & 15].map(hexadecimal));
        }
    }
    segment
}

fn hexadecimal(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or_default()
}

/// Returns the id in a segment of the path of a service; `None` if the user has written the path.
pub fn id_of_segment(text: &str) -> Option<String> {
    let mut parts = text.strip_prefix(SEGMENT)?.split('-');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    let id = String::from_utf8(bytes).ok()?;
    (segment(&id) == text).then_some(id)
}

/// Returns the name of a webhook. Two handlers may have the same id; names must be unique.
fn unique(names: &mut BTreeSet<String>, id: &str, suffix: &str) -> String {
    let id = normalized(id);
    let numbered = std::iter::once(id.clone()).chain((2_u32..).map(|it| format!("{id}-{it}")));
    let mut numbered = numbered.map(|it| format!("{it}.{suffix}"));
    let name = numbered.find(|it| !names.contains(it)).unwrap_or_default();
    names.insert(name.clone());
    name
}

/// Returns an id as a part of a domain name: characters that are not allowed there become the hexadecimal digits of their bytes.
fn normalized(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for symbol in id.chars() {
        match symbol {
            '/' => name.push('.'),
            '_' => name.push('-'),
            '.' | '-' => name.push(symbol),
            _ if symbol.is_ascii_alphanumeric() => name.push(symbol.to_ascii_lowercase()),
            _ => {
                let bytes = symbol.to_string().into_bytes();
                name.extend(bytes.iter().map(|it| format!("{it:02x}")));
            }
        }
    }
    let labels = name.split('.').map(|it| it.trim_matches('-')).filter(|it| !it.is_empty());
    let name = labels.collect::<Vec<_>>().join(".");
    if name.is_empty() { "handler".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::{id_of_segment, segment};

    #[test]
    fn an_id_is_a_domain_name_in_the_path_of_a_service_and_back() {
        for (id, expected) in [
            ("check", "hcheck"),
            ("check_numbers/spec.field", "hcheck-5fnumbers-2fspec-2efield"),
            ("checkImage", "hcheck-49mage"),
            ("-", "h-2d"),
            ("ü", "h-c3-bc"),
        ] {
            assert_eq!(segment(id), expected);
            assert_eq!(id_of_segment(expected).as_deref(), Some(id));
        }
        for text in ["", "check", "h_", "h-5", "h-zz", "hA", "h-61"] {
            assert_eq!(id_of_segment(text), None, "{text}");
        }
    }
}
