//! How much memory each thread has taken: the one way to tell the memory of a script from that of everybody else.
//!
//! Rhai has limits for the size of one value, none for all of them together. So the allocator of the process counts, for
//! each thread, what it hands out less what it gets back; the engine asks before each step of a script. The counting is an
//! addition to a number of the thread: no lock, no atomic, nothing to allocate.
//!
//! A number means something only as the difference of two, taken on one thread: memory may be freed by another thread than
//! the one that asked for it.
#![expect(unsafe_code, reason = "the trait of allocators is unsafe to implement")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// What an allocator takes for itself with each piece, and the steps in which it hands memory out: those of libc.
const HEADER_BYTES: usize = 8;
const STEP_BYTES: usize = 16;

thread_local! {
    // Constant and without a destructor: reading it never allocates, and works until the very end of the thread.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The allocator of the process, which counts.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

/// Bytes that the calling thread has taken and not given back; negative if it has freed what others took.
#[inline]
pub fn held() -> isize {
    HELD.get()
}

/// Gives memory that is free back to the system, also where used pieces lie around it. Takes some milliseconds.
pub fn give_back() {
    // SAFETY: without conditions; the allocator locks what it looks at.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes something whose memory counts for nobody: it changes its size, or goes, on other threads than the one that needs it now.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    let before = held();
    let made = make();
    HELD.set(before);
    made
}

/// What a piece of this size costs.
#[inline]
fn cost(size: usize) -> isize {
    // No piece is larger than `isize::MAX`, so neither this addition nor the conversion goes wrong.
    (size.wrapping_add(HEADER_BYTES + STEP_BYTES - 1) & !(STEP_BYTES - 1)).cast_signed()
}

#[inline]
fn count(bytes: isize) {
    HELD.set(HELD.get().wrapping_add(bytes));
}

// SAFETY: all memory comes from `System`, with the very arguments that the caller gave; what is done beside touches only a
// number of the thread, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-cost(layout.size()));
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(cost(size) - cost(layout.size()));
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::{apart, held};

    #[test]
    fn what_is_made_apart_counts_nothing() {
        let before = held();
        let list = apart(|| vec![0_u8; 1 << 20]);
        assert_eq!(held(), before);
        apart(|| drop(list));
        assert_eq!(held(), before);
    }

    #[test]
    fn what_is_taken_and_given_back_counts_nothing() {
        let before = held();
        let list = vec![0_u8; 1 << 20];
        assert!((1 << 20..(1 << 20) + 64).contains(&(held() - before)));
        drop(list);
        assert_eq!(held(), before);
    }

    #[test]
    fn what_another_thread_frees_stays_with_the_one_that_took_it() {
        let before = held();
        let list = vec![0_u8; 1 << 20];
        std::thread::scope(|scope| {
            let freed = scope.spawn(|| {
                let before = held();
                drop(list);
                held() - before
            });
            assert!(freed.join().unwrap() <= -(1 << 20));
        });
        assert!(held() - before >= 1 << 20);
    }
}
