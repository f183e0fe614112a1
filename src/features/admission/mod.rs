//! Webhooks: answers reviews, and keeps the webhook configurations of the cluster as the handlers need them.
//!
//! `reviewer.rs` calls the handlers for one review, `converter.rs` those of a conversion; `configurations.rs` writes to the cluster which
//! reviews the operator wants.
//! The reactor tells both which handlers are served; servers in `webhooks/` or in this process deliver the reviews.

mod configurations;
mod converter;
mod guarded;
mod reviewer;

pub use self::{
    configurations::{Configurations, Wanted},
    guarded::GuardedReviewer,
    reviewer::{AdmissionHandlers, OperatorReviewer, RecallMemo, Serving},
};
