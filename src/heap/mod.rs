//! The allocator of the process: that of libc, with a count of the memory that each thread has allocated. Long-lived blocks have separate
//! pages (`region.rs`), and a thread can keep small free blocks for its next allocations (`cache.rs`).
//!
//! Counting is the only way to separate the memory of a script from all other memory.
//! Rhai limits the size of each value, but not of all values together. So the allocator of the process counts, per thread, the
//! bytes allocated less the bytes freed, and the engine checks the count before each step of a script. Counting adds to a
//! thread-local number: no lock, no atomic, no allocation.
//!
//! Only the difference of two counts on the same thread is meaningful: memory may be freed by another thread than the one that
//! allocated it.
#![expect(unsafe_code, reason = "the trait of allocators is unsafe to implement")]

mod cache;
mod region;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr,
};

pub use self::cache::keep_free_blocks;
use self::{cache::SmallSize, region::Region};

/// Bytes that an allocator adds to each allocation, and the unit to which it rounds up: those of libc.
const HEADER_BYTES: usize = 8;
const STEP_BYTES: usize = 16;

thread_local! {
    // Constant and without a destructor: reading it never allocates, and works until the very end of the thread.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Those of them that are in [`LASTING`].
    static HELD_LASTING: Cell<isize> = const { Cell::new(0) };
    static IS_LASTING: Cell<bool> = const { Cell::new(false) };
}

/// The small blocks that are long-lived.
static LASTING: Region = Region::new();

/// The counting allocator of the process.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

/// Returns the bytes that the calling thread has allocated and not freed; negative if it has freed memory of other threads.
#[inline]
pub fn held() -> isize {
    HELD.get()
}

/// Returns how many of the bytes of [`held`] are in small long-lived blocks: see [`lasting`]. They are only counted in debug builds.
pub fn held_lasting() -> isize {
    HELD_LASTING.get()
}

/// Returns free memory to the system, also between used blocks. Takes some milliseconds.
pub fn give_back() {
    cache::give_back();
    // SAFETY: no preconditions; the allocator locks what it reads.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
    LASTING.give_back();
}

/// Runs `make`, whose small blocks are separate from all others because they are long-lived: see `region.rs`.
pub fn lasting<T>(make: impl FnOnce() -> T) -> T {
    lasting_if(true, make)
}

/// Runs `make`, whose small blocks are separate from all others if they are long-lived.
pub fn lasting_if<T>(is_long_lived: bool, make: impl FnOnce() -> T) -> T {
    /// Also after a panic.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_LASTING.set(self.0);
        }
    }
    let _restore = Restore(IS_LASTING.replace(is_long_lived || IS_LASTING.get()));
    make()
}

/// Runs `make` without counting its memory: for values that are resized or freed by other threads than the one that uses them now.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    let before = held();
    let made = make();
    HELD.set(before);
    made
}

/// Returns the bytes that an allocation of this size costs.
#[inline]
fn cost(size: usize) -> isize {
    // No allocation is larger than `isize::MAX`, so neither the addition nor the conversion overflows.
    (size.wrapping_add(HEADER_BYTES + STEP_BYTES - 1) & !(STEP_BYTES - 1)).cast_signed()
}

#[inline]
fn count(bytes: isize) {
    // `get` and `set` would be two function calls for each allocation, because this is compiled for size.
    HELD.with(|it| it.set(it.get().wrapping_add(bytes)));
}

/// Only in debug builds: it is inlined wherever something is allocated often.
fn count_lasting(bytes: isize) {
    if cfg!(debug_assertions) {
        HELD_LASTING.set(HELD_LASTING.get().wrapping_add(bytes));
    }
}

/// Allocates a block of the region; `None` if it does not have one.
#[inline]
fn take_lasting(layout: Layout) -> Option<*mut u8> {
    let block = LASTING.take(layout)?;
    count_lasting(cost(layout.size()));
    Some(block)
}

/// Frees a block of the region.
///
/// # Safety
/// As for [`GlobalAlloc::dealloc`].
unsafe fn free_lasting(block: *mut u8, layout: Layout) {
    count_lasting(-cost(layout.size()));
    // SAFETY: the caller upholds the contract.
    unsafe { LASTING.free(block) };
}

/// Allocates a block outside of the region; null if there is no memory.
///
/// # Safety
/// As for [`GlobalAlloc::alloc`].
#[inline]
unsafe fn take(layout: Layout) -> *mut u8 {
    // SAFETY: the caller upholds the contract.
    SmallSize::of(layout).map_or_else(|| unsafe { System.alloc(layout) }, SmallSize::alloc)
}

/// Frees a block outside of the region.
///
/// # Safety
/// As for [`GlobalAlloc::dealloc`].
#[inline]
unsafe fn free(block: *mut u8, layout: Layout) {
    // SAFETY: the caller upholds the contract; the block was allocated with the same layout.
    unsafe {
        match SmallSize::of(layout) {
            Some(size) => size.free(block),
            None => System.dealloc(block, layout),
        }
    }
}

/// Resizes a block of the region: it stays there if the new size allows it.
///
/// # Safety
/// As for [`GlobalAlloc::realloc`].
unsafe fn resized(block: *mut u8, (before, after): (Layout, Layout)) -> *mut u8 {
    if Region::is_same_size(before, after) {
        count_lasting(cost(after.size()) - cost(before.size()));
        return block;
    }
    // SAFETY: the new block is another one, and both are large enough; nothing refers to the old one afterwards.
    unsafe {
        let next = take_lasting(after).unwrap_or_else(|| take(after));
        if !next.is_null() {
            next.copy_from_nonoverlapping(block, before.size().min(after.size()));
            free_lasting(block, before);
        }
        next
    }
}

/// Moves the content of a block of libc to another one, of which at least one is small.
///
/// # Safety
/// As for [`GlobalAlloc::realloc`].
unsafe fn moved(block: *mut u8, (before, after): (Layout, Layout)) -> *mut u8 {
    // SAFETY: the new block is another one, and both are large enough; nothing refers to the old one afterwards.
    unsafe {
        let next = take(after);
        if !next.is_null() {
            next.copy_from_nonoverlapping(block, before.size().min(after.size()));
            free(block, before);
        }
        next
    }
}

// SAFETY: all memory comes from `LASTING`, or from `System` with the layouts of the callers; addresses show which. The counts are
// thread-local, and neither allocate nor unwind.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        if IS_LASTING.get()
            && let Some(block) = take_lasting(layout)
        {
            return block;
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { take(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        if IS_LASTING.get()
            && let Some(block) = take_lasting(layout)
        {
            // SAFETY: the block is large enough, and may have been used before.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        let Some(size) = SmallSize::of(layout) else {
            // SAFETY: the caller upholds the contract of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        };
        let block = size.alloc();
        if !block.is_null() {
            // SAFETY: the block is large enough.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-cost(layout.size()));
        if LASTING.has(pointer) {
            // SAFETY: the block is one of the region, and the caller no longer uses it.
            return unsafe { free_lasting(pointer, layout) };
        }
        // SAFETY: the caller upholds the contract of `dealloc`, and the block was allocated with the same layout.
        unsafe { free(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(cost(size) - cost(layout.size()));
        let Ok(next) = Layout::from_size_align(size, layout.align()) else {
            return ptr::null_mut();
        };
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe {
            if LASTING.has(pointer) {
                return resized(pointer, (layout, next));
            }
            match (SmallSize::of(layout), SmallSize::of(next)) {
                (None, None) => System.realloc(pointer, layout, size),
                (before, after) if before == after => pointer,
                _ => moved(pointer, (layout, next)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{apart, held};

    #[test]
    fn memory_allocated_apart_is_not_counted() {
        let before = held();
        let list = apart(|| vec![0_u8; 1 << 20]);
        assert_eq!(held(), before);
        apart(|| drop(list));
        assert_eq!(held(), before);
    }

    #[test]
    fn freed_memory_is_not_counted() {
        let before = held();
        let list = vec![0_u8; 1 << 20];
        assert!((1 << 20..(1 << 20) + 64).contains(&(held() - before)));
        drop(list);
        assert_eq!(held(), before);
    }

    #[test]
    fn memory_freed_by_another_thread_stays_counted() {
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
