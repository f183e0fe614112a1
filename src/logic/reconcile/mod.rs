//! Decides the actions of a reconcile handler: reads the result of its function, compares it with the children that exist, and plans which
//! to apply and which to delete.

mod child;
mod known;
mod matching;
mod pace;
mod plan;
mod status;
#[cfg(test)]
mod tests;
mod wanted;

pub use self::{
    child::{Child, Family, Observed, identity_of, manager, parent_of, shown},
    known::{AppliedChild, KnownChildren},
    matching::{contains, content, content_after, digest_text},
    pace::{Pace, Slow},
    plan::{Apply, ChildrenPlan, UNSEEN_MAX, is_unchanged, plan},
    status::changes,
    wanted::{DesiredState, Manifest, check_finalized},
};
