//! Columns of Services and other kinds of the network.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Column, Layout,
    row::{NONE, TableRow, first_of, join, number, or_none},
};
use crate::object::{list, text};

/// Limit of addresses, hosts and ports in a cell; further ones are counted.
const SHOWN: usize = 3;

pub(super) static SERVICES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Type"),
        Column::text("Cluster-IP"),
        Column::text("External-IP"),
        Column::text("Port(s)"),
        Column::AGE,
        Column::wide("Selector"),
    ],
    |row| {
        let own = row.list("/spec/clusterIPs").first().and_then(Value::as_str);
        let own = own.unwrap_or_else(|| row.text_or("/spec/clusterIP", NONE));
        let ports = row.list("/spec/ports").iter().map(|it| {
            let (port, protocol) = (number(it, "/port"), text(it, "/protocol"));
            match number(it, "/nodePort") {
                0 => format!("{port}/{protocol}"),
                outside => format!("{port}:{outside}/{protocol}"),
            }
        });
        vec![
            row.name(),
            row.text("/spec/type").into(),
            own.into(),
            external(row).into(),
            or_none(join(ports, ",")).into(),
            row.age(),
            row.labels("/spec/selector").into(),
        ]
    },
);

fn external(row: &TableRow<'_>) -> String {
    let given = row.list("/spec/externalIPs").iter().filter_map(Value::as_str);
    match row.text("/spec/type") {
        "ClusterIP" | "NodePort" => or_none(join(given, ",")),
        "LoadBalancer" => {
            let balanced = balanced(row);
            let all: Vec<&str> = balanced.iter().copied().chain(given).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        "ExternalName" => row.text("/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

/// Returns the addresses and names of a load balancer, sorted.
fn balanced<'a>(row: &TableRow<'a>) -> BTreeSet<&'a str> {
    let address = |it: &'a Value| match (text(it, "/ip"), text(it, "/hostname")) {
        ("", host) => host,
        (ip, _) => ip,
    };
    let ingress = row.list("/status/loadBalancer/ingress").iter();
    ingress.map(address).filter(|it| !it.is_empty()).collect()
}

pub(super) static ENDPOINTS: Layout =
    Layout::new(&[Column::NAME, Column::text("Endpoints"), Column::AGE], |row| {
        vec![row.name(), endpoints(row).into(), row.age()]
    });

fn endpoints(row: &TableRow<'_>) -> String {
    let subsets = row.list("/subsets");
    if subsets.is_empty() {
        return NONE.into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(subset, "/addresses").iter().map(|it| text(it, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(String::from));
        }
        for port in ports {
            let port = number(port, "/port");
            all.extend(addresses().map(|it| {
                if it.contains(':') { format!("[{it}]:{port}") } else { format!("{it}:{port}") }
            }));
        }
    }
    first_of(&all, SHOWN, ",")
}

pub(super) static ENDPOINT_SLICES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("AddressType"),
        Column::text("Ports"),
        Column::text("Endpoints"),
        Column::AGE,
    ],
    |row| {
        let ports = row.list("/ports").iter().map(|it| match (it.get("port"), it.get("name")) {
            (Some(Value::Number(port)), _) => port.to_string(),
            (_, Some(Value::String(name))) => name.clone(),
            _ => "*".into(),
        });
        let addresses = row.list("/endpoints").iter().flat_map(|it| list(it, "/addresses"));
        let addresses = addresses.filter_map(Value::as_str).map(String::from);
        let shown = |all: Vec<String>| match all.as_slice() {
            [] => "<unset>".into(),
            all => first_of(all, SHOWN, ","),
        };
        vec![
            row.name(),
            row.text("/addressType").into(),
            shown(ports.collect()).into(),
            shown(addresses.collect()).into(),
            row.age(),
        ]
    },
);

pub(super) static INGRESSES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Class"),
        Column::text("Hosts"),
        Column::text("Address"),
        Column::text("Ports"),
        Column::AGE,
    ],
    |row| {
        let secured = !row.list("/spec/tls").is_empty();
        vec![
            row.name(),
            row.get("/spec/ingressClassName").and_then(Value::as_str).unwrap_or(NONE).into(),
            hosts(row.list("/spec/rules")).into(),
            join(balanced(row), ",").into(),
            if secured { "80, 443" } else { "80" }.into(),
            row.age(),
        ]
    },
);

/// Formats the hosts of rules. Rules without a host are counted only if hosts are left out.
fn hosts(rules: &[Value]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for rule in rules {
        if shown.len() == SHOWN {
            let more = rules.len().saturating_sub(SHOWN);
            return format!("{} + {more} more...", shown.join(","));
        }
        shown.extend(Some(text(rule, "/host")).filter(|it| !it.is_empty()));
    }
    if shown.is_empty() { "*".into() } else { shown.join(",") }
}

pub(super) static INGRESS_CLASSES: Layout = Layout::new(
    &[Column::NAME, Column::text("Controller"), Column::text("Parameters"), Column::AGE],
    |row| {
        let parameters = row.get("/spec/parameters").map_or_else(
            || NONE.into(),
            |it| {
                let [kind, name, group] =
                    ["/kind", "/name", "/apiGroup"].map(|path| text(it, path));
                match group {
                    "" => format!("{kind}/{name}"),
                    group => format!("{kind}.{group}/{name}"),
                }
            },
        );
        vec![row.name(), row.text("/spec/controller").into(), parameters.into(), row.age()]
    },
);

pub(super) static NETWORK_POLICIES: Layout =
    Layout::new(&[Column::NAME, Column::text("Pod-Selector"), Column::AGE], |row| {
        vec![row.name(), row.selector("/spec/podSelector").into(), row.age()]
    });
