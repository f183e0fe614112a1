//! Schedules of the operator: when `kopf.every` and `kopf.cron` run, and what their Lease stores.
//!
//! `cron/` computes the times of cron expressions, `slots/` reads and writes the Lease, `due/` decides. `features/schedules/` has the clock
//! and sends the requests.

pub mod cron;
pub mod due;
pub mod slots;

pub use self::cron::{Cron, CronError};
