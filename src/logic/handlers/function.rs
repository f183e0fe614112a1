//! A reference to a function of a script.
//!
//! Only the scripting side uses its content; all other modules store it, compare it and pass it back.

use std::{any::Any, cmp::Ordering, fmt, sync::Arc};

/// The number of a loaded script: unique for the lifetime of the process, also across reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptId(pub u32);

/// The owner of a function: the engine of its script, which is dropped with the last reference. Only the scripting side uses its content.
pub type FunctionOwner = Arc<dyn Any + Send + Sync>;

/// A function of a script. Two references are equal if they refer to the same function of the same loaded script.
#[derive(Clone)]
pub struct Function {
    /// The script that defined it.
    pub script: ScriptId,
    /// Its index in that script's table of functions.
    pub slot: u32,
    /// The name it was defined with; empty for anonymous functions.
    pub name: Arc<str>,
    /// Behind one pointer, because functions are part of many structures.
    kept: Option<Arc<KeptValues>>,
}

/// Values that are dropped together with the last clone of a function.
#[derive(Clone, Default)]
struct KeptValues {
    /// The engine frees the slot when the last reference is dropped.
    #[expect(dead_code, reason = "it is there to be dropped")]
    slot: Option<Arc<dyn Any + Send + Sync>>,
    /// See [`Function::with_owner`].
    owner: Option<FunctionOwner>,
}

impl Function {
    /// Returns a function whose slot is freed only with its script.
    pub fn new(script: ScriptId, slot: u32, name: impl Into<Arc<str>>) -> Self {
        Function { script, slot, name: name.into(), kept: None }
    }

    /// Ties the lifetime of a guard (a slot in a VM) to this reference and its clones.
    #[must_use]
    pub fn keeping(self, guard: Arc<dyn Any + Send + Sync>) -> Self {
        let kept = KeptValues { slot: Some(guard), ..self.kept() };
        Function { kept: Some(Arc::new(kept)), ..self }
    }

    /// Keeps the script alive as long as this reference and its clones.
    ///
    /// Not for references that scripts can store: a script would keep itself alive.
    #[must_use]
    pub fn with_owner(self, owner: &FunctionOwner) -> Self {
        let kept = KeptValues { owner: Some(Arc::clone(owner)), ..self.kept() };
        Function { kept: Some(Arc::new(kept)), ..self }
    }

    /// Returns a reference that keeps nothing alive.
    #[must_use]
    pub fn without_owner(self) -> Self {
        Function { kept: None, ..self }
    }

    /// Returns the owner that [`Function::with_owner`] has set, if any.
    pub fn owner(&self) -> Option<&FunctionOwner> {
        self.kept.as_ref()?.owner.as_ref()
    }

    fn kept(&self) -> KeptValues {
        self.kept.as_deref().cloned().unwrap_or_default()
    }

    /// Returns what two references to the same function share.
    pub(crate) fn identity(&self) -> (ScriptId, u32) {
        (self.script, self.slot)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Function {}

impl PartialOrd for Function {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Function {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}:{}", self.name, self.script.0, self.slot)
    }
}
