//! The threads of scripts end with them. Counted in a separate process, without threads of other tests.

use std::{env, fs, process::Command, time::Duration};

use kopf::scripting::Placement;
use tokio::time::Instant;

use super::leaks;

/// Set in the process that counts.
const ALONE: &str = "KOPF_TEST_COUNTS_THREADS";
/// The number of rounds, each with several threads that start and end.
const ROUNDS: usize = 100;
/// Threads end soon; the machine may be busy.
const DEADLINE: Duration = Duration::from_mins(1);

/// Returns the number of threads of this process; `None` where it is unknown.
fn threads() -> Option<usize> {
    fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

#[test]
fn the_threads_of_replaced_scripts_end() {
    if threads().is_none() {
        return;
    }
    if env::var_os(ALONE).is_none() {
        let test = "scripting::generations::threads::the_threads_of_replaced_scripts_end";
        let child = Command::new(env::current_exe().expect("a path"))
            .args([test, "--exact", "--test-threads=1"])
            .env(ALONE, "1")
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for language in ["lua", "rhai"] {
        let before = threads();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, leaks::reload(language, ROUNDS, Placement::Threads));
        // Nothing waits for the end of these.
        local.block_on(&runtime, leaks::abandon(language));
        drop(local);
        let began = Instant::now();
        while threads() > before {
            assert!(began.elapsed() < DEADLINE, "{language}: {:?} > {before:?}", threads());
            std::thread::yield_now();
        }
    }
}
