//! `--as` and `--rbac`: the operator as a service account whose permissions are those of its manifests.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::json;

use super::{
    apply::Api,
    documents::{self, FileObject, NAMESPACE, text},
};
use crate::cli::{args::AccessArgs, report::Report};
use crate::sorted;
use kopf_apiserver::{ApiServer, User};

/// The kinds that are applied, in this order. Manifests of operators contain others, such as the Deployment.
const KINDS: [&str; 6] =
    ["Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"];

/// The resolved options of access.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct DevAccess {
    /// The user of the operator; `None`: without RBAC.
    user: Option<User>,
    /// Accounts, roles and bindings, with the namespaces that they need.
    documents: Vec<FileObject>,
}

impl DevAccess {
    /// Reads the files, and determines the service account.
    pub(in crate::cli) fn resolve(args: &AccessArgs) -> Result<Self, Report> {
        let mut documents = Vec::new();
        for path in &args.roles {
            for file in documents::files(path)? {
                documents.extend(documents::parse(&file, &documents::read(&file)?)?);
            }
        }
        documents.retain(|it| rank(it).is_some());
        if documents.is_empty() && !args.roles.is_empty() {
            let problem = "the files of --rbac contain no service accounts, roles or bindings";
            let hint = "pass the manifests that grant the operator its permissions";
            return Err(Report::failure(problem).with_hint(hint));
        }
        let user = match &args.user {
            Some(name) => Some(account(name)?),
            None if args.roles.is_empty() => None,
            None => Some(only_account(&documents)?),
        };
        let missing = user.as_ref().and_then(|it| missing_account(it, &documents));
        documents.extend(missing);
        let missing = missing_namespaces(&documents);
        documents.extend(missing);
        sorted::sort_by_key(&mut documents, rank);
        Ok(DevAccess { user, documents })
    }

    /// Returns whether the server restricts its users.
    pub(in crate::cli) fn is_enabled(&self) -> bool {
        self.user.is_some()
    }

    /// Returns the user of the operator; `None`: the administrator.
    pub(in crate::cli) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    pub(super) fn log(&self) {
        if let Some(user) = &self.user {
            tracing::info!(
                target: "kopf.dev",
                "RBAC is enabled, and the operator runs as {}. Other clients are administrators.",
                user.name
            );
        }
    }

    /// Creates the accounts, roles and bindings.
    pub(in crate::cli) async fn apply(&self, server: &ApiServer) -> Result<(), Report> {
        let api = Api::new(server.clone());
        for document in &self.documents {
            api.apply(document).await?;
        }
        Ok(())
    }
}

/// Returns a client of a server in this process.
pub(in crate::cli) fn client(server: ApiServer, user: Option<&User>) -> Client {
    match user {
        Some(user) => Client::new(server.client_of(user.clone()), NAMESPACE),
        None => Client::new(server, NAMESPACE),
    }
}

fn rank(document: &FileObject) -> Option<usize> {
    KINDS.iter().position(|it| *it == text(&document.object, "/kind"))
}

fn account(name: &str) -> Result<User, Report> {
    let user = User::named(name);
    if user.as_service_account().is_some() {
        return Ok(user);
    }
    let problem = format!("--as: not a service account: '{name}'");
    Err(Report::usage(problem).with_hint("write system:serviceaccount:NAMESPACE:NAME"))
}

/// Returns the account of the manifests, if they contain exactly one.
fn only_account(documents: &[FileObject]) -> Result<User, Report> {
    let accounts = documents.iter().filter(|it| text(&it.object, "/kind") == "ServiceAccount");
    let names: BTreeSet<String> = accounts
        .map(|it| User::service_account(namespace_of(it), text(&it.object, "/metadata/name")).name)
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    if let [name] = names.as_slice() {
        return Ok(User::named(name));
    }
    let problem = match names.as_slice() {
        [] => "the files of --rbac contain no service account".to_owned(),
        several => format!("the files of --rbac contain {} service accounts", several.len()),
    };
    let hint = match names.first() {
        None => {
            "name the account of the operator with --as system:serviceaccount:NAMESPACE:NAME".into()
        }
        Some(name) => format!("name the account of the operator with --as, such as --as {name}"),
    };
    Err(Report::failure(problem).with_hint(hint))
}

/// Returns the account of the operator if the files do not contain it: roles may be bound to a name only.
fn missing_account(user: &User, documents: &[FileObject]) -> Option<FileObject> {
    let (namespace, name) = user.as_service_account()?;
    let is_it = |it: &FileObject| {
        text(&it.object, "/kind") == "ServiceAccount"
            && text(&it.object, "/metadata/name") == name
            && namespace_of(it) == namespace
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "namespace": namespace, "name": name },
    });
    (!documents.iter().any(is_it)).then(|| FileObject { place: "--as".into(), object })
}

/// Returns the namespaces that the objects are in but the files do not contain: usually an installer creates them.
fn missing_namespaces(documents: &[FileObject]) -> Vec<FileObject> {
    let of_kind = |is_namespace: bool| {
        documents
            .iter()
            .filter(move |it| (text(&it.object, "/kind") == "Namespace") == is_namespace)
    };
    let present: BTreeSet<&str> =
        of_kind(true).map(|it| text(&it.object, "/metadata/name")).collect();
    let is_inside = |it: &&FileObject| !text(&it.object, "/kind").starts_with("Cluster");
    let needed: BTreeSet<&str> = of_kind(false).filter(is_inside).map(namespace_of).collect();
    let missing = needed.into_iter().filter(|it| !present.contains(it) && *it != NAMESPACE);
    let create = |name: &str| {
        let object =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        FileObject { place: format!("namespace {name}"), object }
    };
    missing.map(create).collect()
}

fn namespace_of(document: &FileObject) -> &str {
    let namespace = text(&document.object, "/metadata/namespace");
    if namespace.is_empty() { NAMESPACE } else { namespace }
}
