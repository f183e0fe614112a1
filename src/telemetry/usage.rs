//! The usage of each script: its memory, and the CPU time of its threads.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

/// The directory of the calling thread. The file `schedstat` in it begins with the CPU time of the thread in nanoseconds.
const THREAD: &str = "/proc/thread-self";

/// The usage of all scripts, by file. An entry exists as long as a [`ScriptUsage`]. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct AllUsage(Arc<Mutex<BTreeMap<String, Weak<UsageCounts>>>>);

/// The usage of one script. Clones share it, and so do the generations of a script.
#[derive(Clone, Debug, Default)]
pub struct ScriptUsage(Arc<UsageCounts>);

#[derive(Debug, Default)]
struct UsageCounts {
    memory_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    /// The CPU time that threads of the operator have spent on the script.
    operator_nanos: AtomicU64,
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    /// The directories of running threads.
    running: Vec<PathBuf>,
    /// The total time of threads that have ended.
    ended: Duration,
}

/// Counts the CPU time of a thread, until it is dropped by the same thread.
#[derive(Debug)]
pub struct ThreadUsage {
    script: ScriptUsage,
    /// `None` where the system does not report it.
    thread: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    script: String,
}

impl AllUsage {
    /// Returns the usage of the script in this file: the same one as long as it has an owner.
    pub(super) fn of_script(&self, file: &str, limit_bytes: usize) -> ScriptUsage {
        let mut all = self.0.lock();
        all.retain(|_, it| it.strong_count() > 0);
        let counts = all.get(file).and_then(Weak::upgrade).unwrap_or_default();
        counts.limit_bytes.store(limit_bytes.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        all.insert(file.to_owned(), Arc::downgrade(&counts));
        ScriptUsage(counts)
    }

    /// Adds the numbers to a page.
    pub(super) fn register(&self, page: &mut Registry) {
        let [memory, limit] = [(); 2].map(|()| Family::<Labels, Gauge>::default());
        let time = Family::<Labels, Counter<f64, AtomicU64>>::default();
        // Without scripts, not even the names are shown.
        let mut is_empty = true;
        let gauge =
            |bytes: &AtomicU64| bytes.load(Ordering::Relaxed).try_into().unwrap_or(i64::MAX);
        for (file, counts) in self.0.lock().iter() {
            let Some(counts) = counts.upgrade() else { continue };
            is_empty = false;
            let labels = Labels { script: file.clone() };
            memory.get_or_create(&labels).set(gauge(&counts.memory_bytes));
            limit.get_or_create(&labels).set(gauge(&counts.limit_bytes));
            time.get_or_create(&labels).inc_by(counts.computed().as_secs_f64());
        }
        if is_empty {
            return;
        }
        let name = "kopf_script_memory";
        page.register_with_unit(
            name,
            "Memory of a script after its last call",
            Unit::Bytes,
            memory,
        );
        let name = "kopf_script_memory_limit";
        page.register_with_unit(name, "Maximum memory of a script", Unit::Bytes, limit);
        let name = "kopf_script_cpu";
        page.register_with_unit(name, "CPU time of a script", Unit::Seconds, time);
    }
}

impl ScriptUsage {
    /// Records the memory of the script, in bytes.
    pub fn set_memory(&self, bytes: usize) {
        self.0.memory_bytes.store(bytes.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts CPU time that a thread of the operator has spent on the script.
    pub fn add_time(&self, time: Duration) {
        let nanos = time.as_nanos().try_into().unwrap_or(u64::MAX);
        self.0.operator_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Counts the CPU time of the calling thread from its beginning.
    pub fn of_thread(&self) -> ThreadUsage {
        let thread = fs::read_link(THREAD).ok();
        let thread = thread.map(|it| Path::new("/proc").join(it));
        self.0.threads.lock().running.extend(thread.clone());
        ThreadUsage { script: self.clone(), thread }
    }
}

impl UsageCounts {
    fn computed(&self) -> Duration {
        let of_operator = Duration::from_nanos(self.operator_nanos.load(Ordering::Relaxed));
        let threads = self.threads.lock();
        of_operator
            + threads.ended
            + threads.running.iter().map(|it| computed(it)).sum::<Duration>()
    }
}

impl Drop for ThreadUsage {
    fn drop(&mut self) {
        let Some(thread) = &self.thread else { return };
        let mut threads = self.script.0.threads.lock();
        threads.ended += computed(thread);
        threads.running.retain(|it| it != thread);
    }
}

/// Returns the CPU time of a thread; zero where the system does not report it.
fn computed(thread: &Path) -> Duration {
    let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanos = text.split_ascii_whitespace().next().and_then(|it| it.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::AllUsage;

    fn page(all: &AllUsage) -> String {
        let (mut page, mut text) = (Registry::default(), String::new());
        all.register(&mut page);
        encode(&mut text, &page).unwrap();
        text
    }

    #[test]
    fn a_script_is_shown_until_its_last_generation_ends() {
        let all = AllUsage::default();
        let (first, second) = (all.of_script("a.lua", 64), all.of_script("a.lua", 128));
        first.set_memory(7);
        drop(first);
        let text = page(&all);
        assert!(text.contains("kopf_script_memory_bytes{script=\"a.lua\"} 7\n"), "{text}");
        assert!(text.contains("kopf_script_memory_limit_bytes{script=\"a.lua\"} 128\n"), "{text}");
        drop(second);
        assert!(!page(&all).contains("a.lua"));
    }

    #[test]
    fn the_time_of_a_thread_counts_while_it_runs_and_afterwards() {
        let all = AllUsage::default();
        let usage = all.of_script("a.lua", 64);
        let seconds = |usage: &super::ScriptUsage| usage.0.computed();
        let (while_running, afterwards) = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _counted = usage.of_thread();
                // Enough work that the kernel has counted something.
                let sum = (0..20_000_000_u64).fold(0, |sum, it| std::hint::black_box(sum ^ it));
                thread::yield_now();
                (seconds(&usage), sum)
            });
            (thread.join().unwrap().0, seconds(&usage))
        });
        assert!(!while_running.is_zero(), "the system counts");
        assert!(afterwards >= while_running);
    }
}
