//! Decides which children to apply and which to delete.

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use super::{AppliedChild, Child, KnownChildren, Observed, content, digest_text, shown};
use crate::sorted::CollectSorted as _;

/// How long an applied child may be missing in the watch before it is applied again.
pub const UNSEEN_MAX: Duration = Duration::from_secs(10);

/// The children to apply and to delete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildrenPlan {
    /// In the order of the result of the function.
    pub applies: Vec<Apply>,
    /// Indexes of the observed children to delete, after everything was applied.
    pub prunes: Vec<usize>,
    /// When to check again, because the watch may have missed an event.
    pub recheck: Option<Duration>,
}

/// One child to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The index of the child.
    pub child: usize,
    /// The index of the observed child, if the watch shows it: then it belongs to the handler and its object.
    pub present: Option<usize>,
    /// The label of the handler that has applied it before under another id.
    pub former: Option<String>,
}

/// Plans the next requests. Updates the known state of the children from the watch. `label` is that of the handler.
///
/// # Errors
/// Fails if two children are the same object.
pub fn plan(
    children: &[Child],
    observed: &[Observed],
    known: &mut KnownChildren,
    (label, now): (&str, Duration),
) -> Result<ChildrenPlan, String> {
    let mut plan = ChildrenPlan::default();
    let mut wanted = BTreeMap::new();
    let by_key: BTreeMap<_, _> =
        observed.iter().enumerate().map(|(index, it)| (it.key.as_str(), (index, it))).collect_map();
    for (index, child) in children.iter().enumerate() {
        let key = child.key.as_str();
        if let Some(first) = wanted.insert(key, &child.path) {
            let what = shown(&child.resource, child.namespace.as_deref(), &child.name);
            return Err(format!("{}: {what} is already wanted by {first}", child.path));
        }
        match by_key.get(key) {
            // After its deletion, the function is called again.
            Some((_, present)) if present.is_ending() => {}
            Some((place, present)) => {
                let former = present.handler().filter(|it| *it != label).map(str::to_owned);
                if former.is_some() || is_outdated(child, present, known.get_mut(key)) {
                    plan.applies.push(Apply { child: index, present: Some(*place), former });
                } else if known.get(key).is_none() {
                    known.insert(key, seen(child, present, now));
                }
            }
            None => match known.get(key).filter(|it| !it.is_seen && it.digest == child.digest) {
                Some(own) if now < Duration::from(own.at).saturating_add(UNSEEN_MAX) => {
                    let due = Duration::from(own.at).saturating_add(UNSEEN_MAX);
                    plan.recheck = Some(plan.recheck.map_or(due, |it| it.min(due)));
                }
                Some(_) | None => plan.applies.push(Apply { child: index, ..Apply::default() }),
            },
        }
    }
    let is_unwanted =
        |(_, it): &(usize, &Observed)| !it.is_ending() && !wanted.contains_key(it.key.as_str());
    plan.prunes = observed.iter().enumerate().filter(is_unwanted).map(|(index, _)| index).collect();
    known.retain(|key| wanted.contains_key(key));
    Ok(plan)
}

/// Returns whether the watch shows a child as it was when it was applied, or when it was last seen as wanted; also if it shows the child
/// as it was before: another event follows.
pub fn is_unchanged(present: &Observed, known: &mut KnownChildren) -> bool {
    let Some(own) = known.get_mut(&present.key).filter(|_| !present.is_ending()) else {
        return false;
    };
    if is_older(present, own) {
        return true;
    }
    let fingerprint = present.object.fingerprint();
    // A restored server may show another text of the same version.
    let is_unchanged = match own.fingerprint {
        Some(known) => fingerprint == Some(known),
        None => version_of(present).is_some_and(|it| own.version == Some(it)),
    };
    if is_unchanged {
        (own.is_seen, own.fingerprint) = (true, fingerprint);
    }
    is_unchanged
}

/// Returns whether the watch shows a child as it was before it was applied.
fn is_older(present: &Observed, own: &AppliedChild) -> bool {
    version_of(present).zip(own.version).is_some_and(|(seen, own)| seen < own)
}

fn version_of(present: &Observed) -> Option<NonZeroU64> {
    present.version().and_then(|it| it.parse().ok())
}

/// Returns whether a child must be applied: its wanted body has changed, or another client has changed the child.
fn is_outdated(child: &Child, present: &Observed, known: Option<&mut AppliedChild>) -> bool {
    if let Some(own) = known.filter(|it| it.digest == child.digest) {
        if is_older(present, own) {
            return false;
        }
        own.is_seen = true;
        let fingerprint = present.object.fingerprint();
        if fingerprint.is_some() && fingerprint == own.fingerprint {
            return false;
        }
        if present.has_all_of(child) {
            (own.content, own.fingerprint) = (content_of(child, present), fingerprint);
            return false;
        }
        if own.content.is_some_and(|it| it == content(present.body())) {
            own.fingerprint = fingerprint;
            return false;
        }
        return true;
    }
    present.digest() != Some(&digest_text(child.digest)) || !present.has_all_of(child)
}

/// Returns the result of [`super::content_after`] for an object that has all fields that are applied to a child.
fn content_of(child: &Child, present: &Observed) -> Option<NonZeroU64> {
    child.body.get("status").map(|_| content(present.body()))
}

/// Returns the known state of a child that was applied before the operator was started.
fn seen(child: &Child, present: &Observed, now: Duration) -> AppliedChild {
    AppliedChild {
        digest: child.digest,
        content: content_of(child, present),
        fingerprint: present.object.fingerprint(),
        version: version_of(present),
        is_seen: true,
        at: now.into(),
    }
}
