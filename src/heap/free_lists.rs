//! Small blocks that a thread has freed, for its next allocations of the same size.
//!
//! An event is read, handled and answered in some hundreds of small blocks. libc keeps seven of a size at hand, and merges and splits
//! all others, which took a sixth of the CPU time of the thread that runs the reactor.

#![expect(clippy::cast_ptr_alignment, reason = "blocks are aligned to 16 bytes")]

use std::{alloc::Layout, cell::Cell, ptr};

/// Bytes between two sizes of blocks.
const STEP: usize = 16;
/// The smallest size of blocks. libc has 8 bytes of its own in front of each, so that the next block begins at a multiple of 16.
const SMALLEST: usize = 24;
/// Number of sizes; the largest is 1,032 bytes.
const SIZES: usize = 64;
/// Bytes that are kept of one size.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// The free blocks of one thread, by their size.
pub(super) struct FreeLists([List; SIZES]);

/// Free blocks of one size. Each begins with a pointer to the next one.
struct List {
    first: Cell<*mut u8>,
    bytes: Cell<usize>,
}

/// Returns the index of the blocks for this layout; `None` if it is too large, or has an unusual alignment.
#[inline]
fn index(layout: Layout) -> Option<usize> {
    if layout.size() > SMALLEST + (SIZES - 1) * STEP || layout.align() > STEP {
        return None;
    }
    Some(layout.size().saturating_sub(SMALLEST).div_ceil(STEP))
}

/// Returns the layout of the blocks with this index.
#[inline]
const fn layout_of(index: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the sizes are small.
    unsafe { Layout::from_size_align_unchecked(SMALLEST + index * STEP, STEP) }
}

/// Returns the layout to allocate for this one, so that any block of the size can be used for it.
#[inline]
pub(super) fn rounded(layout: Layout) -> Layout {
    index(layout).map_or(layout, layout_of)
}

impl FreeLists {
    pub(super) const fn new() -> Self {
        FreeLists(
            [const { List { first: Cell::new(ptr::null_mut()), bytes: Cell::new(0) } }; SIZES],
        )
    }

    /// Takes a block for this layout; `None` if there is none.
    #[inline]
    pub(super) fn take(&self, layout: Layout) -> Option<*mut u8> {
        let index = index(layout)?;
        self.0.get(index)?.take(index)
    }

    /// Keeps a block of this layout. Returns false if it must be freed instead.
    ///
    /// # Safety
    /// The block was allocated with the [`rounded`] layout, and nothing refers to it any more.
    #[inline]
    pub(super) unsafe fn keep(&self, block: *mut u8, layout: Layout) -> bool {
        let Some((index, list)) = index(layout).and_then(|it| Some((it, self.0.get(it)?))) else {
            return false;
        };
        let bytes = list.bytes.get() + layout_of(index).size();
        if bytes > KEPT_BYTES_MAX {
            return false;
        }
        // SAFETY: the block is large enough for a pointer, aligned, and ours.
        unsafe { block.cast::<*mut u8>().write(list.first.get()) };
        list.first.set(block);
        list.bytes.set(bytes);
        true
    }

    /// Passes all blocks to `free`, with the layouts that they were allocated with.
    pub(super) fn drain(&self, free: impl Fn(*mut u8, Layout)) {
        for (index, list) in self.0.iter().enumerate() {
            while let Some(block) = list.take(index) {
                free(block, layout_of(index));
            }
        }
    }
}

impl List {
    #[inline]
    fn take(&self, index: usize) -> Option<*mut u8> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: `keep` has written the next one there, and nobody else has the block.
        self.first.set(unsafe { first.cast::<*mut u8>().read() });
        self.bytes.set(self.bytes.get() - layout_of(index).size());
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        alloc::Layout,
        cell::{Cell, RefCell},
    };

    use super::{FreeLists, KEPT_BYTES_MAX, rounded};

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn sizes_are_rounded_as_libc_does() {
        let sizes = [0, 24, 25, 40, 41, 1032, 1033].map(|it| rounded(layout(it)).size());
        assert_eq!(sizes, [24, 24, 40, 40, 56, 1032, 1033]);
        let page = Layout::from_size_align(64, 4096).unwrap();
        assert_eq!(rounded(page), page);
    }

    #[test]
    fn blocks_are_kept_up_to_a_bound_and_taken_once() {
        let mut blocks = vec![[0_u64; 8]; KEPT_BYTES_MAX / 64 * 2];
        let lists = FreeLists::new();
        let mut kept = 0;
        for block in &mut blocks {
            // SAFETY: it has 64 bytes, more than the 56 of its size, and nobody uses it.
            kept += usize::from(unsafe { lists.keep(block.as_mut_ptr().cast(), layout(50)) });
        }
        assert_eq!(kept, KEPT_BYTES_MAX / 56);
        let taken =
            RefCell::new(vec![lists.take(layout(56)).unwrap(), lists.take(layout(41)).unwrap()]);
        assert_eq!([lists.take(layout(57)), lists.take(layout(40))], [None, None]);
        lists.drain(|block, layout| {
            assert_eq!(layout.size(), 56);
            taken.borrow_mut().push(block);
        });
        assert_eq!(lists.take(layout(56)), None);
        let mut taken = taken.into_inner();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), kept);
        let large = Cell::new([0_u64; 200]);
        // SAFETY: it is not kept.
        assert!(!unsafe { lists.keep(large.as_ptr().cast(), layout(1600)) });
    }
}
