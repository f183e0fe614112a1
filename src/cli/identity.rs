//! Who we are among other operators: read once from the environment and the system, understood in `logic/peering`.

use crate::cli::variable;
use crate::logic::peering::{self, Identity, Moment, Surroundings};
use crate::ports::Clock;

/// The names of this process.
pub(super) fn of_operator(clock: Clock) -> Identity {
    let random = [(); 3].map(|()| fastrand::u8(..));
    Identity::of_operator(&surroundings(), Moment { start: clock.now(), random })
}

/// The name of whoever calls this command.
pub(super) fn of_person() -> String {
    Identity::of_person(&surroundings())
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

/// As Python finds it: by these variables, then by the number of the user. Containers may have a number without a name.
fn user() -> String {
    let names = ["LOGNAME", "USER", "LNAME", "USERNAME"];
    let named = names.into_iter().find_map(|it| variable(it).filter(|it| !it.is_empty()));
    let number = rustix::process::getuid().as_raw();
    named
        .or_else(|| peering::user(&read("/etc/passwd"), number))
        .unwrap_or_else(|| number.to_string())
}

/// A small file of the system; nothing if it cannot be read.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
