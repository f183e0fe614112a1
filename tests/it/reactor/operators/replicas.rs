//! Replicas under faults: crashes, interruptions, lost responses and refusals from seeds. In each run, only one replica acts at a
//! time, and in the end everything is done.

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use kopf::testing::run_paused;
use kopf_apiserver::{Fault, FaultEffect};

use super::cluster::{Cluster, Member, Plan};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Each seed is a different run.
const SEEDS: std::ops::Range<u64> = 0..6;

/// The seconds of one run.
const LENGTH: u64 = 300;

/// The replicas of one run. A process that starts again is a new replica.
struct Replicas<'a> {
    env: &'a Cluster,
    running: Vec<Member>,
    started: usize,
}

impl Replicas<'_> {
    /// Starts a replica at this index; the one that runs there is killed.
    fn start(&mut self, place: usize) {
        let mut plan = Plan::new(NAMES[place]).replica();
        plan.identity = format!("{}{}", NAMES[place], self.started);
        // Some calls last longer than any change of the leader.
        plan.creation = Duration::from_secs(7);
        self.started += 1;
        let running = self.env.start(plan);
        if place < self.running.len() {
            self.running[place] = running;
        } else {
            self.running.push(running);
        }
    }
}

/// Runs one seed. Returns the number of objects, and the calls with their times.
async fn run(seed: u64) -> (usize, Vec<(Duration, String)>) {
    let mut random = Rng::with_seed(seed);
    let env = Cluster::new([]);
    let mut replicas = Replicas { env: &env, running: Vec::new(), started: 0 };
    (0..NAMES.len()).for_each(|it| replicas.start(it));
    let mut objects = 0;
    for second in (1..LENGTH).step_by(3) {
        env.until(second).await;
        let place = random.usize(..NAMES.len());
        let leases = |effect, times| {
            env.server.fault(Fault::always(effect).on("", "/leases").times(times));
        };
        match random.u8(..20) {
            0 | 1 => replicas.start(place),
            2..=4 => replicas.running[place].connect(random.bool()),
            5 => leases(FaultEffect::TimeoutAfterwards, random.u32(1..4)),
            6 => leases(
                FaultEffect::Refuse { code: 500, retry_after_seconds: None },
                random.u32(1..10),
            ),
            7 => leases(FaultEffect::Latency(Duration::from_secs(4)), random.u32(1..4)),
            _ => {
                env.create(&format!("o{objects}"));
                objects += 1;
            }
        }
    }
    env.server.clear_faults();
    (0..NAMES.len()).for_each(|it| replicas.start(it));
    env.until(LENGTH + 100).await;
    (objects, env.calls.timed())
}

fn check(seed: u64, objects: usize, calls: &[(Duration, String)]) {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    for (at, call) in calls {
        let words: Vec<_> = call.split(' ').collect();
        let (replica, object) = (words[0], words[2]);
        if words.len() == 4 {
            open.remove(object);
            continue;
        }
        let others: Vec<_> = open.values().filter(|it| **it != replica).collect();
        assert!(
            others.is_empty(),
            "seed {seed}: at {at:?} {call}, while {others:?} acts: {calls:#?}"
        );
        open.insert(object, replica);
    }
    for object in 0..objects {
        let done = format!(" o{object} done");
        let times = calls.iter().filter(|(_, it)| it.ends_with(&done)).count();
        assert!(times > 0, "seed {seed}: o{object} was never handled: {calls:#?}");
    }
}

#[test]
fn whatever_happens_one_replica_acts_at_a_time_and_everything_is_done() {
    for seed in SEEDS {
        let (objects, calls) = run_paused(run(seed));
        check(seed, objects, &calls);
    }
}
