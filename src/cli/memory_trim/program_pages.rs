//! Releases the pages of the program text.
//!
//! A page of the program that was read once stays resident, with its neighbors: after the start that is most of the program, though
//! little of it is needed again. Released pages stay in the page cache of the system, and are mapped again without a disk access.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice about memory by address"))]

use crate::cli::process::file_bytes;

/// The resident memory of files is worth another release once it has grown by this much.
const GROWTH_MIN: u64 = 1 << 20;

/// The pages of the program text.
#[derive(Debug, Default)]
pub(super) struct ProgramPages {
    /// The resident bytes of files after the last release.
    left: u64,
}

impl ProgramPages {
    /// Releases the pages; an access maps them again.
    pub(super) fn release(&mut self) {
        release();
        self.left = file_bytes().unwrap_or_default();
    }

    /// Releases the pages if many have been mapped again.
    pub(super) fn release_if_grown(&mut self) {
        if file_bytes().is_some_and(|it| it >= self.left.saturating_add(GROWTH_MIN)) {
            self.release();
        }
    }
}

#[cfg(target_os = "linux")]
fn release() {
    use rustix::mm::{Advice, madvise};

    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    let Some(program) =
        std::env::current_exe().ok().and_then(|it| it.into_os_string().into_string().ok())
    else {
        return;
    };
    for (start, length) in untouched(&maps, &program) {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: releasing pages loses what was written to them, and nothing was: the range is one mapping of the file of the
        // program, it is not writable, and the system has just reported that it contains no page that differs from the file. Only
        // the loader ever makes such a range writable, before `main`. A page that is needed again is read again.
        let advised = unsafe { madvise(start, length, Advice::LinuxDontNeed) };
        if advised.is_err() {
            // Nothing has changed, and the next call would fail, too.
            return;
        }
    }
}

/// Does nothing: not supported on other systems.
#[cfg(not(target_os = "linux"))]
fn release() {}

/// Returns the unmodified, read-only mappings of the program file: addresses and lengths in bytes, from the text of
/// `/proc/self/smaps`.
#[cfg(target_os = "linux")]
fn untouched(maps: &str, program: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut present = None;
    for line in maps.lines() {
        if let Some(mapping) = mapping(line) {
            present = (mapping.is_fixed && mapping.path == program).then_some(mapping.range);
        } else if let Some(size) = line.strip_prefix("Anonymous:")
            && let Some(range) = present.take()
            && size.trim() == "0 kB"
        {
            found.push(range);
        }
    }
    found
}

/// The first line about a mapping.
#[cfg(target_os = "linux")]
struct Mapping<'a> {
    range: (usize, usize),
    /// Not writable, and private.
    is_fixed: bool,
    path: &'a str,
}

/// Parses the first line of a mapping, such as `55d0c0a4d000-55d0c0e51000 r-xp 00604000 fe:00 1004   /kopf`.
#[cfg(target_os = "linux")]
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |it| usize::from_str_radix(it, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let is_fixed = matches!(fields.next()?, "r--p" | "r-xp");
    let path = fields.nth(3)?.trim();
    Some(Mapping { range: (start, end.checked_sub(start)?), is_fixed, path })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{GROWTH_MIN, ProgramPages, file_bytes, release, untouched};

    /// In the format of the kernel; most lines are left out.
    const MAPS: &str = "\
7f0000000000-7f0000600000 r--p 00000000 fe:00 1004     /opt/my kopf
Rss:                3456 kB
Anonymous:             0 kB
7f0000600000-7f0001a00000 r-xp 00604000 fe:00 1004     /opt/my kopf
Rss:               13560 kB
Anonymous:             0 kB
7f0001a00000-7f0001ba0000 r--p 01a52000 fe:00 1004     /opt/my kopf
Anonymous:          1640 kB
7f0001ba0000-7f0001ba6000 rw-p 01bf0000 fe:00 1004     /opt/my kopf
Anonymous:             0 kB
7f0002000000-7f0002600000 r-xp 00000000 fe:00 1005     /lib/libc.so.6
Anonymous:             0 kB
7f0003000000-7f0003021000 rw-p 00000000 00:00 0 
Anonymous:             8 kB
7ffffb1e4000-7ffffb21a000 rw-p 00000000 00:00 0                          [stack]
Anonymous:           216 kB
";

    #[test]
    fn only_unmodified_mappings_are_released() {
        let expected = [(0x7f00_0000_0000, 0x60_0000), (0x7f00_0060_0000, 0x140_0000)];
        assert_eq!(untouched(MAPS, "/opt/my kopf"), expected);
    }

    #[test]
    fn the_program_keeps_running_without_its_pages() {
        release();
        assert_eq!(untouched(MAPS, "/elsewhere"), []);
    }

    #[test]
    fn pages_are_released_again_when_many_were_mapped() {
        // Other tests map pages at the same time.
        let mut grown = ProgramPages { left: 0 };
        grown.release_if_grown();
        assert_ne!(grown.left, 0, "released, and measured");
        let much = file_bytes().unwrap() + 64 * GROWTH_MIN;
        let mut small = ProgramPages { left: much };
        small.release_if_grown();
        assert_eq!(small.left, much, "not released");
    }
}
