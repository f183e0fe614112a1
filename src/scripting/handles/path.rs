//! The position of a handle in its document. In Lua, it is memory of the host, which the VM does not count, so it is counted here.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::scripting::values::limits;

/// The path to a level of a patch or a memo.
#[derive(Clone, Default)]
pub(super) struct Path(Option<Arc<PathInner>>);

struct PathInner {
    steps: Box<[String]>,
    bytes: usize,
    paths: Option<Arc<Paths>>,
}

/// The bytes of all paths of a VM.
pub(crate) struct Paths {
    held: AtomicUsize,
    limit: usize,
    was_refused: AtomicBool,
}

impl Paths {
    /// Returns the account of a VM with this memory limit, in bytes.
    pub(crate) fn new(memory_limit: usize) -> Self {
        Paths {
            held: AtomicUsize::new(0),
            limit: memory_limit / 4,
            was_refused: AtomicBool::new(false),
        }
    }

    /// Returns whether a path was refused since the last call: unreachable handles keep their paths until they are collected.
    pub(crate) fn take_refusal(&self) -> bool {
        self.was_refused.swap(false, Ordering::Relaxed)
    }
}

impl Path {
    /// Keeps a path for a handle.
    ///
    /// # Errors
    /// The handles that the script keeps use too much memory.
    pub(super) fn new(steps: Vec<String>, paths: Option<&Arc<Paths>>) -> Result<Self, String> {
        /// The bytes of a key in addition to its characters.
        const KEY: usize = 48;
        let bytes = steps.iter().map(|it| it.len() + KEY).sum::<usize>();
        if let Some(paths) = paths {
            let held = paths.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
            if held > paths.limit {
                paths.held.fetch_sub(bytes, Ordering::Relaxed);
                paths.was_refused.store(true, Ordering::Relaxed);
                return Err(limits::too_many_places(paths.limit));
            }
        }
        let paths = paths.map(Arc::clone);
        Ok(Path(Some(Arc::new(PathInner { steps: steps.into(), bytes, paths }))))
    }

    /// Returns the path to a key of this level.
    pub(super) fn join(&self, key: &str) -> Vec<String> {
        let mut path = Vec::with_capacity(self.len() + 1);
        path.extend(self.iter().cloned());
        path.push(key.to_owned());
        path
    }
}

impl Deref for Path {
    type Target = [String];

    fn deref(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |it| &it.steps)
    }
}

impl Drop for PathInner {
    fn drop(&mut self) {
        if let Some(paths) = &self.paths {
            paths.held.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}
