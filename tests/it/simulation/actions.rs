//! What users, the server and the surroundings of the operator do in a run, from its seed.

use std::time::Duration;

use super::dice::Dice;

/// The names of objects are `o0`, `o1`, ….
const OBJECTS: usize = 4;

/// Nothing goes wrong after this time.
pub(super) const FAULTS_END: Duration = Duration::from_mins(1);

/// Something that happens.
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
    /// The operator is stopped and started again.
    Restart,
    /// The operator is killed, and started again after this time.
    Kill(Duration),
    /// The operator starts.
    Start,
    /// The end of an outage.
    Connect,
    /// The end of [`Action::Hide`].
    Show,
}

/// Returns the actions of a seed with their times.
pub(super) fn actions(dice: Dice) -> Vec<(Duration, Action)> {
    let mut random = dice.of("actions", 0);
    let end = u64::try_from(FAULTS_END.as_millis()).expect("small") - 5000;
    let count = random.usize(6..30);
    let has_restarts = random.bool();
    let mut actions = Vec::new();
    for _ in 0..count {
        let at = Duration::from_millis(random.u64(0..end));
        let object = random.usize(..OBJECTS);
        let pause = Duration::from_millis(random.u64(100..8000));
        let action = match random.u32(..100) {
            0..30 => Action::Create(object),
            30..52 => Action::Edit(object),
            52..60 => Action::Touch(object),
            60..70 => Action::Delete(object),
            70..76 => Action::Replace(object),
            76..80 => Action::CloseWatches,
            80..83 => Action::Compact,
            83..85 => Action::Outage(pause),
            85..87 => Action::Hide(pause),
            87..93 => Action::Reload,
            93..95 if has_restarts => Action::Restart,
            95..100 if has_restarts => Action::Kill(pause / 2),
            _ => Action::Edit(object),
        };
        actions.push((at, action));
    }
    actions
}
