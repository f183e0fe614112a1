//! Compares two structures.
//!
//! The contract is `tests/vectors/diff.json` and `diff-reduce.json`.

use kopf_json::{shared::bytes_of, values};
use serde_json::{Map, Value};

use super::fields;
use crate::settings::FieldPath;

/// Operations that turn the old structure into the new one; empty if they are equal.
pub type Diff = Vec<DiffItem>;

/// One operation: a field that was added, changed or removed.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffItem {
    /// The kind of the operation.
    pub operation: DiffOperation,
    /// The path; empty for the whole structure.
    pub field: FieldPath,
    /// The old value; null for additions.
    pub old: Value,
    /// The new value; null for removals.
    pub new: Value,
}

/// Returns the approximate bytes of memory that the values of a difference take.
pub fn memory(diff: &Diff) -> usize {
    diff.iter().map(|it| bytes_of(&it.old) + bytes_of(&it.new)).sum()
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiffOperation {
    /// The field was added.
    Add,
    /// The value was replaced.
    Change,
    /// The field was removed.
    Remove,
}

impl DiffOperation {
    /// Returns the word used in kwargs.
    pub fn as_str(self) -> &'static str {
        match self {
            DiffOperation::Add => "add",
            DiffOperation::Change => "change",
            DiffOperation::Remove => "remove",
        }
    }
}

/// Determines which keys are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffScope {
    /// Keys of both structures.
    Full,
    /// Keys that only the new structure has are ignored.
    Left,
    /// Keys that only the old structure has are ignored.
    Right,
}

/// Compares two structures. Null counts as absent; lists are compared as a whole.
pub fn diff(old: &Value, new: &Value) -> Diff {
    scoped(old, new, DiffScope::Full)
}

/// Compares two structures within a scope.
///
/// On every level additions come first, then removals, then changes below common keys, each in the order of its map.
///
/// If the paths of all operations would take more than [`PATHS_MAX`] bytes together, the result is a single change of the whole.
pub fn scoped(old: &Value, new: &Value, scope: DiffScope) -> Diff {
    let mut walk = DiffWalk { scope, path: Vec::new(), room: PATHS_MAX, found: Diff::new() };
    if walk.compare(old, new) == PathBudget::Left {
        return walk.found;
    }
    vec![DiffItem {
        operation: DiffOperation::Change,
        field: FieldPath::new(),
        old: old.clone(),
        new: new.clone(),
    }]
}

/// Maximum bytes of the paths of all operations. Each path repeats the keys above it, so a key of 1 MiB above many fields would
/// fill the memory. The largest objects of a cluster take a tenth of this.
const PATHS_MAX: usize = 16 << 20;

/// Returns the same changes relative to a field: those below it, and its part of those above it.
pub fn reduce(changes: &Diff, field: &[String]) -> Diff {
    let mut reduced = Diff::new();
    for item in changes {
        if let Some(below) = item.field.strip_prefix(field) {
            reduced.push(DiffItem { field: below.to_vec(), ..item.clone() });
        } else if let Some(tail) = field.strip_prefix(item.field.as_slice()) {
            let part = |whole| fields::get(whole, tail).unwrap_or(&Value::Null);
            reduced.extend(diff(part(&item.old), part(&item.new)));
        }
    }
    reduced
}

/// A comparison in progress.
struct DiffWalk<'a> {
    scope: DiffScope,
    /// Borrowed: most compared values are equal, and their paths are not needed.
    path: Vec<&'a str>,
    /// Bytes that paths may still take.
    room: usize,
    found: Diff,
}

/// The remaining space for paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathBudget {
    Left,
    Full,
}

impl<'a> DiffWalk<'a> {
    fn compare(&mut self, old: &'a Value, new: &'a Value) -> PathBudget {
        match (old, new) {
            (Value::Null, Value::Null) => PathBudget::Left,
            (Value::Null, _) => self.report(DiffOperation::Add, old, new),
            (_, Value::Null) => self.report(DiffOperation::Remove, old, new),
            // Two equal maps produce no operations below them either, so their equality is not checked separately.
            (Value::Object(old), Value::Object(new)) => self.compare_maps(old, new),
            _ if values::equal(old, new) => PathBudget::Left,
            _ => self.report(DiffOperation::Change, old, new),
        }
    }

    fn compare_maps(
        &mut self,
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
    ) -> PathBudget {
        let scope = self.scope;
        let added =
            new.iter().filter(|(key, _)| scope != DiffScope::Left && !old.contains_key(*key));
        let removed =
            old.iter().filter(|(key, _)| scope != DiffScope::Right && !new.contains_key(*key));
        let common = old.iter().filter_map(|(key, it)| Some((key, it, new.get(key)?)));
        let added = added.map(|(key, it)| (key, &Value::Null, it));
        let removed = removed.map(|(key, it)| (key, it, &Value::Null));
        for (key, old, new) in added.chain(removed).chain(common) {
            if self.compare_at(key, old, new) == PathBudget::Full {
                return PathBudget::Full;
            }
        }
        PathBudget::Left
    }

    fn compare_at(&mut self, key: &'a str, old: &'a Value, new: &'a Value) -> PathBudget {
        self.path.push(key);
        let room = self.compare(old, new);
        self.path.pop();
        room
    }

    fn report(&mut self, operation: DiffOperation, old: &Value, new: &Value) -> PathBudget {
        let bytes = self.path.iter().map(|it| it.len()).sum();
        let Some(room) = self.room.checked_sub(bytes) else { return PathBudget::Full };
        self.room = room;
        let field = self.path.iter().map(|it| (*it).to_owned()).collect();
        self.found.push(DiffItem { operation, field, old: old.clone(), new: new.clone() });
        PathBudget::Left
    }
}
/// Formats a diff for log lines: one `(operation field: old -> new)` after the other.
pub fn to_text(diff: &Diff) -> String {
    let item = |it: &DiffItem| {
        let (operation, field) = (it.operation.as_str(), it.field.join("."));
        format!("({operation} {field:?}: {} -> {})", it.old, it.new)
    };
    diff.iter().map(item).collect::<Vec<_>>().join(", ")
}
