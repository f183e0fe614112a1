//! Ports for programs that must be told one.

use std::{
    net::TcpListener,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// The ports above those that Linux gives to connections: between the choice of a port and its use, no connection takes it.
const FIRST: u32 = 61_000;
const COUNT: u32 = 4_500;

/// Returns a port that nobody uses, another one each time.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin elsewhere.
    let start = process::id() % COUNT;
    let next = || FIRST + (start + TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT;
    let mut ports = (0..COUNT).filter_map(|_| u16::try_from(next()).ok());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}
