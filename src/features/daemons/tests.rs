//! Claims about daemons and timers beside what `tests/it` shows of them in a reactor.

use std::future::Future;

use super::{runner::Runner, team::Membership};

/// The size of what a function would return, without calling it.
fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn sizes() {
    println!("Runner {} live {}", size_of::<Runner>(), size(Runner::live));
    println!("run {}", size(|it: &'static Runner| it.run()));
    println!("membership {}", size_of::<Membership>());
    println!("schedule {}", size_of::<crate::logic::schedule::Schedule>());
    println!("handler {}", size_of::<crate::logic::handler::Handler>());
    println!("object {}", size_of::<crate::logic::object::Object>());
    println!("header {}", size_of::<crate::logic::object::Header>());
    println!("daemon {}", size_of::<super::Daemon>());
    println!("ofobject {}", size_of::<super::OfObject>());
    println!("invocation {}", size_of::<crate::ports::Invocation>());
    println!("value {}", size_of::<serde_json::Value>());
    println!(
        "attempt {}",
        size(|(it, p): (&'static Runner, &'static mut super::patches::Patches)| it.attempt(
            crate::logic::outcome::Effort { retries: 0, runtime: std::time::Duration::ZERO },
            p
        ))
    );
    println!(
        "handling run {}",
        size(
            |(it, p): (
                &'static crate::handling::run::Runner<'static>,
                crate::handling::run::Try
            )| it.run(p)
        )
    );
    println!("try {}", size_of::<crate::handling::run::Try>());
}
