//! The actions of users, of the server and of the environment of the operator in a run, from its seed.

use std::time::Duration;

use fastrand::Rng;

use super::{dice::Dice, world::Stage};

/// The names of objects are `o0`, `o1`, ….
const OBJECTS: usize = 4;

/// No fault happens after this time.
pub(super) const FAULTS_END: Duration = Duration::from_mins(1);

/// One action of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A user creates an object.
    Create(usize),
    /// A user changes `spec.x`.
    Edit(usize),
    /// Another controller changes the status.
    Touch(usize),
    /// A user deletes an object.
    Delete(usize),
    /// A user deletes an object, and creates another one of the same name as soon as possible.
    Replace(usize),
    /// An object is removed although it has finalizers, and created again, while the watches are down.
    Swap(usize),
    /// All watches end.
    CloseWatches,
    /// The history of the server is compacted, and all watches end.
    Compact,
    /// Connections are refused for this time.
    Outage(Duration),
    /// Discovery does not show the group for this time.
    Hide(Duration),
    /// Another generation of the scripts is loaded.
    Reload,
    /// A process is stopped and started again. The number is taken modulo that of processes.
    Restart(usize),
    /// A process is killed, and started again after this time.
    Kill(usize, Duration),
    /// A process starts.
    Start(usize),
    /// The requests of a process get lost for this time.
    CutOff(usize, Duration),
    /// The end of [`Action::CutOff`].
    Reconnect(usize),
    /// A user deletes the CRD, and creates it again as soon as possible.
    DropDefinition,
    /// The CRD is created.
    Define,
    /// A backup of the server is made.
    BackUp,
    /// The backup is restored: objects and their versions go back.
    Restore,
    /// The clock of the operator is set this many seconds after or before the real time.
    SetClock(i64),
    /// A user deletes the namespace, and creates it again as soon as possible.
    DropNamespace,
    /// The namespace is created.
    MakeNamespace,
    /// A quota refuses new children, and admission refuses changes of objects, for this time.
    Quota(Duration),
    /// The end of [`Action::Quota`].
    NoQuota,
    /// All processes are frozen for this time, as on a machine that is suspended.
    Freeze(Duration),
    /// A user edits a child of an object with this number.
    EditChild(usize, u64),
    /// A user deletes a child of an object with this number, or what is in its place.
    DeleteChild(usize, u64),
    /// A user creates an object that has the name of a child.
    Occupy(usize, u64),
    /// A user changes the object that reconcile handlers watch.
    Tune(u64),
    /// The end of an outage.
    Connect,
    /// The end of [`Action::Hide`].
    Show,
}

/// Returns the actions of a seed with their times.
pub(super) fn actions(dice: Dice, stage: Stage) -> Vec<(Duration, Action)> {
    let mut random = dice.of("actions", 0);
    let end = u64::try_from(FAULTS_END.as_millis()).expect("small") - 5000;
    let count = random.usize(6..30);
    let has_restarts = random.bool();
    let mut actions = Vec::new();
    for _ in 0..count {
        let at = Duration::from_millis(random.u64(0..end));
        let object = random.usize(..OBJECTS);
        let pause = Duration::from_millis(random.u64(100..8000));
        if let Some(action) = own(stage, &mut random, pause) {
            actions.push((at, action));
            continue;
        }
        let action = match random.u32(..107) {
            0..28 => Action::Create(object),
            28..36 => Action::Touch(object),
            36..46 => Action::Delete(object),
            46..53 => Action::Replace(object),
            53..57 => Action::CloseWatches,
            57..60 => Action::Compact,
            60..62 => Action::Outage(pause),
            62..64 => Action::Hide(pause),
            64..70 => Action::Reload,
            70..72 if has_restarts => Action::Restart(object),
            72..77 if has_restarts => Action::Kill(object, pause / 2),
            77..81 if stage.has_replicas() => Action::CutOff(object, pause * 3),
            77..80 if stage == Stage::Definitions => Action::DropDefinition,
            81..84 => Action::Swap(object),
            _ => Action::Edit(object),
        };
        actions.push((at, action));
    }
    actions
}

/// Returns an action that only this kind of world has, from time to time.
fn own(stage: Stage, random: &mut Rng, pause: Duration) -> Option<Action> {
    let action = match stage {
        Stage::Restored if random.bool() => Action::BackUp,
        Stage::Restored => Action::Restore,
        Stage::Schedules if random.u32(..4) == 0 => Action::Freeze(pause * 4),
        Stage::Clocks | Stage::Schedules => Action::SetClock(random.i64(-900..900)),
        Stage::Namespaces => Action::DropNamespace,
        Stage::Quota(_) => Action::Quota(pause),
        Stage::Frozen => Action::Freeze(pause * 4),
        Stage::Levels(_) | Stage::LevelReplicas => of_children(random),
        Stage::Native
        | Stage::Scripts(_)
        | Stage::Replicas
        | Stage::Definitions
        | Stage::Lagging => return None,
    };
    let one_of = if stage.has_children() { 2 } else { 5 };
    (random.u32(..one_of) == 0).then_some(action)
}

/// Returns an action on children.
fn of_children(random: &mut Rng) -> Action {
    let (object, number) = (random.usize(..OBJECTS), random.u64(..8));
    match random.u32(..10) {
        0..3 => Action::EditChild(object, number),
        3..7 => Action::DeleteChild(object, number),
        7 => Action::Occupy(object, number),
        _ => Action::Tune(number),
    }
}
