//! The resource usage of the process, for `/metrics`.

use std::{fs, time::Duration};

use jiff::Timestamp;
use rustix::{
    param::page_size,
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use crate::telemetry::ProcessUsage;

/// Returns the CPU time of the process so far.
pub(super) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Returns the resident memory that the content of files takes: pages of the program. Known on Linux only.
pub(super) fn file_bytes() -> Option<u64> {
    sizes()[2]
}

/// Returns the sizes of the memory in bytes: all of it, the resident one, and that of files.
fn sizes() -> [Option<u64>; 3] {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let page = u64::try_from(page_size()).unwrap_or_default();
    let mut sizes = text.split(' ').map(|it| Some(it.parse::<u64>().ok()?.saturating_mul(page)));
    std::array::from_fn(|_| sizes.next().flatten())
}

/// Returns the current resource usage of the process. The memory and the open files are known on Linux only.
pub(super) fn usage(start: Timestamp) -> ProcessUsage {
    let [virtual_bytes, resident_bytes, _] = sizes();
    let open = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    ProcessUsage {
        cpu_seconds: Some(cpu_time().as_secs_f64()),
        resident_bytes,
        virtual_bytes,
        // The listing itself opens one.
        open_fds: open.and_then(|it| u64::try_from(it.saturating_sub(1)).ok()),
        max_fds: getrlimit(Resource::Nofile).current,
        start_seconds: Some(start.as_duration().as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, usage};

    #[test]
    fn the_process_knows_what_it_uses() {
        let found = usage(Timestamp::UNIX_EPOCH);
        assert!(found.cpu_seconds.is_some_and(|it| it > 0.0), "{found:?}");
        assert_eq!(found.start_seconds, Some(0.0));
        if cfg!(target_os = "linux") {
            let (resident, all) = (found.resident_bytes.unwrap(), found.virtual_bytes.unwrap());
            assert!(resident > 1 << 20 && all >= resident, "{found:?}");
            assert!(found.open_fds.is_some_and(|it| it > 2) && found.max_fds > found.open_fds);
        }
    }
}
