//! Moves the part of the program that runs for each object to one huge page, while the process is busy.
//!
//! That part has the size of some 450 small pages. Whenever the process wakes up after other programs have run, the processor has forgotten where
//! most of them are, and finds each again with several memory accesses; a huge page of 2 MiB takes one. The linker places that part at
//! the boundary of a huge page (`scripts/lib/ordered-linker`). Few systems have huge pages for files, so the page is a copy,
//! which is resident as a whole: a process that is seldom busy never makes it.
//!
//! Tools that read symbols from the program file do not find them for addresses in the copy. No copy is made if the system or the
//! parent process forbids huge pages (`PR_SET_THP_DISABLE`) or new executable memory.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::cli::process::cpu_time;

/// Interval of the checks whether the process is busy.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A process that uses more than this CPU time between two checks is busy: some 70 creations per second do.
const BUSY_MIN: Duration = Duration::from_millis(30);

/// Moves that part once the process is busy, unless `stop` comes first. The time until the first check is the start, and does not count.
pub(in crate::cli) async fn move_when_busy(stop: CancellationToken) {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return;
    }
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    checks.tick().await;
    let mut load = Load::default();
    loop {
        tokio::select! {
            biased; // at the end of the process, nothing is moved anymore
            () = stop.cancelled() => return,
            _ = checks.tick() => {}
        }
        if load.is_busy(cpu_time()) {
            break;
        }
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    match page::move_around(page::frequent_function()) {
        Ok(()) => tracing::debug!("The busiest part of the program is on a huge page."),
        Err(reason) => tracing::debug!("No huge page for the program: {reason}."),
    }
}

/// The CPU time at the last check; `None` before the first one.
#[derive(Default)]
struct Load(Option<Duration>);

impl Load {
    /// Returns whether the process was busy since the last check.
    fn is_busy(&mut self, cpu_time: Duration) -> bool {
        self.0.replace(cpu_time).is_some_and(|it| cpu_time.saturating_sub(it) >= BUSY_MIN)
    }
}

/// The page itself. Only for x86: other processors need to be told that memory has become program text.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod page {
    #![expect(unsafe_code, reason = "replaces memory by address")]

    use std::{
        ffi::c_void,
        ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut},
    };

    use rustix::mm::{
        Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect,
        mremap_fixed, munmap,
    };

    use crate::cli::program_pages::mappings::{mapping, mappings};

    /// The size of a huge page.
    const HUGE: usize = 2 << 20;

    /// Returns the address of a function that runs for each object.
    pub(super) fn frequent_function() -> usize {
        (kopf_json::header::header as *const ()).addr()
    }

    /// Replaces the program text around this address by a copy on one huge page.
    ///
    /// # Errors
    /// Why there is none; then nothing has changed.
    pub(super) fn move_around(address: usize) -> Result<(), String> {
        let (maps, program) = mappings().ok_or("cannot read /proc/self/smaps")?;
        let text = text_around(&maps, &program, address)
            .ok_or("the program is not aligned to huge pages")?;
        let spare = SparePage::new().map_err(|it| format!("no memory: {it}"))?;
        let page = spare.0;
        // SAFETY: both ranges have this size: the text is readable, and stays mapped while the program runs; the page is new.
        unsafe {
            madvise(page, HUGE, Advice::LinuxHugepage)
                .map_err(|it| format!("the system has none: {it}"))?;
            with_exposed_provenance::<u8>(text).copy_to_nonoverlapping(page.cast(), HUGE);
        }
        let (maps, _) = mappings().ok_or("cannot read /proc/self/smaps")?;
        if !is_huge(&maps, page.addr()) {
            return Err("the system gave small pages instead".to_owned());
        }
        // SAFETY: the page is ours. It takes the place of the text in one step, and has the same content: functions that run meanwhile, on
        // this thread or others, go on in the copy. If one of the calls fails, nothing has changed: the system checks what it needs first.
        unsafe {
            mprotect(page, HUGE, MprotectFlags::READ | MprotectFlags::EXEC)
                .map_err(|it| format!("new executable memory is not allowed: {it}"))?;
            spare
                .move_to(with_exposed_provenance_mut(text))
                .map_err(|it| format!("it cannot be moved: {it}"))
        }
    }

    /// Returns where the huge page around this address begins, if all of it is program text.
    fn text_around(maps: &str, program: &str, address: usize) -> Option<usize> {
        let begin = address / HUGE * HUGE;
        let mut texts = maps.lines().filter_map(mapping);
        texts
            .any(|it| {
                let (start, length) = it.range;
                let is_inside = start <= begin && begin - start + HUGE <= length;
                it.is_executable && it.path == program && is_inside
            })
            .then_some(begin)
    }

    /// Returns whether the memory at this address is a huge page.
    fn is_huge(maps: &str, address: usize) -> bool {
        let mut is_there = false;
        for line in maps.lines() {
            if let Some(mapping) = mapping(line) {
                let (start, length) = mapping.range;
                is_there = (start..start + length).contains(&address);
            } else if is_there && let Some(size) = line.strip_prefix("AnonHugePages:") {
                return size.trim() != "0 kB";
            }
        }
        false
    }

    /// New memory of the size of a huge page, and aligned to it. Freed when dropped.
    struct SparePage(*mut c_void);

    impl SparePage {
        fn new() -> rustix::io::Result<Self> {
            // SAFETY: new memory at an address of the system's choice. What is before and after the page in it is freed; nothing refers to it.
            unsafe {
                let access = ProtFlags::READ | ProtFlags::WRITE;
                let memory = mmap_anonymous(null_mut(), 2 * HUGE, access, MapFlags::PRIVATE)?;
                let page = SparePage(memory.map_addr(|it| it.next_multiple_of(HUGE)));
                let before = page.0.addr() - memory.addr();
                if before > 0 {
                    munmap(memory, before)?;
                }
                munmap(page.0.byte_add(HUGE), HUGE - before)?;
                Ok(page)
            }
        }

        /// Moves the page to another address, in place of what is there.
        ///
        /// # Safety
        /// What refers to memory there must find the same content.
        unsafe fn move_to(self, address: *mut c_void) -> rustix::io::Result<()> {
            // SAFETY: the page is ours; its old address is free afterwards, for anybody.
            unsafe { mremap_fixed(self.0, HUGE, HUGE, MremapFlags::MAYMOVE, address)? };
            std::mem::forget(self);
            Ok(())
        }
    }

    impl Drop for SparePage {
        fn drop(&mut self) {
            // SAFETY: the page is ours, and nothing refers to it. If it fails, for want of memory, the page stays.
            let _freed = unsafe { munmap(self.0, HUGE) };
        }
    }

    #[cfg(test)]
    mod tests {
        use std::{
            sync::atomic::{AtomicBool, Ordering},
            thread,
        };

        use super::{HUGE, frequent_function, is_huge, mappings, move_around, text_around};
        use crate::cli::program_pages::release;

        /// In the format of the kernel; most lines are left out.
        const MAPS: &str = "\
200000-400000 r--p 00000000 fe:00 1004     /opt/kopf
AnonHugePages:         0 kB
4f0000-a00000 r-xp 00600000 fe:00 1004     /opt/kopf
AnonHugePages:         0 kB
7f0000200000-7f0000600000 rw-p 00000000 00:00 0 
Rss:                2048 kB
AnonHugePages:      2048 kB
7f0003000000-7f0003021000 rw-p 00000000 00:00 0 
AnonHugePages:         0 kB
";

        /// What a system may do; everything else is a mistake.
        const REFUSALS: [&str; 4] = [
            "the program is not aligned",
            "the system has none",
            "the system gave small pages",
            "new executable memory is not allowed",
        ];

        #[test]
        fn only_whole_huge_pages_of_program_text_are_moved() {
            let around = |address| text_around(MAPS, "/opt/kopf", address);
            assert_eq!(around(0x60_0000), Some(0x60_0000));
            assert_eq!(around(0x7f_ffff), Some(0x60_0000));
            assert_eq!(around(0x80_0000), Some(0x80_0000));
            // Its huge page begins before the text.
            assert_eq!(around(0x50_0000), None);
            assert_eq!(around(0x20_0000), None);
            assert_eq!(around(0x7f00_0020_0000), None);
            assert_eq!(text_around(MAPS, "/opt/other", 0x60_0000), None);
        }

        #[test]
        fn huge_pages_are_recognized() {
            assert!(is_huge(MAPS, 0x7f00_0020_0000));
            assert!(!is_huge(MAPS, 0x7f00_0300_0000));
            assert!(!is_huge(MAPS, 0x60_0000));
            assert!(!is_huge(MAPS, 0x1000));
        }

        // One test for both, because what one thread releases, another must not move meanwhile.
        #[test]
        fn the_program_keeps_running_while_its_text_moves_and_is_released() {
            let stop = AtomicBool::new(false);
            let at_work = || {
                let text = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u"}}"#;
                let read = || kopf_json::header::header(text).is_ok();
                let mut all_read = read();
                while !stop.load(Ordering::Relaxed) {
                    all_read &= read();
                }
                all_read
            };
            // The third time, the text is no longer part of the program file.
            let places =
                [frequent_function(), (move_around as *const ()).addr(), frequent_function()];
            let (moves, read) = thread::scope(|scope| {
                let workers = [scope.spawn(at_work), scope.spawn(at_work)];
                let moves = places.map(|place| {
                    let moved = move_around(place);
                    release();
                    (moved, is_huge(&mappings().unwrap().0, place / HUGE * HUGE))
                });
                stop.store(true, Ordering::Relaxed);
                (moves, workers.map(|it| it.join().unwrap()))
            });
            assert_eq!(read, [true, true]);
            for (moved, is_there) in moves {
                let is_refused = moved
                    .as_ref()
                    .is_err_and(|reason| REFUSALS.iter().any(|it| reason.starts_with(it)));
                assert!(is_there || is_refused, "{moved:?}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Load};

    #[test]
    fn the_start_is_not_busy_and_much_work_later_is() {
        let mut load = Load::default();
        let checks = [400, 410, 439, 469].map(|it| load.is_busy(Duration::from_millis(it)));
        assert_eq!(checks, [false, false, false, true]);
    }
}
