//! Validation of ingresses and network policies.

use std::net::IpAddr;

use serde_json::Value;

use super::{FieldValue, Problems, maybe_one_of, meta, names, obey, port, port_or_name};
use crate::refusal::ValidationProblem;

const NO_SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NO_ENDINGS: [&str; 2] = ["/..", "/."];

pub(in crate::native) fn ingress(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let root = FieldValue::root(new);
    let spec = root.get("spec");
    let (rules, fallback) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !fallback.is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        out.push(rules.named(spec.path.clone()).invalid(detail));
    }
    if fallback.is_set() {
        backend(&mut out, &fallback);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if !host.is_empty() {
            if host.text().parse::<IpAddr>().is_ok() {
                out.push(host.invalid("must be a DNS name, not an IP address"));
            }
            obey(&mut out, &host, host_rule(host.text()));
        }
        if rule.get("http").is_set() {
            paths(&mut out, &rule.get("http").get("paths"));
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            obey(&mut out, &host, host_rule(host.text()));
        }
        if !tls.get("secretName").is_empty() {
            obey(&mut out, &tls.get("secretName"), names::dns_subdomain);
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        obey(&mut out, &class, names::dns_subdomain);
    }
    let key = "kubernetes.io/ingress.class";
    let annotation = root.get("metadata").get("annotations").get(key);
    if old.is_none() && class.is_set() && annotation.is_set() && class.text() != annotation.text() {
        let path = format!("annotations.{key}");
        let detail = "must match `ingressClassName` when both are specified";
        out.push(ValidationProblem::invalid(path, annotation.text(), detail));
    }
    out
}

fn host_rule(host: &str) -> names::NameRule {
    if host.contains('*') { names::wildcard_subdomain } else { names::dns_subdomain }
}

fn paths(out: &mut Problems, list: &FieldValue<'_>) {
    if list.is_empty() {
        out.push(list.required(""));
    }
    for it in list.items() {
        let (kind, path) = (it.get("pathType"), it.get("path"));
        if !kind.is_set() {
            out.push(kind.required("pathType must be specified"));
            continue;
        }
        let absolute = path.text().starts_with('/');
        let exact = matches!(kind.text(), "Exact" | "Prefix");
        if !absolute && (exact || kind.text() == "ImplementationSpecific" && !path.is_empty()) {
            let detail = "must be an absolute path";
            out.push(ValidationProblem::invalid(path.path.clone(), path.text(), detail));
        }
        if exact {
            for wrong in NO_SEQUENCES.iter().filter(|it| path.text().contains(**it)) {
                out.push(path.invalid(format!("must not contain '{wrong}'")));
            }
            for wrong in NO_ENDINGS.iter().filter(|it| path.text().ends_with(**it)) {
                out.push(path.invalid(format!("cannot end with '{wrong}'")));
            }
        }
        maybe_one_of(out, &kind, &["Exact", "ImplementationSpecific", "Prefix"]);
        backend(out, &it.get("backend"));
    }
}

fn backend(out: &mut Problems, it: &FieldValue<'_>) {
    let (service, resource) = (it.get("service"), it.get("resource"));
    if service.is_set() && resource.is_set() {
        let detail = "cannot set both resource and service backends";
        out.push(ValidationProblem::invalid(it.path.clone(), "", detail));
    } else if resource.is_set() {
        for field in ["kind", "name"] {
            if resource.get(field).is_empty() {
                out.push(resource.get(field).required(""));
            }
        }
    } else if !service.is_set() {
        let detail = "resource or service backend is required";
        out.push(ValidationProblem::invalid(it.path.clone(), "", detail));
    } else {
        service_backend(out, it, &service);
    }
}

fn service_backend(out: &mut Problems, backend: &FieldValue<'_>, it: &FieldValue<'_>) {
    let name = it.get("name");
    if name.is_empty() {
        out.push(name.required(""));
    } else {
        obey(out, &name, names::dns_label);
    }
    let (text, number) = (it.get("port").get("name"), it.get("port").get("number"));
    if !text.is_empty() && number.number() != 0 {
        let detail = "cannot set both port name & port number";
        out.push(ValidationProblem::invalid(backend.path.clone(), "", detail));
    } else if !text.is_empty() {
        obey(out, &text, names::port_name);
    } else if number.number() != 0 {
        port(out, &number);
    } else {
        out.push(backend.required("port name or number is required"));
    }
}

pub(in crate::native) fn ingress_class(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let controller = spec.get("controller");
    if let Some(old) = old {
        super::immutable(
            &mut out,
            &controller,
            &FieldValue::root(old).get("spec").get("controller"),
        );
    }
    if controller.is_empty() {
        out.push(controller.required(""));
    } else if controller.text().len() > 250 {
        let kind = crate::refusal::ProblemKind::TooLong(controller.value.clone(), 250);
        out.push(ValidationProblem::new(controller.path.clone(), kind));
    } else {
        let text = controller.text();
        let parts = text.split_once('/');
        if !parts.is_some_and(|(domain, path)| {
            names::dns_subdomain(domain).is_empty() && !path.is_empty()
        }) {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            out.push(controller.invalid(detail));
        }
    }
    out
}

pub(in crate::native) fn policy(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    meta::selector(&mut out, &spec.get("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for it in rule.get("ports").items() {
                maybe_one_of(&mut out, &it.get("protocol"), &["TCP", "UDP", "SCTP"]);
                if it.get("port").is_set() {
                    port_or_name(&mut out, &it.get("port"));
                }
            }
            for peer in rule.get(peers).items() {
                self::peer(&mut out, &peer);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.items().len() > 2 {
        out.push(types.invalid("may not specify more than two policyTypes"));
        return out;
    }
    for it in types.items() {
        maybe_one_of(&mut out, &it, &["Ingress", "Egress"]);
    }
    out
}

fn peer(out: &mut Problems, it: &FieldValue<'_>) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if it.get(field).is_set() {
            count += 1;
            meta::selector(out, &it.get(field));
        }
    }
    let block = it.get("ipBlock");
    if block.is_set() {
        ip_block(out, &block);
        if count > 0 {
            out.push(it.forbidden("may not specify both ipBlock and another peer"));
        }
    } else if count == 0 {
        out.push(it.required("must specify a peer"));
    }
}

fn ip_block(out: &mut Problems, it: &FieldValue<'_>) {
    let range = it.get("cidr");
    if range.is_empty() {
        out.push(range.required(""));
        return;
    }
    let Some(outer) = cidr(range.text()) else {
        out.push(range.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
        return;
    };
    for except in it.get("except").items() {
        let Some(inner) = cidr(except.text()) else {
            out.push(
                except.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
            );
            return;
        };
        if outer.1 >= inner.1 || !same_prefix(outer.0, inner.0, outer.1) {
            out.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

/// Parses a CIDR: an address, and the length of the prefix in bits.
pub(super) fn cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (ip, bits) = text.split_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let bits: u32 = bits.parse().ok()?;
    (bits <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, bits))
}

fn same_prefix(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    let number = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    one.is_ipv4() == other.is_ipv4()
        && (bits == 0 || (number(one) ^ number(other)) >> (128 - bits) == 0)
}
