//! Small free blocks that a thread keeps for its next allocations.
//!
//! Each event and each response becomes a tree of hundreds of small blocks, which are freed together soon afterwards. libc keeps only a few
//! blocks of each size at hand; it merges the others with their neighbors, to split them again for the next tree. This takes a quarter
//! of the time of a review. A thread that has asked for it keeps more of them: it must live as long as the process, as nothing frees them.
#![expect(clippy::indexing_slicing, reason = "there is a list for each size")]
#![expect(clippy::cast_ptr_alignment, reason = "blocks have the largest alignment")]

use std::{
    alloc::{GlobalAlloc as _, Layout, System},
    cell::Cell,
    ptr,
};

/// The sizes of blocks: the smallest, and the difference to the next ones. On 64-bit systems, blocks of libc have no others.
const SMALLEST: usize = 24;
const STEP: usize = 16;
/// Number of sizes; the largest is 4,104 bytes, enough for the futures of requests.
const SIZES: usize = 256;
/// Maximum number of bytes in free blocks. Beyond it, all are freed: they may have sizes that the thread no longer needs.
const BYTES_MAX: usize = 1 << 20;
/// The alignment of all blocks.
const ALIGN: usize = 16;

/// The free blocks of one thread.
struct Cache {
    is_open: Cell<bool>,
    bytes: Cell<usize>,
    /// By size, the first block. Each begins with a pointer to the next one.
    lists: [Cell<*mut u8>; SIZES],
}

thread_local! {
    // Constant and without a destructor, as the counter of the allocator.
    static CACHE: Cache = const {
        let (is_open, bytes) = (Cell::new(false), Cell::new(0));
        Cache { is_open, bytes, lists: [const { Cell::new(ptr::null_mut()) }; SIZES] }
    };
}

/// The size of a small block, as an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SmallSize(usize);

impl SmallSize {
    /// Returns the size of the blocks for this layout; `None` if they are not small.
    #[inline]
    pub(super) fn of(layout: Layout) -> Option<Self> {
        let index = layout.size().saturating_sub(SMALLEST).div_ceil(STEP);
        (index < SIZES && layout.align() <= ALIGN).then_some(SmallSize(index))
    }

    #[inline]
    fn bytes(self) -> usize {
        SMALLEST + self.0 * STEP
    }

    #[inline]
    fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and the size is far from the maximum.
        unsafe { Layout::from_size_align_unchecked(self.bytes(), ALIGN) }
    }

    /// Allocates a block; null if there is no memory.
    #[inline]
    pub(super) fn alloc(self) -> *mut u8 {
        CACHE.with(|cache| {
            let list = &cache.lists[self.0];
            let block = list.get();
            if block.is_null() {
                // SAFETY: the size is not zero.
                return unsafe { System.alloc(self.layout()) };
            }
            // SAFETY: the block is free, so that only this list uses it; it begins with a pointer.
            list.set(unsafe { block.cast::<*mut u8>().read() });
            cache.bytes.set(cache.bytes.get() - self.bytes());
            block
        })
    }

    /// Frees a block, or keeps it.
    ///
    /// # Safety
    /// The block is one of this size from [`SmallSize::alloc`], of any thread, and is no longer used.
    #[inline]
    pub(super) unsafe fn free(self, block: *mut u8) {
        CACHE.with(|cache| {
            if !cache.is_open.get() {
                // SAFETY: it was allocated with this layout.
                return unsafe { System.dealloc(block, self.layout()) };
            }
            if cache.bytes.get() >= BYTES_MAX {
                cache.give_back();
            }
            let list = &cache.lists[self.0];
            // SAFETY: nothing else uses the block, and it has room for a pointer.
            unsafe { block.cast::<*mut u8>().write(list.get()) };
            list.set(block);
            cache.bytes.set(cache.bytes.get() + self.bytes());
        });
    }
}

impl Cache {
    #[cold]
    fn give_back(&self) {
        self.bytes.set(0);
        for (index, list) in self.lists.iter().enumerate() {
            let mut block = list.replace(ptr::null_mut());
            while !block.is_null() {
                // SAFETY: the list owns its blocks; each begins with a pointer to the next one, and was allocated with this layout.
                block = unsafe {
                    let next = block.cast::<*mut u8>().read();
                    System.dealloc(block, SmallSize(index).layout());
                    next
                };
            }
        }
    }
}

/// Makes the calling thread keep free blocks: at most 1 MiB.
pub fn keep_free_blocks() {
    CACHE.with(|cache| cache.is_open.set(true));
}

/// Frees the blocks that the calling thread keeps.
pub(super) fn give_back() {
    CACHE.with(Cache::give_back);
}

#[cfg(test)]
mod tests {
    use std::{
        alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc},
        thread,
    };

    use super::{BYTES_MAX, CACHE, SIZES, SMALLEST, STEP, SmallSize, give_back, keep_free_blocks};

    /// Runs a test on a thread that keeps free blocks, and frees them at its end.
    fn on_thread(test: impl FnOnce() + Send) {
        thread::scope(|scope| {
            let test = scope.spawn(|| {
                keep_free_blocks();
                test();
                give_back();
                CACHE.with(|it| it.is_open.set(false));
            });
            test.join().unwrap();
        });
    }

    fn kept() -> usize {
        CACHE.with(|it| it.bytes.get())
    }

    #[test]
    fn sizes_are_those_of_libc() {
        let size = |bytes| SmallSize::of(Layout::from_size_align(bytes, 8).unwrap());
        for bytes in 1..=SMALLEST + (SIZES - 1) * STEP {
            let block = size(bytes).unwrap().layout().size();
            assert!(block >= bytes && block < bytes.max(SMALLEST) + STEP, "{bytes}");
        }
        assert!(size(SMALLEST + (SIZES - 1) * STEP + 1).is_none());
        assert!(SmallSize::of(Layout::from_size_align(8, 32).unwrap()).is_none());
    }

    #[test]
    fn freed_blocks_are_used_again_up_to_a_limit() {
        on_thread(|| {
            let layout = Layout::from_size_align(100, 8).unwrap();
            // SAFETY: each block is freed once, with its layout.
            unsafe {
                let block = alloc(layout);
                dealloc(block, layout);
                let again = alloc(Layout::from_size_align(97, 1).unwrap());
                assert_eq!(again, block);
                dealloc(again, layout);
                assert!(kept() >= 104);
                let blocks: Vec<_> = (0..2 * BYTES_MAX / 104).map(|_| alloc(layout)).collect();
                for block in blocks {
                    dealloc(block, layout);
                    assert!(kept() <= BYTES_MAX + 104);
                }
            }
            give_back();
            assert_eq!(kept(), 0);
        });
    }

    #[test]
    fn other_threads_keep_no_blocks() {
        let layout = Layout::from_size_align(100, 8).unwrap();
        // SAFETY: the block is freed once, with its layout.
        unsafe { dealloc(alloc(layout), layout) };
        assert_eq!(kept(), 0);
    }

    #[test]
    fn blocks_hold_their_content_whatever_is_allocated_resized_and_freed() {
        on_thread(|| {
            let mut random = fastrand::Rng::with_seed(7);
            let mut blocks: Vec<(*mut u8, Layout, u8)> = Vec::new();
            for step in 0..20_000_u32 {
                let (size, mark) = (random.usize(1..3000), step.to_le_bytes()[0]);
                let layout = Layout::from_size_align(size, 1 << random.usize(0..6)).unwrap();
                // SAFETY: the blocks are used within their layouts, and freed once.
                unsafe {
                    let check = |&(block, layout, mark): &(*mut u8, Layout, u8), bytes: usize| {
                        assert!(block.addr().is_multiple_of(layout.align()));
                        assert!((0..bytes).all(|it| block.add(it).read() == mark), "step {step}");
                    };
                    match random.usize(0..4) {
                        0 | 1 => {
                            let block = alloc(layout);
                            block.write_bytes(mark, size);
                            blocks.push((block, layout, mark));
                        }
                        2 if !blocks.is_empty() => {
                            let it = blocks.swap_remove(random.usize(0..blocks.len()));
                            check(&it, it.1.size());
                            dealloc(it.0, it.1);
                            let zeroed = alloc_zeroed(layout);
                            check(&(zeroed, layout, 0), size);
                            dealloc(zeroed, layout);
                        }
                        _ if !blocks.is_empty() => {
                            let place = random.usize(0..blocks.len());
                            let (block, before, mark) = blocks[place];
                            let block = realloc(block, before, size);
                            let after = Layout::from_size_align(size, before.align()).unwrap();
                            check(&(block, after, mark), size.min(before.size()));
                            block.write_bytes(mark, size);
                            blocks[place] = (block, after, mark);
                        }
                        _ => {}
                    }
                }
            }
            for (block, layout, _) in blocks {
                // SAFETY: as above.
                unsafe { dealloc(block, layout) };
            }
        });
    }
}
