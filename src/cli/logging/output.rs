//! Where lines go: to a stream that may be slow, without making the operator wait for it.
//!
//! A line is written at once if the stream takes it. If not (a pipe whose reader is busy, a terminal that was stopped), it is
//! queued for a thread that can wait, in order. When the queue is full, lines are lost and counted: an operator that does its
//! work without a log is worth more than one that hangs because nobody reads what it says.

use std::{
    io::Write,
    os::fd::AsFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The most lines that wait; then lines are lost. About 2 MiB of usual lines.
const QUEUE_MAX: usize = 8_192;
/// What a pipe that says it can take something takes without blocking: POSIX's least `PIPE_BUF` is smaller, Linux has this.
const AT_ONCE_MAX: usize = 4_096;
/// How long the end of the process waits for the rest of the log.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// A stream for lines. Clones share it. Its thread ends with the last of them.
pub(super) struct Output<S> {
    shared: Arc<Shared<S>>,
    queue: Arc<OnceLock<SyncSender<Message>>>,
}

impl<S> Clone for Output<S> {
    fn clone(&self) -> Self {
        Output { shared: Arc::clone(&self.shared), queue: Arc::clone(&self.queue) }
    }
}

struct Shared<S> {
    stream: Mutex<S>,
    /// Lines in the queue, and the one that is being written.
    waiting: AtomicUsize,
    lost: AtomicU64,
}

enum Message {
    Line(String),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl<S: Write + AsFd + Send + 'static> Output<S> {
    /// Lines go to this stream.
    pub(super) fn new(stream: S) -> Self {
        let shared = Shared {
            stream: Mutex::new(stream),
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        };
        Output { shared: Arc::new(shared), queue: Arc::default() }
    }

    /// Writes or queues a line; never waits.
    pub(super) fn line(&self, line: &str) {
        if !self.shared.write_at_once(line) {
            self.enqueue(line);
        }
    }

    /// Waits a little until everything is written.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some(queue) = self.queue.get()
            && queue.try_send(Message::Flush(done)).is_ok()
        {
            // Whoever does not read until then does not read.
            let _in_time = wait.recv_timeout(FLUSH_MAX).is_ok();
        }
    }

    fn enqueue(&self, line: &str) {
        let queue = self.queue.get_or_init(|| {
            let (queue, messages) = sync_channel(QUEUE_MAX);
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("log".into());
            // Without the thread the receiver is gone, and lines count as lost.
            drop(thread.spawn(move || shared.work(&messages)));
            queue
        });
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        if queue.try_send(Message::Line(line.to_owned())).is_err() {
            self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
            self.shared.lost.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl<S: Write + AsFd> Shared<S> {
    /// Whether the line is written: nothing waits before it, and the stream takes it.
    fn write_at_once(&self, line: &str) -> bool {
        // While the thread waits with a line, it holds the stream.
        let Some(mut stream) = self.stream.try_lock() else { return false };
        let is_free = self.waiting.load(Ordering::SeqCst) == 0
            && self.lost.load(Ordering::SeqCst) == 0
            && line.len() <= AT_ONCE_MAX
            && takes(&*stream);
        if is_free {
            // A closed log is no reason to stop.
            drop(stream.write_all(line.as_bytes()));
        }
        is_free
    }

    /// The life of the thread.
    fn work(&self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Line(line) => {
                    self.write(&line);
                    let lost = self.lost.swap(0, Ordering::SeqCst);
                    if lost > 0 {
                        self.write(&format!(
                            "kopf: {lost} log lines were lost here, because stderr was not read in time\n"
                        ));
                    }
                    self.waiting.fetch_sub(1, Ordering::SeqCst);
                }
                // Whoever asked may be gone.
                Message::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&self, line: &str) {
        // A panic while it was held can only have cut a line.
        let mut stream = self.stream.lock();
        drop(stream.write_all(line.as_bytes()));
    }
}

/// Whether the stream takes something without blocking. Files and terminals always do, unless a terminal is stopped.
fn takes(stream: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut polled, Some(&now)) {
        Ok(count) => count > 0,
        // Better a line that may wait than none.
        Err(_) => true,
    }
}
