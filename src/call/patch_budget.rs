//! The memory of the changes that one script has requested for all its objects, and that are not sent yet.
//!
//! The patch of one object is limited, but a script may handle thousands of objects at once. So all its patches, with the results in
//! them, have a limit together. Long before it is reached, calls wait for patches to be sent before they begin.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time};

/// Calls wait while the patches take this part (one divided by it) of their limit.
const OPEN_PART: usize = 4;
/// Maximum time for which a call waits: a server that accepts no patches must not stop the script.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The bytes of all patches of one script that are not sent yet.
#[derive(Debug)]
pub struct PatchBudget {
    limit: usize,
    held: AtomicUsize,
    /// Wakes the next call that waits.
    released: Notify,
}

/// The bytes that are counted for one patch, by script. They are released when this is dropped.
#[derive(Debug, Default)]
pub struct PatchCharges(Vec<Charge>);

#[derive(Debug)]
struct Charge {
    budget: Arc<PatchBudget>,
    bytes: usize,
}

impl PatchBudget {
    /// Returns the budget of a script whose patches may hold `limit` bytes.
    pub fn new(limit: usize) -> Self {
        PatchBudget { limit, held: AtomicUsize::new(0), released: Notify::new() }
    }

    /// Returns the bytes of all patches.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Waits until patches have been sent, but not longer than 10 s. Of several calls that wait, one after another begins.
    pub async fn wait(self: Arc<Self>) {
        let opened = async {
            while !self.is_open() {
                self.released.notified().await;
            }
        };
        // After this time, the call begins anyway.
        time::timeout(WAIT_MAX, opened).await.ok();
        // The next call looks once this one has begun.
        self.released.notify_one();
    }

    /// Returns whether calls may begin.
    pub fn is_open(&self) -> bool {
        self.held() < self.limit / OPEN_PART
    }

    /// Adds bytes, if they fit.
    fn take(&self, bytes: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|it| *it <= self.limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn release(&self, bytes: usize) {
        let was_open = self.held.fetch_sub(bytes, Ordering::Relaxed) < self.limit / OPEN_PART;
        if !was_open && self.is_open() {
            self.released.notify_one();
        }
    }
}

impl PatchCharges {
    /// Returns whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|it| it.bytes == 0)
    }

    /// Counts a patch as `bytes` in total; a script pays for what the others do not pay for. Returns whether they fit.
    pub fn set_total(&mut self, budget: &Arc<PatchBudget>, bytes: usize) -> bool {
        let is_other = |it: &&Charge| !Arc::ptr_eq(&it.budget, budget);
        let others: usize = self.0.iter().filter(is_other).map(|it| it.bytes).sum();
        let mut own = self.remove(budget);
        let bytes = bytes.saturating_sub(others);
        let fits = budget.take(bytes.saturating_sub(own.bytes));
        if fits {
            budget.release(own.bytes.saturating_sub(bytes));
            own.bytes = bytes;
        }
        self.0.push(own);
        fits
    }

    /// Counts more bytes of a script. Returns whether they fit.
    pub fn add(&mut self, budget: &Arc<PatchBudget>, bytes: usize) -> bool {
        let fits = budget.take(bytes);
        if fits {
            let own = self.remove(budget);
            self.0.push(own.and(bytes));
        }
        fits
    }

    /// Reduces what is counted to `bytes` in total: a newer patch has replaced parts of an older one.
    pub fn reduce_to(&mut self, bytes: usize) {
        let all: usize = self.0.iter().map(|it| it.bytes).sum();
        let mut excess = all.saturating_sub(bytes);
        for charge in &mut self.0 {
            let released = excess.min(charge.bytes);
            charge.budget.release(released);
            charge.bytes -= released;
            excess -= released;
        }
    }

    /// Adds the bytes of another patch, which becomes a part of this one.
    pub fn absorb(&mut self, mut others: PatchCharges) {
        for mut other in others.0.drain(..) {
            let own = self.remove(&other.budget);
            self.0.push(own.and(std::mem::take(&mut other.bytes)));
        }
    }

    /// Takes out what is counted for a script; zero bytes if that is new.
    fn remove(&mut self, budget: &Arc<PatchBudget>) -> Charge {
        let place = self.0.iter().position(|it| Arc::ptr_eq(&it.budget, budget));
        let new = || Charge { budget: Arc::clone(budget), bytes: 0 };
        place.map_or_else(new, |it| self.0.swap_remove(it))
    }
}

impl Charge {
    /// Returns it with more bytes, which the budget has counted already.
    fn and(mut self, bytes: usize) -> Self {
        self.bytes += bytes;
        self
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::{Arc, PatchBudget, PatchCharges, WAIT_MAX};

    fn budget() -> Arc<PatchBudget> {
        Arc::new(PatchBudget::new(100))
    }

    #[test]
    fn a_script_pays_for_the_part_of_a_patch_that_others_do_not_pay_for() {
        let (one, other) = (budget(), budget());
        let mut charges = PatchCharges::default();
        assert!(charges.is_empty());
        assert!(charges.set_total(&one, 60));
        assert!(charges.set_total(&other, 70));
        assert_eq!((one.held(), other.held()), (60, 10));
        assert!(charges.set_total(&one, 40));
        assert_eq!((one.held(), other.held()), (30, 10));
        assert!(charges.add(&one, 20));
        drop(charges);
        assert_eq!((one.held(), other.held()), (0, 0));
    }

    #[test]
    fn what_does_not_fit_is_not_counted() {
        let budget = budget();
        let (mut first, mut second) = (PatchCharges::default(), PatchCharges::default());
        assert!(first.set_total(&budget, 90));
        assert!(!second.add(&budget, 11));
        assert!(!second.set_total(&budget, 11));
        assert!(second.is_empty());
        assert!(second.add(&budget, 10));
        assert_eq!(budget.held(), 100);
    }

    #[test]
    fn a_patch_that_becomes_part_of_another_counts_there() {
        let (one, other) = (budget(), budget());
        let (mut whole, mut part) = (PatchCharges::default(), PatchCharges::default());
        assert!(whole.add(&one, 10) && part.add(&one, 20) && part.add(&other, 5));
        whole.absorb(part);
        assert_eq!((one.held(), other.held()), (30, 5));
        drop(whole);
        assert_eq!((one.held(), other.held()), (0, 0));
    }

    #[test]
    fn what_a_newer_patch_has_replaced_is_released() {
        let (one, other) = (budget(), budget());
        let mut charges = PatchCharges::default();
        assert!(charges.add(&one, 30) && charges.add(&other, 20));
        charges.reduce_to(60);
        assert_eq!((one.held(), other.held()), (30, 20));
        charges.reduce_to(15);
        assert_eq!(one.held() + other.held(), 15);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_wait_begin_one_after_another() {
        let budget = budget();
        let mut large = PatchCharges::default();
        assert!(large.add(&budget, 30));
        let wait = || Box::pin(Arc::clone(&budget).wait());
        let (mut first, mut second) = (wait(), wait());
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        drop(large);
        assert!((&mut first).now_or_never().is_some());
        // The first one has begun meanwhile, and has requested much.
        let mut next = PatchCharges::default();
        assert!(next.add(&budget, 25));
        assert!((&mut second).now_or_never().is_none());
        drop(next);
        assert!((&mut second).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_begins_at_last_if_nothing_is_sent() {
        let budget = budget();
        let mut stays = PatchCharges::default();
        assert!(stays.add(&budget, 30));
        let began = tokio::time::Instant::now();
        Arc::clone(&budget).wait().await;
        assert_eq!(began.elapsed(), WAIT_MAX);
    }
}
