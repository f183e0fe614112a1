//! Claims about daemons and timers that `tests/it` does not show with a whole reactor.

use super::{daemon::Daemon, work::DaemonCall};

#[test]
fn waiting_daemons_are_small() {
    assert!(size_of::<Daemon>() <= 152, "{} bytes of each", size_of::<Daemon>());
    assert!(size_of::<DaemonCall>() <= 56, "{} bytes more in a call", size_of::<DaemonCall>());
}
