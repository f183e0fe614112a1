//! `kopf status`, `kopf retry`, `kopf release`, `kopf logs`, `kopf crds`: commands about the objects of an operator, which need not
//! run.

pub mod args;
mod logs;
mod operator;
mod output;
pub(super) mod session;
mod watch;

use bytes::Bytes;
use serde_json::Value;

pub(super) use self::logs::logs;
use self::{
    output::{print, rendered},
    session::{ObjectSession, connected, report},
};
use crate::cli::{
    objects::args::{CrdsArgs, ReleaseArgs, RetryArgs, StatusArgs, SuspendArgs},
    report::{Exit, Report},
};
use crate::logic::{
    background::posting::{self, Note},
    change::repair,
    object::Object,
};
use crate::ports::{Address, Clock, ErrorClass, NewObject, PatchKind, PatchRequest};
use crate::settings::{PREFIX, PersistenceSettings, PostingSettings};

/// Maximum number of attempts to remove a finalizer while others change the object.
const CONFLICTS_MAX: usize = 5;

/// The CRDs of peering.
const PEERING: &str = include_str!("../../../examples/peering.yaml");

/// Runs `kopf status`: prints the state of handlers by object, or the scripts of an operator.
pub(super) fn status(args: &StatusArgs) -> Result<Exit, Report> {
    let target = &args.objects.target;
    connected(async {
        if target.contains("://") {
            if args.watch {
                let report = Report::usage("--watch is for objects, not for an operator");
                return Err(report.with_hint("name a kind instead of a URL"));
            }
            print(&operator::scripts(target, args.output).await?);
            return Ok(Exit::Success);
        }
        let session = ObjectSession::open(&args.objects).await?;
        if args.watch {
            return watch::run(args, session).await;
        }
        print(&rendered(&session, args.output));
        Ok(Exit::Success)
    })
}

/// Runs `kopf retry`: retries handlers that have failed permanently or wait for a retry.
pub(super) fn retry(args: &RetryArgs) -> Result<Exit, Report> {
    let is_kind = !args.objects.target.contains('/');
    if is_kind != args.failed {
        let text =
            if is_kind { "a name or --failed is required" } else { "--failed is for a kind" };
        let hint = "write KIND/NAME for one object, or KIND --failed for all that have failed";
        return Err(Report::usage(text).with_hint(hint));
    }
    connected(async {
        let session = ObjectSession::open(&args.objects).await?;
        let mut count = 0_usize;
        for object in &session.objects {
            let body = object.body();
            let patch = if args.all { repair::anew(body) } else { repair::retry(body) };
            let Some(patch) = patch else { continue };
            let handlers: Vec<_> = repair::states(body).into_iter().map(|it| it.handler).collect();
            let handlers =
                if args.all { "as a new object".to_owned() } else { handlers.join(", ") };
            change(&session, object, patch, args.dry_run).await?;
            let done = if args.dry_run { "would be retried" } else { "retried" };
            print(&format!("{} {done}: {handlers}\n", session.shown(object)));
            count += 1;
        }
        match session.objects.as_slice() {
            [object] if count == 0 && !is_kind => {
                let what =
                    if args.all { "has never been handled" } else { "has no handler to retry" };
                let report = Report::failure(format!("{} {what}", session.shown(object)));
                let hint = "`kopf status` lists the handlers that failed; --all handles the object as a new one";
                Err(if args.all { report } else { report.with_hint(hint) })
            }
            _ if count == 0 => {
                print("No handler has failed or waits for a retry.\n");
                Ok(Exit::Success)
            }
            _ => Ok(Exit::Success),
        }
    })
}

/// Runs `kopf suspend` with the person who does it, `kopf unsuspend` without.
pub(super) fn suspend(args: &SuspendArgs, person: Option<&str>) -> Result<Exit, Report> {
    one_or_all(&args.objects.target, args.all)?;
    let message = args.message.clone().unwrap_or_default();
    connected(async {
        let session = ObjectSession::open(&args.objects).await?;
        let (mut count, what) =
            (0_usize, if person.is_some() { "suspended" } else { "unsuspended" });
        if let (Some(_), false, [object]) = (person, args.force || args.all, &*session.objects) {
            require_handled(&session, object)?;
        }
        for object in &session.objects {
            let reason = match (person, message.as_str()) {
                (Some(person), "") => format!("by {person}"),
                (Some(person), message) => format!("by {person}: {message}"),
                (None, _) => String::new(),
            };
            let patch = match person {
                Some(_) => repair::suspend(object.body(), &reason),
                None => repair::unsuspend(object.body()),
            };
            let Some(patch) = patch else { continue };
            change(&session, object, patch, args.dry_run).await?;
            if !args.dry_run {
                post_event(&session, object, what, &reason).await;
            }
            let would = if args.dry_run { "would be " } else { "" };
            print(&format!("{} {would}{what}\n", session.shown(object)));
            count += 1;
        }
        match session.objects.as_slice() {
            [object] if count == 0 && !args.all => {
                let state = if person.is_some() { "is already" } else { "is not" };
                Err(Report::failure(format!("{} {state} suspended", session.shown(object))))
            }
            _ if count == 0 => {
                print(&format!("No object to be {what}.\n"));
                Ok(Exit::Success)
            }
            _ => Ok(Exit::Success),
        }
    })
}

/// Rejects an object that no operator has handled: the user may have mistyped its name or its kind.
fn require_handled(session: &ObjectSession, object: &Object) -> Result<(), Report> {
    if repair::is_handled(object.body(), &PersistenceSettings::default().finalizer) {
        return Ok(());
    }
    let text = format!("no operator has ever handled {}", session.shown(object));
    Err(Report::failure(text).with_hint("--force suspends it nevertheless"))
}

/// Posts an event about the object. It is for people only, so a failure is a warning.
async fn post_event(session: &ObjectSession, object: &Object, what: &str, reason: &str) {
    let reference = session.resource.reference_to(object.header());
    let note = Note::new(
        "Normal",
        if reason.is_empty() { "Unsuspended" } else { "Suspended" },
        &format!("{what} {reason}"),
    );
    let (settings, now) = (PostingSettings::default(), Clock::system().now());
    let default = Some(session.cluster.default_namespace()).filter(|it| !it.is_empty());
    let Some(event) = posting::compose(&note, &reference, &settings, default, now) else { return };
    let resource = session::events();
    let request = NewObject {
        resource: &resource,
        namespace: Some(&event.namespace),
        payload: Bytes::from(event.body.to_string()),
        backoffs: Some(&[]),
    };
    if let Err(error) = session.cluster.create(request).await {
        tracing::warn!(target: "kopf.events", "Cannot post the event about it: {error}");
    }
}

/// Requires the name of an object, or `--all` for a kind.
fn one_or_all(target: &str, all: bool) -> Result<(), Report> {
    let is_kind = !target.contains('/');
    if is_kind == all {
        return Ok(());
    }
    let text = if is_kind { "a name or --all is required" } else { "--all is for a kind" };
    let hint = "write KIND/NAME for one object, or KIND --all for all of them";
    Err(Report::usage(text).with_hint(hint))
}

/// Runs `kopf release`: removes the finalizer and the annotations of an operator from objects.
pub(super) fn release(args: &ReleaseArgs) -> Result<Exit, Report> {
    one_or_all(&args.objects.target, args.all)?;
    let finalizer =
        args.finalizer.clone().unwrap_or_else(|| PersistenceSettings::default().finalizer);
    let prefix = args.prefix.as_deref().unwrap_or(PREFIX);
    connected(async {
        let session = ObjectSession::open(&args.objects).await?;
        let mut count = 0_usize;
        for object in &session.objects {
            let patch = |body: &Value| repair::release(body, &finalizer, prefix);
            if release_one(&session, object, patch, args.dry_run).await? {
                let done = if args.dry_run { "would be released" } else { "released" };
                print(&format!("{} {done}\n", session.shown(object)));
                count += 1;
            }
        }
        let left = format!("the finalizer {finalizer} or annotations {prefix}/…");
        match session.objects.as_slice() {
            [object] if count == 0 && !args.all => {
                let text = format!("{} does not have {left}", session.shown(object));
                Err(Report::failure(text).with_hint("name others with --finalizer and --prefix"))
            }
            _ if count == 0 => {
                print(&format!("No object has {left}\n"));
                Ok(Exit::Success)
            }
            _ => Ok(Exit::Success),
        }
    })
}

/// Runs `kopf crds`: prints the CRDs of peering.
pub(super) fn crds(args: &CrdsArgs) -> Result<Exit, Report> {
    if args.name != "peering" {
        let report = Report::usage(format!("there are no CRDs '{}'", args.name.escape_debug()));
        return Err(report.with_hint("`kopf crds peering` prints those of peering"));
    }
    print(PEERING);
    Ok(Exit::Success)
}

async fn change(
    session: &ObjectSession,
    object: &Object,
    patch: Value,
    is_dry: bool,
) -> Result<(), Report> {
    if is_dry {
        return Ok(());
    }
    session.cluster.patch(request(session.address(object), &patch)).await.map_err(report)?;
    Ok(())
}

/// Releases one object; returns whether there was something to release.
pub(super) async fn release_one(
    session: &ObjectSession,
    object: &Object,
    patch: impl Fn(&Value) -> Option<Value>,
    is_dry: bool,
) -> Result<bool, Report> {
    let address = session.address(object);
    let mut change = patch(object.body());
    let is_held = change.is_some();
    for attempt in 1.. {
        let Some(merge) = change.filter(|_| !is_dry) else { break };
        match session.cluster.patch(request(address, &merge)).await {
            // Without its last finalizer, it is gone.
            Ok(_) => break,
            Err(error) if error.class == ErrorClass::Missing => break,
            Err(error) if error.class == ErrorClass::Conflict && attempt < CONFLICTS_MAX => {
                let latest = session.cluster.get(address).await.map_err(report)?;
                change = patch(latest.body());
            }
            Err(error) => return Err(report(error)),
        }
    }
    Ok(is_held)
}

fn request<'a>(address: Address<'a>, patch: &Value) -> PatchRequest<'a> {
    PatchRequest {
        resource: address.resource,
        namespace: address.namespace,
        name: address.name,
        subresource: None,
        kind: PatchKind::Merge,
        payload: Bytes::from(patch.to_string()),
        interrupt: None,
    }
}
