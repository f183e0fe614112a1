//! `kopf deploy` and `kopf undeploy`: an operator in a cluster, from its scripts.
//!
//! The applied objects come from `manifests/`. `api.rs` sends the requests, `rollout.rs` waits for pods, `release.rs` finds the objects
//! that have the finalizer of a removed operator, `former_roles.rs` finds the roles of earlier runs.

mod api;
pub mod args;
mod former_roles;
mod release;
mod rollout;

use std::time::Duration;

use serde_json::Value;

use self::{
    api::{Api, DeployResult, Location},
    args::{DeployArgs, RolloutArgs, UndeployArgs},
    former_roles::former_roles,
    release::FinalizedObjects,
    rollout::Rollout,
};
use crate::cli::{
    manifests::OperatorPackage,
    objects::session::connected,
    rbac::{self, Account, print},
    report::{Exit, Report},
    shared_args::{ContentArgs, InstallArgs},
};
use crate::logic::text::duration;

/// Kinds of which an operator may need fewer after an edit: more scripts become more `ConfigMap`s, for example.
const VARYING: [(&str, &str); 3] =
    [("v1", "ConfigMap"), ("v1", "Service"), ("policy/v1", "PodDisruptionBudget")];
/// The kinds that `kopf undeploy` keeps, because they contain objects of users.
const KEPT: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// The manifests of an operator, and the places of its objects in a cluster.
struct Installation<'a> {
    api: Api,
    operator: OperatorPackage<'a>,
    namespace: &'a str,
    limit: Duration,
    /// In the order in which they are applied.
    objects: Vec<(Location, Value)>,
}

/// Runs `kopf deploy`: applies the objects, removes obsolete ones, and waits for the pods.
pub(super) fn deploy(args: &DeployArgs) -> Result<Exit, Report> {
    let limit = limit(&args.rollout)?;
    let operator = OperatorPackage::of(&args.content)?;
    rbac::warn(&operator.needs.warnings);
    connected(async {
        let installation = (operator, &args.content.install, limit);
        let installation = Installation::open(installation, &args.rollout).await?;
        let mut changed = installation.apply(args.force, args.rollout.dry_run).await?;
        changed += installation.prune(args.rollout.dry_run).await?;
        if changed == 0 {
            print("No changes.\n");
        }
        if let (Some(place), false) =
            (installation.deployment(), args.rollout.dry_run || limit.is_zero())
        {
            let labels = installation.labels();
            let ready = installation.rollout(place, &labels).until_ready().await?;
            let Installation { operator, namespace, .. } = &installation;
            let pods = if ready == 1 { "1 pod is".to_owned() } else { format!("{ready} pods are") };
            print(&format!("{pods} ready. The log: kopf logs {} -n {namespace}\n", operator.name));
        }
        Ok(Exit::Success)
    })
}

/// Runs `kopf undeploy`: stops the pods, releases the objects that the operator has handled, and removes the installation.
pub(super) fn undeploy(args: &UndeployArgs) -> Result<Exit, Report> {
    let limit = limit(&args.rollout)?;
    let content = ContentArgs { install: args.install.clone(), ..ContentArgs::default() };
    let operator = OperatorPackage::of(&content)?;
    connected(async {
        let installation = (operator, &args.install, limit);
        let installation = Installation::open(installation, &args.rollout).await?;
        let is_dry = args.rollout.dry_run;
        if !args.force {
            let held =
                FinalizedObjects::by(&installation.operator.survey, &installation.api).await?;
            held.require_none_is_deleted()?;
        }
        if let (Some(place), false) = (installation.deployment(), is_dry) {
            installation.rollout(place, &installation.labels()).stop().await?;
        }
        let held = FinalizedObjects::by(&installation.operator.survey, &installation.api).await?;
        held.release(is_dry).await?;
        installation.remove(is_dry).await?;
        Ok(Exit::Success)
    })
}

impl<'a> Installation<'a> {
    async fn open(
        (operator, install, limit): (OperatorPackage<'a>, &'a InstallArgs, Duration),
        args: &RolloutArgs,
    ) -> Result<Self, Report> {
        let objects = operator.objects()?;
        let api = Api::open(&args.cluster, args.dry_run).await?;
        let placed = objects.into_iter().map(|it| Ok((api.place(&it)?, it)));
        let objects = placed.collect::<Result<Vec<_>, Report>>()?;
        let namespace = rbac::namespace(install)?;
        Ok(Installation { api, operator, namespace, limit, objects })
    }

    /// Applies all objects. Returns how many have changed.
    async fn apply(&self, force: bool, is_dry: bool) -> Result<usize, Report> {
        let mut count = 0;
        for (place, object) in &self.objects {
            // An existing namespace is not changed: others manage its labels and annotations.
            if object["kind"] == "Namespace" && self.api.get(place).await?.is_some() {
                continue;
            }
            let change = match self.api.apply(place, object, force).await? {
                DeployResult::Unchanged => continue,
                DeployResult::Created => "created",
                DeployResult::Configured => "configured",
            };
            let would = if is_dry { "would be " } else { "" };
            print(&format!("{} {would}{change}\n", place.shown()));
            count += 1;
        }
        Ok(count)
    }

    /// Deletes the objects that only an earlier version of the operator needed. Returns their number.
    async fn prune(&self, is_dry: bool) -> Result<usize, Report> {
        let left = self.left_over().await?;
        for place in &left {
            self.delete(place, is_dry).await?;
        }
        Ok(left.len())
    }

    /// Returns the objects with the labels of the operator, and roles of earlier runs, that are not in its manifests.
    async fn left_over(&self) -> Result<Vec<Location>, Report> {
        let mut left = Vec::new();
        for kind in VARYING {
            let found = self.api.list(kind, self.namespace, &self.labels()).await?;
            let places = found.into_iter().map(|(place, _)| place);
            left.extend(
                places.filter(|it| !self.objects.iter().any(|(own, _)| own.shown() == it.shown())),
            );
        }
        let account = Account { name: &self.operator.name, namespace: self.namespace };
        left.extend(former_roles(&self.api, &account, &self.objects).await?);
        Ok(left)
    }

    /// Deletes the objects that `deploy` has created, in reverse order.
    async fn remove(&self, is_dry: bool) -> Result<(), Report> {
        for place in self.left_over().await? {
            self.delete(&place, is_dry).await?;
        }
        let mut kept = Vec::new();
        for (place, object) in self.objects.iter().rev() {
            if KEPT.iter().any(|it| object["kind"] == *it) {
                if self.api.get(place).await?.is_some() {
                    kept.push(place.shown());
                }
            } else {
                self.delete(place, is_dry).await?;
            }
        }
        if !kept.is_empty() {
            kept.reverse();
            print(&format!(
                "Kept: {}. Delete them with kubectl if they are no longer needed.\n",
                kept.join(", ")
            ));
        }
        Ok(())
    }

    async fn delete(&self, place: &Location, is_dry: bool) -> Result<(), Report> {
        if self.api.delete(place).await? {
            let would = if is_dry { "would be " } else { "" };
            print(&format!("{} {would}deleted\n", place.shown()));
        }
        Ok(())
    }

    fn deployment(&self) -> Option<&Location> {
        let mut objects = self.objects.iter();
        objects.find(|(_, object)| object["kind"] == "Deployment").map(|(place, _)| place)
    }

    fn rollout<'b>(&'b self, place: &'b Location, labels: &'b str) -> Rollout<'b> {
        Rollout { api: &self.api, place, namespace: self.namespace, labels, limit: self.limit }
    }

    /// Returns the selector of the objects that `kopf manifests` generates.
    fn labels(&self) -> String {
        let name = &self.operator.name;
        format!("app.kubernetes.io/name={name},app.kubernetes.io/managed-by=kopf")
    }
}

fn limit(args: &RolloutArgs) -> Result<Duration, Report> {
    let text = args.timeout.as_str();
    let number = text.parse::<f64>().ok().map(Value::from);
    duration::parse(&number.unwrap_or_else(|| text.into())).ok_or_else(|| {
        Report::usage(format!("--timeout: not a duration: '{}'", text.escape_debug()))
            .with_hint("write it as seconds, or with a unit such as 5m")
    })
}
