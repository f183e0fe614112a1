//! Validation of Services, endpoints and endpoint slices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FieldValue, Problems, maybe_one_of, meta, names, obey, one_of, port, port_or_name};
use crate::refusal::{ProblemKind, ValidationProblem};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const FIELD_TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(in crate::native) fn service(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = Problems::new();
    let spec = FieldValue::root(new).get("spec");
    let external = |it: &FieldValue<'_>| it.get("type").text() == "ExternalName";
    let headers = meta::object(new, old, names::dns_label);
    out.extend(headers);
    if old.is_none() && !external(&spec) {
        // The real server allocates addresses first, so their problems come alone.
        let mut wrong = Problems::new();
        cluster_ips(&mut wrong, &spec);
        if wrong.iter().any(|it| it.field.starts_with("spec.clusterIPs[")) {
            return wrong;
        }
    }
    if let Some(old) = old {
        same_address(&mut out, &spec, &FieldValue::root(old).get("spec"));
    }
    let headless = spec.get("clusterIP").text() == "None";
    let ports = spec.get("ports");
    if ports.is_empty() && !headless && !external(&spec) {
        out.push(ports.required(""));
    }
    by_type(&mut out, &spec, headless);
    all_ports(&mut out, &ports);
    meta::labels(&mut out, &spec.get("selector"));
    one_of(&mut out, &spec.get("sessionAffinity"), &["ClientIP", "None"]);
    if spec.get("sessionAffinity").text() == "ClientIP" {
        let seconds = spec.get("sessionAffinityConfig").get("clientIP").get("timeoutSeconds");
        if !(1..=86_400).contains(&seconds.number()) {
            out.push(seconds.invalid("must be greater than 0 and less than 86400"));
        }
    }
    if !external(&spec) {
        cluster_ips(&mut out, &spec);
    }
    for ip in spec.get("externalIPs").items() {
        obey(&mut out, &ip, names::ip);
    }
    let kind = spec.get("type");
    one_of(&mut out, &kind, &FIELD_TYPES);
    if kind.text() == "ClusterIP" {
        for it in ports.items() {
            let node = it.get("nodePort");
            if node.number() != 0 {
                out.push(node.forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
    }
    let ingress = FieldValue::root(new).get("status").get("loadBalancer").get("ingress");
    if kind.text() != "LoadBalancer" && !ingress.is_empty() {
        out.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    unique_ports(&mut out, &ports);
    ranges(&mut out, &spec);
    traffic(&mut out, &spec);
    out
}

fn by_type(out: &mut Problems, spec: &FieldValue<'_>, headless: bool) {
    let kind = spec.get("type").text();
    if headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        out.push(ValidationProblem::invalid("spec.clusterIPs[0]", "None", detail));
    }
    if kind != "ExternalName" {
        return;
    }
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(field).is_set() {
            out.push(spec.get(field).forbidden("may not be set for ExternalName services"));
        }
    }
    let name = spec.get("externalName");
    let bare = name.text().strip_suffix('.').unwrap_or(name.text());
    if bare.is_empty() {
        out.push(name.required(""));
    } else {
        let problems = names::dns_subdomain(bare).into_iter();
        out.extend(problems.map(|it| ValidationProblem::invalid(name.path.clone(), bare, it)));
    }
}

fn all_ports(out: &mut Problems, list: &FieldValue<'_>) {
    let items = list.items();
    let mut seen = BTreeSet::new();
    for it in &items {
        let name = it.get("name");
        if name.is_empty() {
            if items.len() > 1 {
                out.push(name.required(""));
            }
        } else {
            obey(out, &name, names::dns_label);
            if !seen.insert(name.text()) {
                out.push(name.duplicate());
            }
        }
        let number = it.get("port");
        if number.is_set() {
            port(out, &number);
        } else {
            port(out, &FieldValue { path: number.path, value: &Value::from(0) });
        }
        one_of(out, &it.get("protocol"), &PROTOCOLS);
        port_or_name(out, &it.get("targetPort"));
        if it.get("appProtocol").is_set() {
            obey(out, &it.get("appProtocol"), names::qualified_name);
        }
    }
}

/// Checks that each pair of protocol and port, and of protocol and node port, occurs only once.
fn unique_ports(out: &mut Problems, list: &FieldValue<'_>) {
    let mut node_ports = BTreeSet::new();
    for it in list.items() {
        let node = it.get("nodePort");
        if node.number() != 0 && !node_ports.insert((it.get("protocol").text(), node.number())) {
            out.push(duplicate(&it, false));
        }
    }
    let mut ports = BTreeSet::new();
    for it in list.items() {
        if !ports.insert((it.get("protocol").text(), it.get("port").number())) {
            out.push(duplicate(&it, true));
        }
    }
}

/// Makes the problem of a duplicate port: it shows only the fields that must be unique.
fn duplicate(it: &FieldValue<'_>, by_port: bool) -> ValidationProblem {
    let (port, node) =
        if by_port { (it.get("port").number(), 0) } else { (0, it.get("nodePort").number()) };
    let shown = json!({
        "Name": "", "Protocol": it.get("protocol").text(), "AppProtocol": null, "Port": port, "TargetPort": 0, "NodePort": node,
    });
    ValidationProblem::new(it.path.clone(), ProblemKind::Duplicate(shown))
}

fn cluster_ips(out: &mut Problems, spec: &FieldValue<'_>) {
    let (first, list) = (spec.get("clusterIP"), spec.get("clusterIPs"));
    let items = list.items();
    if !first.is_empty() && items.first().is_some_and(|it| it.text() != first.text()) {
        out.push(list.invalid("element [0] must match clusterIP"));
    }
    for family in spec.get("ipFamilies").items() {
        maybe_one_of(out, &family, &["IPv4", "IPv6"]);
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    maybe_one_of(out, &spec.get("ipFamilyPolicy"), &policies);
    for (at, ip) in items.iter().enumerate() {
        if at > 0 || ip.text() != "None" {
            obey(out, ip, names::ip);
        }
    }
    if items.len() > 2 {
        out.push(list.invalid("may only hold up to 2 values"));
    }
}

/// Checks that the cluster IP has not changed, unless the type changes from or to `ExternalName`.
fn same_address(out: &mut Problems, new: &FieldValue<'_>, old: &FieldValue<'_>) {
    let external = |it: &FieldValue<'_>| it.get("type").text() == "ExternalName";
    if external(new) || external(old) {
        return;
    }
    let list = new.get("clusterIPs");
    let (was, is) = (old.get("clusterIPs").items(), list.items());
    let Some(was) = was.first() else { return };
    let place = list.named("spec.clusterIPs[0]");
    match is.first() {
        None => out.push(place.invalid("primary clusterIP can not be unset")),
        Some(is) if is.text() != was.text() => {
            out.push(place.invalid("may not change once set"));
        }
        Some(_) => {}
    }
}

fn ranges(out: &mut Problems, spec: &FieldValue<'_>) {
    let ranges = spec.get("loadBalancerSourceRanges").named("spec.LoadBalancerSourceRanges");
    if ranges.is_empty() {
        return;
    }
    if spec.get("type").text() != "LoadBalancer" {
        out.push(ranges.forbidden("may only be used when `type` is 'LoadBalancer'"));
    }
    if ranges.items().iter().any(|it| super::network::cidr(it.text().trim()).is_none()) {
        let list: Vec<&str> = ranges.items().iter().map(FieldValue::text).collect();
        let shown = format!("[{}]", list.join(" "));
        let detail = "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ";
        out.push(ValidationProblem::invalid(ranges.path, shown, detail));
    }
}

fn traffic(out: &mut Problems, spec: &FieldValue<'_>) {
    let policy = spec.get("externalTrafficPolicy");
    let open = matches!(spec.get("type").text(), "LoadBalancer" | "NodePort");
    if !policy.is_empty() {
        if !["Cluster", "Local"].contains(&policy.text()) {
            let detail = "ExternalTrafficPolicy must be empty, Cluster or Local";
            out.push(policy.invalid(detail));
        }
        if !open {
            let detail = "may only be set for externally-accessible services";
            out.push(policy.invalid(detail));
        }
    }
    let check = spec.get("healthCheckNodePort");
    if check.number() < 0 {
        out.push(check.invalid("HealthCheckNodePort must be not less than 0"));
    }
}

pub(in crate::native) fn endpoints(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    for subset in FieldValue::root(new).get("subsets").items() {
        let lists = ["addresses", "notReadyAddresses"].map(|it| subset.get(it));
        if lists.iter().all(FieldValue::is_empty) {
            out.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in lists.iter().flat_map(FieldValue::items) {
            obey(&mut out, &address.get("ip"), names::ip);
            if !address.get("hostname").is_empty() {
                obey(&mut out, &address.get("hostname"), names::dns_label);
            }
            special(&mut out, &address.get("ip"));
        }
        let ports = subset.get("ports").items();
        for it in &ports {
            let name = it.get("name");
            if !name.is_empty() {
                obey(&mut out, &name, names::dns_label);
            } else if ports.len() > 1 {
                out.push(name.required(""));
            }
            port(&mut out, &it.get("port"));
            one_of(&mut out, &it.get("protocol"), &PROTOCOLS);
        }
    }
    out
}

/// Refuses addresses that other machines cannot reach: unspecified, loopback, link-local.
fn special(out: &mut Problems, ip: &FieldValue<'_>) {
    let Ok(parsed) = ip.text().parse::<std::net::IpAddr>() else {
        out.push(ip.invalid("must be a valid IP address"));
        return;
    };
    if parsed.is_unspecified() {
        out.push(ip.invalid("may not be unspecified (0.0.0.0)"));
    }
    if parsed.is_loopback() {
        out.push(ip.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if let std::net::IpAddr::V4(parsed) = parsed {
        if parsed.is_link_local() {
            out.push(ip.invalid("may not be in the link-local range (169.254.0.0/16)"));
        }
        if parsed.octets().starts_with(&[224, 0, 0]) {
            out.push(ip.invalid("may not be in the link-local multicast range (224.0.0.0/24)"));
        }
    }
}

pub(in crate::native) fn endpoint_slice(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let it = FieldValue::root(new);
    let kind = it.get("addressType");
    if kind.is_empty() {
        out.push(kind.required(""));
    } else {
        maybe_one_of(&mut out, &kind, &["FQDN", "IPv4", "IPv6"]);
    }
    for endpoint in it.get("endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            out.push(addresses.required("must contain at least 1 address"));
        }
        for address in addresses.items() {
            match kind.text() {
                "IPv4" => obey(&mut out, &address, names::ip_v4),
                "IPv6" => obey(&mut out, &address, names::ip_v6),
                _ => obey(&mut out, &address, names::dns_subdomain),
            }
        }
        if endpoint.get("hostname").is_set() {
            obey(&mut out, &endpoint.get("hostname"), names::dns_label);
        }
    }
    let mut seen = BTreeSet::new();
    for it in it.get("ports").items() {
        let name = it.get("name");
        if !name.is_empty() {
            obey(&mut out, &name, names::dns_label);
        }
        if !seen.insert(name.text()) {
            out.push(name.duplicate());
        }
        maybe_one_of(&mut out, &it.get("protocol"), &PROTOCOLS);
    }
    if let Some(old) = old {
        super::immutable(&mut out, &kind, &FieldValue::root(old).get("addressType"));
    }
    out
}
