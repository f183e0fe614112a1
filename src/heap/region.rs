//! Small long-lived blocks, separate from all others.
//!
//! After a burst of events, libc can return only pages without any used block to the system. The kept state of each object is a few small
//! blocks, allocated between thousands of bytes that are freed soon afterwards: each kept block would hold its whole page. So these blocks
//! have separate pages. They are in one range of addresses, which distinguishes them from the blocks of libc.
//!
//! The range is divided into slabs, and each slab into blocks of one size. The information about a slab is kept outside of it, so that the
//! pages of an empty slab can be returned.
#![expect(clippy::indexing_slicing, reason = "there is a list for each index of a size")]
#![expect(clippy::cast_ptr_alignment, reason = "all sizes of blocks are multiples of 8 bytes")]

use std::{
    alloc::Layout,
    cell::UnsafeCell,
    mem, ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// Bytes of a slab.
const SLAB_BYTES: usize = 16 << 10;
/// Number of slabs: 2 GiB of addresses, which become memory when they are used.
const SLABS: usize = 1 << 17;
/// The unit of sizes. There is no header between blocks.
const STEP: usize = 8;
/// Number of sizes; the largest is 1,024 bytes.
const SIZES: usize = 128;
/// The largest alignment: that of slabs whose blocks have such sizes.
const ALIGN_MAX: usize = 16;
/// The index that stands for no slab.
const NONE: usize = usize::MAX;
/// The start while no addresses are reserved: further from every block than the region is long.
const NOWHERE: usize = 1 << (usize::BITS - 1);

/// The blocks of all threads.
pub(super) struct Region {
    /// The first address of the slabs.
    start: AtomicUsize,
    /// Held for some nanoseconds, never while anything is allocated.
    is_locked: AtomicBool,
    slabs: UnsafeCell<Slabs>,
}

/// The slabs, by their free blocks.
struct Slabs {
    /// One for each slab, in front of them.
    infos: *mut Info,
    /// Whether an attempt to reserve addresses was made.
    is_tried: bool,
    /// The number of slabs that were ever used.
    used: usize,
    /// The first empty one of them.
    empty: usize,
    /// By size: the first slab with free blocks.
    open: [usize; SIZES],
}

/// The information about one slab.
struct Info {
    /// The first freed block. Each begins with a pointer to the next one.
    freed: *mut u8,
    /// The number of blocks that were ever used, and of those that are used now.
    fresh: usize,
    used: usize,
    /// The size of the blocks, as an index.
    size: usize,
    /// Its neighbors in the list of slabs that it is in.
    before: usize,
    next: usize,
}

// SAFETY: the slabs are only used while `is_locked` is held.
unsafe impl Sync for Region {}

/// Returns the index of the size for this layout; `None` if it is too large, or has an unusual alignment.
fn index(layout: Layout) -> Option<usize> {
    let align = layout.align().max(STEP);
    let size = layout.size().max(1).checked_next_multiple_of(align)?;
    (size <= SIZES * STEP && align <= ALIGN_MAX).then(|| size / STEP - 1)
}

impl Region {
    pub(super) const fn new() -> Self {
        let (infos, open) = (ptr::null_mut(), [NONE; SIZES]);
        let slabs = UnsafeCell::new(Slabs { infos, is_tried: false, used: 0, empty: NONE, open });
        Region { start: AtomicUsize::new(NOWHERE), is_locked: AtomicBool::new(false), slabs }
    }

    /// Returns whether the block is one of this region.
    #[inline]
    pub(super) fn has(&self, block: *mut u8) -> bool {
        self.offset(block) < SLABS * SLAB_BYTES
    }

    /// Returns whether a block for one of these layouts can be used for the other one.
    pub(super) fn is_same_size(one: Layout, other: Layout) -> bool {
        index(one).is_some_and(|it| Some(it) == index(other))
    }

    /// Takes a block for this layout; `None` if there is none.
    pub(super) fn take(&self, layout: Layout) -> Option<*mut u8> {
        let size = index(layout)?;
        self.locked(|slabs| {
            if !mem::replace(&mut slabs.is_tried, true)
                && let Some(infos) = reserve(SLABS * (size_of::<Info>() + SLAB_BYTES))
            {
                slabs.infos = infos.cast();
                self.start.store(slabs.start_of(0).addr(), Ordering::Relaxed);
            }
            // SAFETY: the addresses are reserved, or there are no slabs.
            unsafe { slabs.take(size) }
        })
    }

    /// Frees a block.
    ///
    /// # Safety
    /// The block is one of this region, and nothing refers to it any more.
    pub(super) unsafe fn free(&self, block: *mut u8) {
        let slab = self.offset(block) / SLAB_BYTES;
        // SAFETY: the caller upholds the contract.
        self.locked(|slabs| unsafe { slabs.free(slab, block) });
    }

    #[inline]
    fn offset(&self, block: *mut u8) -> usize {
        // A thread that has a block of the region has also read its start.
        block.addr().wrapping_sub(self.start.load(Ordering::Relaxed))
    }

    /// Returns the pages of empty slabs to the system.
    pub(super) fn give_back(&self) {
        // SAFETY: nothing refers to the pages of an empty slab.
        self.locked(|slabs| unsafe { slabs.give_back() });
    }

    fn locked<T>(&self, something: impl FnOnce(&mut Slabs) -> T) -> T {
        while self.is_locked.swap(true, Ordering::Acquire) {
            // The thread that has the lock may wait for a processor.
            thread::yield_now();
        }
        // SAFETY: this thread has the lock.
        let result = something(unsafe { &mut *self.slabs.get() });
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

impl Slabs {
    unsafe fn info(&mut self, slab: usize) -> &mut Info {
        // SAFETY: there is one for each slab. Memory of the system is zero, which is valid.
        unsafe { &mut *self.infos.add(slab) }
    }

    /// Returns the first address of a slab.
    fn start_of(&self, slab: usize) -> *mut u8 {
        self.infos.wrapping_add(SLABS).cast::<u8>().wrapping_add(slab * SLAB_BYTES)
    }

    unsafe fn take(&mut self, size: usize) -> Option<*mut u8> {
        // SAFETY: all indices are those of slabs in use.
        unsafe {
            let slab = match self.open[size] {
                NONE => self.begin(size)?,
                slab => slab,
            };
            let start = self.start_of(slab);
            let bytes = (size + 1) * STEP;
            let info = self.info(slab);
            let block = if info.freed.is_null() {
                info.fresh += 1;
                start.add((info.fresh - 1) * bytes)
            } else {
                let block = info.freed;
                info.freed = block.cast::<*mut u8>().read();
                block
            };
            info.used += 1;
            if info.is_full() {
                self.unlink(slab);
            }
            Some(block)
        }
    }

    unsafe fn free(&mut self, slab: usize, block: *mut u8) {
        // SAFETY: the block was taken from this slab, so it is large enough for a pointer, and aligned.
        unsafe {
            let info = self.info(slab);
            let was_full = info.is_full();
            block.cast::<*mut u8>().write(info.freed);
            info.freed = block;
            info.used -= 1;
            let is_empty = info.used == 0;
            if was_full {
                self.link(slab);
            }
            if is_empty {
                self.unlink(slab);
                let next = mem::replace(&mut self.empty, slab);
                let info = self.info(slab);
                (info.next, info.fresh, info.freed) = (next, 0, ptr::null_mut());
            }
        }
    }

    /// Uses an empty slab for blocks of this size.
    unsafe fn begin(&mut self, size: usize) -> Option<usize> {
        // SAFETY: the slab is empty.
        unsafe {
            let slab = self.empty;
            let slab = if slab == NONE {
                if self.infos.is_null() || self.used >= SLABS {
                    return None;
                }
                self.used += 1;
                self.used - 1
            } else {
                self.empty = self.info(slab).next;
                slab
            };
            self.info(slab).size = size;
            self.link(slab);
            Some(slab)
        }
    }

    /// Adds a slab with free blocks to the list of its size.
    unsafe fn link(&mut self, slab: usize) {
        // SAFETY: all indices are those of slabs in use.
        unsafe {
            let size = self.info(slab).size;
            let next = mem::replace(&mut self.open[size], slab);
            let info = self.info(slab);
            (info.before, info.next) = (NONE, next);
            if next != NONE {
                self.info(next).before = slab;
            }
        }
    }

    unsafe fn unlink(&mut self, slab: usize) {
        // SAFETY: all indices are those of slabs in use.
        unsafe {
            let &mut Info { size, before, next, .. } = self.info(slab);
            if next != NONE {
                self.info(next).before = before;
            }
            if before == NONE {
                self.open[size] = next;
            } else {
                self.info(before).next = next;
            }
        }
    }

    unsafe fn give_back(&mut self) {
        let mut slab = self.empty;
        while slab != NONE {
            // SAFETY: no block of the slab is used; the slab is one of those that were used.
            unsafe {
                release(self.start_of(slab), SLAB_BYTES);
                slab = self.info(slab).next;
            }
        }
    }
}

impl Info {
    fn is_full(&self) -> bool {
        self.freed.is_null() && (self.fresh + 1) * (self.size + 1) * STEP > SLAB_BYTES
    }
}

/// Reserves addresses, at the beginning of a page; memory in there is zero.
#[cfg(target_os = "linux")]
fn reserve(bytes: usize) -> Option<*mut u8> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at any free address.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: it is the mapping. Huge pages would be mostly unused; if the system has none, the advice fails.
    let _ignored = unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    Some(start.cast())
}

/// Returns memory to the system; afterwards it is zero.
///
/// # Safety
/// Nothing refers to the memory, which is a part of the reserved range.
#[cfg(target_os = "linux")]
unsafe fn release(start: *mut u8, bytes: usize) {
    // SAFETY: as promised. If it fails, the memory stays as it is.
    let _ignored = unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) };
}

/// Reserves nothing: not supported on other systems.
#[cfg(not(target_os = "linux"))]
fn reserve(_bytes: usize) -> Option<*mut u8> {
    None
}

/// Does nothing, because nothing is ever reserved.
#[cfg(not(target_os = "linux"))]
unsafe fn release(_start: *mut u8, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use std::alloc::Layout;

    use super::{Region, SLAB_BYTES};

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn blocks_are_disjoint_and_used_again() {
        let region = Region::new();
        let mut blocks = Vec::new();
        for round in 0..3 {
            for number in 0..10_000_u64 {
                let size = [8, 24, 40, 1000][usize::try_from(number % 4).unwrap()];
                let block = region.take(layout(size)).unwrap();
                assert!(region.has(block));
                // SAFETY: the block has at least eight bytes, and belongs to this test.
                unsafe { block.cast::<u64>().write(number) };
                blocks.push((block, number));
            }
            // The last round frees all blocks.
            for (block, number) in blocks.extract_if(.., |it| it.1 % 3 == 0 || round == 2) {
                // SAFETY: as above; nothing uses it afterwards.
                unsafe {
                    assert_eq!(block.cast::<u64>().read(), number);
                    region.free(block);
                }
            }
            region.give_back();
        }
        let again = region.take(layout(SLAB_BYTES / 32)).unwrap();
        assert!(region.has(again));
    }

    #[test]
    fn other_blocks_are_not_of_the_region() {
        let region = Region::new();
        let mut other = 0_u64;
        assert!(!region.has((&raw mut other).cast()));
        assert!(region.take(layout(1025)).is_none());
        assert!(region.take(Layout::from_size_align(64, 64).unwrap()).is_none());
        let aligned = region.take(Layout::from_size_align(24, 16).unwrap()).unwrap();
        assert!(aligned.addr().is_multiple_of(16));
        assert!(!region.has((&raw mut other).cast()));
        assert!(Region::is_same_size(layout(17), layout(24)));
        assert!(!Region::is_same_size(layout(24), layout(25)));
    }
}
