//! `kopf logs`: the log of an operator that runs in a cluster, from all of its pods.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{
    args::LogsArgs,
    output::print,
    session::{self, connected, report},
};
use crate::cli::report::{Exit, Report};
use crate::logic::{object::resource::Resource, text::duration};
use crate::ports::{Cluster, Demand, Verb};

/// The label that `kopf manifests` sets on the pods of an operator.
const NAME: &str = "app.kubernetes.io/name";
/// The label of the pods of all operators.
const MANAGED: &str = "app.kubernetes.io/managed-by=kopf";

/// Runs `kopf logs`: prints the logs of the operator's pods.
pub(in crate::cli) fn logs(args: &LogsArgs) -> Result<Exit, Report> {
    let query = query(args)?;
    let selector = match (&args.selector, &args.name) {
        (Some(selector), _) => selector.clone(),
        (None, Some(name)) => format!("{NAME}={name}"),
        (None, None) => MANAGED.to_owned(),
    };
    connected(async {
        let cluster = session::connect(&args.cluster).await?;
        let own = args.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
        let pods = pods(&*cluster, own, &selector).await?;
        if pods.is_empty() {
            let text = format!(
                "no pod with the labels {} in the namespace '{own}'",
                selector.escape_debug()
            );
            return Err(Report::failure(text).with_hint(
                "name another namespace with -n, or the labels of the operator's pods with --selector",
            ));
        }
        let mut failed = Vec::new();
        for pod in &pods {
            let demand = demand(own, Some(pod), query.clone());
            match cluster.ask(demand).await {
                Ok(log) => print(&shown(&log, (pods.len() > 1).then_some(pod))),
                Err(error) => failed.push(error),
            }
        }
        match failed.pop() {
            Some(error) if failed.len() + 1 == pods.len() => Err(report(error)),
            Some(error) => {
                tracing::warn!(target: "kopf.client", "{error}");
                Ok(Exit::Success)
            }
            None => Ok(Exit::Success),
        }
    })
}

fn query(args: &LogsArgs) -> Result<Vec<(&'static str, String)>, Report> {
    let mut query = vec![("tailLines", args.tail.to_string())];
    if let Some(text) = &args.since {
        let number = text.parse::<f64>().ok().map(Value::from);
        let since = duration::parse(&number.unwrap_or_else(|| text.as_str().into()));
        let since = since.filter(|it| !it.is_zero()).ok_or_else(|| {
            Report::usage(format!("--since: not a duration: '{}'", text.escape_debug()))
                .with_hint("write it as seconds, or with a unit such as 10m")
        })?;
        query.push(("sinceSeconds", since.as_secs().max(1).to_string()));
    }
    if args.previous {
        query.push(("previous", "true".to_owned()));
    }
    Ok(query)
}

fn demand(namespace: &str, pod: Option<&str>, query: Vec<(&'static str, String)>) -> Demand {
    let resource = Resource {
        version: "v1".into(),
        plural: "pods".into(),
        kind: "Pod".into(),
        namespaced: true,
        ..Resource::default()
    };
    Demand {
        verb: if pod.is_some() { Verb::Get } else { Verb::List },
        resource: Arc::new(resource),
        namespace: Some(namespace.to_owned()),
        name: pod.map(str::to_owned),
        subresource: pod.map(|_| "log".to_owned()),
        query,
        content: None,
    }
}

/// Returns the names of the pods with these labels.
async fn pods(
    cluster: &dyn Cluster,
    namespace: &str,
    selector: &str,
) -> Result<Vec<String>, Report> {
    let demand = demand(namespace, None, vec![("labelSelector", selector.to_owned())]);
    let response = cluster.ask(demand).await.map_err(report)?;
    let list = serde_json::from_slice::<Value>(&response);
    let list = list.map_err(|it| Report::failure(format!("the list of pods is invalid: {it}")))?;
    let items = list.get("items").and_then(Value::as_array);
    let names = items.into_iter().flatten().filter_map(|it| it.pointer("/metadata/name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Returns the lines of a log, which cannot move the cursor of a terminal. Those of several pods begin with the name of the pod.
fn shown(log: &Bytes, pod: Option<&String>) -> String {
    let text = String::from_utf8_lossy(log);
    let prefix = pod.map(|it| format!("[{it}] ")).unwrap_or_default();
    let mut shown = String::new();
    for line in text.lines() {
        shown.push_str(&prefix);
        for character in line.chars() {
            match character {
                '\t' => shown.push('\t'),
                it if it.is_control() => shown.extend(it.escape_default()),
                it => shown.push(it),
            }
        }
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Bytes, shown};

    #[test]
    fn a_log_cannot_move_the_cursor() {
        let log = Bytes::from_static(b"one\r\n\x1b[2Ktwo\tx\xff");
        assert_eq!(shown(&log, None), "one\n\\u{1b}[2Ktwo\tx\u{fffd}\n");
        assert_eq!(
            shown(&log, Some(&"pod-1".to_owned())),
            "[pod-1] one\n[pod-1] \\u{1b}[2Ktwo\tx\u{fffd}\n"
        );
    }
}
