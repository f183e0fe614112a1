//! Attributes the parts of a patch that several handlers have filled one after another.

use serde_json::{Map, Value};

use super::{Patch, Transformation};

/// The state of the patch after each of its authors. An author is a number that the caller assigns.
#[derive(Clone, Debug, Default)]
pub struct Authors(Vec<(Option<usize>, Patch)>);

impl Authors {
    /// Attributes the new parts of the patch to this author; `None` if they belong to no handler.
    pub fn note(&mut self, author: Option<usize>, patch: &Patch) {
        let is_known = self.0.last().map_or(patch.is_empty(), |(_, last)| last == patch);
        if !is_known {
            self.0.push((author, patch.clone()));
        }
    }

    /// Adds the authors of a newer patch. Their numbers are increased by `first`.
    pub fn absorb(&mut self, before: &Patch, newer: Authors, first: usize) {
        for (author, after) in newer.0 {
            let mut both = before.clone();
            both.add(after);
            self.note(author.map(|it| first + it), &both);
        }
    }

    /// Splits a merge-patch by its authors, in their order. A value that several have set belongs to the last one.
    pub fn split(&self, merge: &Map<String, Value>) -> Vec<(Option<usize>, Map<String, Value>)> {
        let mut rest = merge.clone();
        let nothing = Map::new();
        let mut parts = Vec::new();
        for (index, (author, after)) in self.0.iter().enumerate().rev() {
            let before = index.checked_sub(1).and_then(|it| self.0.get(it));
            let before = before.map_or(&nothing, |(_, it)| &it.merge);
            let part = take_changed(before, &after.merge, &mut rest);
            if !part.is_empty() {
                parts.push((*author, part));
            }
        }
        parts.reverse();
        if !rest.is_empty() {
            parts.push((None, rest));
        }
        parts
    }

    /// Returns the author of a transformation.
    pub fn author_of(&self, transformation: &Transformation) -> Option<usize> {
        let first = self.0.iter().find(|(_, it)| it.transformations.contains(transformation));
        first.and_then(|(author, _)| *author)
    }
}

/// Removes from `rest` the values that differ between two states of a merge-patch, and returns them.
fn take_changed(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    rest: &mut Map<String, Value>,
) -> Map<String, Value> {
    let nothing = Map::new();
    let mut taken = Map::new();
    for (key, value) in after {
        let earlier = before.get(key);
        if earlier == Some(value) {
            continue;
        }
        let part = match (value, rest.get_mut(key)) {
            (Value::Object(value), Some(Value::Object(below))) if !below.is_empty() => {
                let earlier = earlier.and_then(Value::as_object).unwrap_or(&nothing);
                let part = take_changed(earlier, value, below);
                if below.is_empty() {
                    rest.shift_remove(key);
                }
                Some(part).filter(|it| !it.is_empty()).map(Value::Object)
            }
            (_, Some(_)) => rest.shift_remove(key),
            (_, None) => None,
        };
        taken.extend(part.map(|it| (key.clone(), it)));
    }
    taken
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Authors;
    use crate::logic::{
        change::patch::{Patch, Transformation},
        object::conditions::ConditionChange,
    };

    fn patch(merge: &Value) -> Patch {
        Patch { merge: merge.as_object().cloned().unwrap(), ..Patch::default() }
    }

    #[test]
    fn a_merge_patch_is_split_by_its_authors() {
        let mut authors = Authors::default();
        authors.note(None, &patch(&json!({})));
        authors.note(Some(0), &patch(&json!({ "spec": { "a": 1, "b": [1] } })));
        authors.note(Some(0), &patch(&json!({ "spec": { "a": 1, "b": [1] } })));
        let last = json!({ "spec": { "a": 1, "b": [2] }, "status": { "x": {} } });
        authors.note(Some(1), &patch(&last));
        let parts = authors.split(last.as_object().unwrap());
        let parts: Vec<_> =
            parts.into_iter().map(|(author, it)| (author, Value::from(it))).collect();
        let expected = [
            (Some(0), json!({ "spec": { "a": 1 } })),
            (Some(1), json!({ "spec": { "b": [2] }, "status": { "x": {} } })),
        ];
        assert_eq!(parts, expected);
        let status = json!({ "status": { "x": {} }, "own": 1 });
        let parts = authors.split(status.as_object().unwrap());
        let parts: Vec<_> =
            parts.into_iter().map(|(author, it)| (author, Value::from(it))).collect();
        let expected = [(Some(1), json!({ "status": { "x": {} } })), (None, json!({ "own": 1 }))];
        assert_eq!(parts, expected, "what nobody is known for comes last");
    }

    #[test]
    fn authors_of_two_patches_are_known_after_one_was_added_to_the_other() {
        let (mut all, mut others) = (Authors::default(), Authors::default());
        let before = patch(&json!({ "spec": { "a": 1 } }));
        all.note(Some(0), &before);
        others.note(Some(0), &patch(&json!({ "spec": { "b": 1 } })));
        others.note(Some(1), &patch(&json!({ "spec": { "b": 1, "c": 1 } })));
        all.absorb(&before, others, 1);
        let sum = json!({ "spec": { "a": 1, "b": 1, "c": 1 } });
        let parts = all.split(sum.as_object().unwrap());
        let parts: Vec<_> =
            parts.into_iter().map(|(author, it)| (author, Value::from(it))).collect();
        let expected = ["a", "b", "c"].into_iter().enumerate();
        let expected: Vec<_> =
            expected.map(|(number, it)| (Some(number), json!({ "spec": { it: 1 } }))).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_transformation_belongs_to_its_author() {
        let mut authors = Authors::default();
        let condition =
            |kind: &str| Transformation::Condition(ConditionChange::Remove(kind.into()).into());
        let mut patch = Patch::default();
        patch.transformations.push(condition("A"));
        authors.note(Some(3), &patch);
        patch.transformations.push(condition("B"));
        authors.note(Some(4), &patch);
        assert_eq!(authors.author_of(&condition("A")), Some(3));
        assert_eq!(authors.author_of(&condition("B")), Some(4));
        assert_eq!(authors.author_of(&condition("C")), None);
    }
}
