//! `kopf rbac verify`: checks with a server each permission that an operator needs.
//!
//! The server is the cluster, or an embedded one that has the roles of the manifests: both decide by themselves.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};

use super::{
    needs::Needs,
    output::{print, warn},
    permissions::{PermissionScope, PermissionTarget},
    survey::Survey,
};
use crate::cli::{
    args::{AccessArgs, RbacVerifyArgs},
    dev,
    options::{self, ScopeOption},
    report::{Exit, Report},
};
use crate::cluster::{ConnectOptions, KubeCluster};
use crate::ports::{self, Clock, Cluster as _, Demand};
use crate::settings::Settings;
use kopf_apiserver::ApiServer;

/// A permission, and whether it is present.
struct PermissionLine {
    is_present: bool,
    text: String,
    reasons: Vec<String>,
}

/// Prints which permissions are present. Fails if any is missing.
pub(in crate::cli) fn verify(args: &RbacVerifyArgs) -> Result<Exit, Report> {
    let survey = Survey::of(&args.install)?;
    let needs = Needs::of(&survey, &args.install)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
    let lines = runtime.block_on(async {
        let cluster = connect(args).await?;
        lines(&cluster, &needs, &namespaces(&survey, args)).await
    });
    runtime.shutdown_background();
    let lines = lines?;
    warn(&needs.warnings);
    print(&text(&lines));
    let is_complete = lines.iter().all(|it| it.is_present);
    Ok(if is_complete { Exit::Success } else { Exit::Failure })
}

async fn connect(args: &RbacVerifyArgs) -> Result<KubeCluster, Report> {
    let settings = Arc::new(Settings::default());
    if args.is_live {
        let overrides = options::overrides(args.cluster.clone());
        let clock = Clock::system();
        let options = ConnectOptions { settings, overrides, clock, ..ConnectOptions::default() };
        return KubeCluster::connect(options).await.map_err(|error| {
            let report = Report::failure(format!("cannot query the cluster: {error}"));
            match error.hint {
                Some(hint) => report.with_hint(hint),
                None => report,
            }
        });
    }
    let access = AccessArgs { user: args.cluster.user.clone(), roles: args.files.clone() };
    let access = dev::DevAccess::resolve(&access)?;
    let server = ApiServer::builder().cluster(true).rbac(true).build();
    access.apply(&server).await?;
    Ok(KubeCluster::over(dev::client(server, access.user()), settings))
}

/// The namespaces to check: the served ones, and that of the operator.
struct Namespaces {
    /// The namespaces of the served objects; one empty name stands for the whole cluster.
    served: Vec<String>,
    own: String,
}

fn namespaces(survey: &Survey, args: &RbacVerifyArgs) -> Namespaces {
    let served = match &survey.options.scope {
        ScopeOption::Namespaces(patterns) => patterns.clone(),
        ScopeOption::Cluster | ScopeOption::Unsaid => vec![String::new()],
    };
    // The name of a service account contains its namespace.
    let account = args.cluster.user.as_deref().and_then(|it| it.split(':').nth(2));
    let own = args.install.namespace.as_deref().or(account).unwrap_or(dev::NAMESPACE);
    Namespaces { served, own: own.to_owned() }
}

async fn lines(
    cluster: &KubeCluster,
    needs: &Needs,
    namespaces: &Namespaces,
) -> Result<Vec<PermissionLine>, Report> {
    let mut lines = Vec::new();
    for (target, grounds) in needs.permissions.iter() {
        let places = match target.place {
            PermissionScope::Cluster => vec![""],
            PermissionScope::Served => namespaces.served.iter().map(String::as_str).collect(),
            PermissionScope::Own => vec![namespaces.own.as_str()],
        };
        for namespace in places {
            for verb in grounds.verbs() {
                let is_present = is_allowed(cluster, target, verb, namespace).await?;
                let dotted = if target.group.is_empty() { "" } else { "." };
                let place = if namespace.is_empty() {
                    String::new()
                } else {
                    format!(" in namespace {namespace}")
                };
                let text = format!("{verb} {}{dotted}{}{place}", target.resource, target.group);
                let reasons = grounds.reasons.iter().cloned().collect();
                lines.push(PermissionLine { is_present, text, reasons });
            }
        }
    }
    Ok(lines)
}

async fn is_allowed(
    cluster: &KubeCluster,
    target: &PermissionTarget,
    verb: &str,
    namespace: &str,
) -> Result<bool, Report> {
    let (resource, below) = target.resource.split_once('/').unwrap_or((&target.resource, ""));
    let attributes = json!({
        "verb": verb,
        "group": target.group,
        "resource": resource,
        "subresource": below,
        "namespace": namespace,
    });
    let answer = cluster.ask(Demand::access_review(&attributes)).await;
    let answer =
        answer.map_err(|it| Report::failure(format!("cannot query the API server: {it}")))?;
    let review: Value = serde_json::from_slice(&answer).map_err(|it| {
        Report::failure(format!("the response of the API server is invalid: {it}"))
    })?;
    Ok(ports::is_allowed(&review))
}

fn text(lines: &[PermissionLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let word = if line.is_present { "present" } else { "missing" };
        // Writing to a string cannot fail.
        let _fits = write!(text, "{word}  {}", line.text);
        let _fits = match line.reasons.as_slice() {
            [first] => writeln!(text, "  ({first})"),
            [first, others @ ..] => writeln!(text, "  ({first}, and {} more)", others.len()),
            [] => writeln!(text),
        };
    }
    let missing = lines.iter().filter(|it| !it.is_present).count();
    let _fits = writeln!(text, "{} permissions, {missing} missing", lines.len());
    text
}
