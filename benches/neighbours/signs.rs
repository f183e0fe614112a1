//! Liveness of the operator: the response time of its health endpoint, and the pauses between its keep-alives.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

/// The longest pause between events of one kind.
#[derive(Default)]
pub(crate) struct Pauses {
    last: Option<Timestamp>,
    pub(crate) longest: Duration,
}

impl Pauses {
    pub(crate) fn see(&mut self, moment: Option<Timestamp>) {
        let (Some(moment), last) = (moment, self.last) else { return };
        self.last = Some(moment);
        let pause = last.map(|it| moment.duration_since(it).unsigned_abs());
        self.longest = self.longest.max(pause.unwrap_or_default());
    }
}

/// Requests the health endpoint repeatedly, from a separate thread.
pub(crate) struct Probe {
    thread: thread::JoinHandle<Vec<Duration>>,
    over: Arc<AtomicBool>,
}

impl Probe {
    pub(crate) fn start(port: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut answers = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let began = Instant::now();
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
                let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                stream.write_all(request).expect("sent");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("an answer");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                answers.push(began.elapsed());
                thread::park_timeout(Duration::from_millis(20));
            }
            answers
        });
        Probe { thread, over }
    }

    pub(crate) fn end(self) -> Vec<Duration> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}
