//! The stop flag of one daemon or timer: the kwarg `stopped`.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::{Mutex, MutexGuard};

use crate::logic::background::stopping::{StopReason, StopReasons};
use crate::ports::{BoxFuture, Edits};

/// The flag that the operator sets and the script reads. Clones share it.
///
/// There may be many thousands of these flags, and most of them have a waiting task: the flag is small, and each waiting task keeps
/// only a clone.
#[derive(Clone, Debug, Default)]
pub struct Stopped(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    reasons: AtomicU16,
    slots: Mutex<WakerSlots>,
}

/// One slot per [`StopWaiter`]. Released slots are empty and reused.
#[derive(Debug, Default)]
struct WakerSlots {
    first: Option<Waker>,
    /// Allocated only for more than one waiting task, which is rare.
    others: Option<Box<Others>>,
}

#[derive(Debug, Default)]
struct Others(Vec<Option<Waker>>);

/// One task that waits for stop reasons.
#[derive(Debug)]
pub struct StopWaiter {
    stopped: Stopped,
    slot: Option<u32>,
}

impl Stopped {
    /// Adds a reason and wakes all waiting tasks. Returns whether the reason is new.
    ///
    /// Adds nothing after [`StopReason::Done`]: a daemon or timer that has ended by itself has no other reason.
    pub fn set(&self, reason: StopReason) -> bool {
        let add = |known| {
            let known = StopReasons::from_bits(known);
            let is_news = !known.contains(reason) && !known.contains(StopReason::Done);
            is_news.then(|| known.with(reason).bits())
        };
        let is_new = self.0.reasons.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        if is_new {
            // Woken without the lock, because a woken task may take it.
            let waiting: Vec<_> = self.0.lock().wakers().cloned().collect();
            waiting.into_iter().for_each(Waker::wake);
        }
        is_new
    }

    /// Returns the reasons so far.
    pub fn reasons(&self) -> StopReasons {
        StopReasons::from_bits(self.0.reasons.load(Ordering::Acquire))
    }

    /// Returns whether the daemon or timer must stop.
    pub fn is_set(&self) -> bool {
        !self.reasons().is_empty()
    }

    /// Waits until the daemon or timer must stop.
    pub async fn wait(&self) {
        self.until_so(|it| !it.is_empty()).await;
    }

    /// Waits until this reason is among the reasons; [`StopReason::Done`] is the end.
    pub async fn until(&self, reason: StopReason) {
        self.until_so(|it| it.contains(reason)).await;
    }

    async fn until_so(&self, is_so: impl Fn(StopReasons) -> bool) {
        let mut waiting = self.waiting();
        poll_fn(|cx| waiting.poll(cx, &is_so)).await;
    }

    /// Returns whether both belong to the same call.
    pub fn is_same(&self, other: &Stopped) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns a value to poll by hand.
    pub fn waiting(&self) -> StopWaiter {
        StopWaiter { stopped: self.clone(), slot: None }
    }
}

impl Edits for Stopped {
    fn edited(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.until(StopReason::ScriptReloaded))
    }
}

impl StopWaiter {
    /// Returns the flag that the task waits for.
    pub fn stopped(&self) -> &Stopped {
        &self.stopped
    }

    /// Polls a condition on the reasons; if it is false, wakes the task at the next reason.
    pub fn poll(&mut self, cx: &Context<'_>, is_so: impl Fn(StopReasons) -> bool) -> Poll<()> {
        if is_so(self.stopped.reasons()) {
            return Poll::Ready(());
        }
        self.slot = Some(self.stopped.0.note(self.slot, cx.waker()));
        // Checked again, so that no reason in between is missed.
        if is_so(self.stopped.reasons()) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for StopWaiter {
    fn drop(&mut self) {
        let Some(index) = self.slot else { return };
        if let Some(slot) = self.stopped.0.lock().slot(index) {
            *slot = None;
        }
    }
}

impl Flag {
    /// Stores the waker in the known slot or in a free one; returns the index of the slot.
    fn note(&self, known: Option<u32>, waker: &Waker) -> u32 {
        let mut slots = self.lock();
        let index = known.unwrap_or_else(|| slots.free());
        match slots.slot(index) {
            Some(Some(present)) if present.will_wake(waker) => {}
            Some(slot) => *slot = Some(waker.clone()),
            // A free slot always exists.
            None => {}
        }
        index
    }

    fn lock(&self) -> MutexGuard<'_, WakerSlots> {
        // Each change is one call on a list, or an assignment.
        self.slots.lock()
    }
}

impl WakerSlots {
    fn slot(&mut self, index: u32) -> Option<&mut Option<Waker>> {
        let Some(index) = index.checked_sub(1) else { return Some(&mut self.first) };
        self.others.as_mut()?.0.get_mut(usize::try_from(index).ok()?)
    }

    /// Returns the index of a free slot.
    fn free(&mut self) -> u32 {
        if self.first.is_none() {
            return 0;
        }
        let Others(others) = &mut **self.others.get_or_insert_default();
        let index = others.iter().position(Option::is_none).unwrap_or_else(|| {
            others.push(None);
            others.len() - 1
        });
        u32::try_from(index + 1).unwrap_or(u32::MAX)
    }

    fn wakers(&self) -> impl Iterator<Item = &Waker> {
        let others = self.others.iter().flat_map(|it| &it.0);
        self.first.iter().chain(others.flatten())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::StopReason;
    use crate::call::Stopped;

    #[tokio::test]
    async fn all_waiting_tasks_are_woken_and_their_slots_are_reused() {
        let stopped = Stopped::default();
        for _ in 0..3 {
            assert!(stopped.wait().now_or_never().is_none(), "the wait ended");
        }
        assert!(stopped.0.lock().others.is_none(), "each wait reused the first slot");
        let others = [stopped.clone(), stopped.clone()].map(|it| async move {
            it.until(StopReason::Done).await;
        });
        let setting = async {
            stopped.set(StopReason::DaemonSignalled);
            tokio::task::yield_now().await;
            stopped.set(StopReason::Done);
        };
        tokio::join!(stopped.wait(), futures::future::join_all(others), setting);
        assert_eq!(stopped.0.lock().others.as_ref().map(|it| it.0.len()), Some(2));
        assert_eq!(stopped.0.lock().wakers().count(), 0);
    }
}
