//! The identity of this process among other operators: read once from the environment and the system, built in
//! `logic/replicas/peering`.

use crate::cli::env::variable;
use crate::logic::replicas::peering::{self, PeeringIdentity, ProcessStart, Surroundings};
use crate::ports::Clock;

/// Returns the identities of this process.
pub(super) fn of_operator(clock: Clock) -> PeeringIdentity {
    let random = [(); 3].map(|()| fastrand::u8(..));
    PeeringIdentity::of_operator(&surroundings(), ProcessStart { start: clock.now(), random })
}

/// Returns the identity of the user who runs this command.
pub(super) fn of_person() -> String {
    PeeringIdentity::of_person(&surroundings())
}

fn surroundings() -> Surroundings {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Surroundings {
        pod: variable("POD_ID").filter(|it| !it.is_empty()),
        user: user(),
        aliases: peering::aliases(&read("/etc/hosts"), &host),
        host,
    }
}

/// Finds the user as Python does: by these variables, then by the user id. Containers may have an id without a name.
fn user() -> String {
    let names = ["LOGNAME", "USER", "LNAME", "USERNAME"];
    let named = names.into_iter().find_map(|it| variable(it).filter(|it| !it.is_empty()));
    let number = rustix::process::getuid().as_raw();
    named
        .or_else(|| peering::user(&read("/etc/passwd"), number))
        .unwrap_or_else(|| number.to_string())
}

/// Reads a small file of the system; empty if it cannot be read.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
