//! Writes lines to a stream that may be slow, without making the operator wait for it.
//!
//! A line is written at once if the stream accepts it. If not (a pipe whose reader is busy, a terminal that was stopped), a thread
//! that can wait writes it, in order. When its queue is full, lines are dropped and counted: an operator that works without a log
//! is better than one that hangs because nothing reads its log.

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

/// Maximum number of queued lines; further lines are dropped. About 2 MiB of typical lines.
const QUEUE_MAX: usize = 8_192;
/// A writable pipe accepts this many bytes without blocking: `PIPE_BUF` on Linux; the minimum in POSIX is smaller.
const AT_ONCE_MAX: usize = 4_096;
/// Maximum time that the end of the process waits for queued lines.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// A stream for lines. Clones share it. Its thread ends with the last of them.
pub(super) struct LogOutput<S> {
    shared: Arc<Shared<S>>,
    queue: Arc<OnceLock<SyncSender<Message>>>,
}

impl<S> Clone for LogOutput<S> {
    fn clone(&self) -> Self {
        LogOutput { shared: Arc::clone(&self.shared), queue: Arc::clone(&self.queue) }
    }
}

struct Shared<S> {
    stream: Mutex<S>,
    /// Queued lines, including the one that is being written.
    waiting: AtomicUsize,
    lost: AtomicU64,
}

enum Message {
    Line(String),
    /// Requests a response when all earlier lines are written.
    Flush(SyncSender<()>),
}

impl<S: Write + AsFd + Send + 'static> LogOutput<S> {
    /// Creates an output to this stream.
    pub(super) fn new(stream: S) -> Self {
        let shared = Shared {
            stream: Mutex::new(stream),
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        };
        LogOutput { shared: Arc::new(shared), queue: Arc::default() }
    }

    /// Writes or queues a line; never waits.
    pub(super) fn line(&self, line: &str) {
        if !self.shared.write_at_once(line) {
            self.enqueue(line);
        }
    }

    /// Waits until everything is written, up to [`FLUSH_MAX`].
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some(queue) = self.queue.get()
            && queue.try_send(Message::Flush(done)).is_ok()
        {
            // Does not wait longer for a slow reader.
            let _in_time = wait.recv_timeout(FLUSH_MAX).is_ok();
        }
    }

    fn enqueue(&self, line: &str) {
        let queue = self.queue.get_or_init(|| {
            let (queue, messages) = sync_channel(QUEUE_MAX);
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("log".into());
            // Without the thread the receiver is dropped, and lines count as lost.
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
    /// Writes the line if nothing is queued and the stream accepts it. Returns whether it did.
    fn write_at_once(&self, line: &str) -> bool {
        // The thread holds the stream while it waits to write a line.
        let Some(mut stream) = self.stream.try_lock() else { return false };
        let is_free = self.waiting.load(Ordering::SeqCst) == 0
            && self.lost.load(Ordering::SeqCst) == 0
            && line.len() <= AT_ONCE_MAX
            && takes(&*stream);
        if is_free {
            // A closed log does not stop the operator.
            drop(stream.write_all(line.as_bytes()));
        }
        is_free
    }

    /// Writes queued lines, in the thread.
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
                // The sender may no longer wait.
                Message::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&self, line: &str) {
        // A panic while it was locked can only have truncated a line.
        let mut stream = self.stream.lock();
        drop(stream.write_all(line.as_bytes()));
    }
}

/// Returns whether the stream accepts data without blocking. Files and terminals always do, unless a terminal is stopped.
fn takes(stream: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut polled, Some(&now)) {
        Ok(count) => count > 0,
        // Prefer a line that may block to a lost one.
        Err(_) => true,
    }
}
