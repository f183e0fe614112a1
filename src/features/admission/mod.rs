//! Webhooks: answers reviews, and keeps the webhook configurations of the cluster in line with the handlers.
//!
//! `reviewer.rs` calls the handlers for one review, `converter.rs` those of a conversion; `configurations.rs` writes the configurations.
//! The reactor sets the handlers of both; servers in `webhooks/` or in this process deliver the reviews.

mod configurations;
mod converter;
mod guarded;
mod reviewer;

pub use self::{
    configurations::{Configurations, DesiredWebhooks},
    guarded::GuardedReviewer,
    reviewer::{AdmissionHandlers, OperatorReviewer, RecallMemo, Serving},
};
