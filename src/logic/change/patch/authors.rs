//! Attributes the parts of a patch that several handlers have filled one after another.

use serde_json::{Map, Value};

use super::{Patch, Transformation};

/// What each of the authors of a patch has added to it, in their order. An author is a number that the caller assigns.
#[derive(Debug, Default)]
pub struct Authors {
    /// The patch when it was last seen.
    last: Patch,
    additions: Vec<Addition>,
}

/// The changes of an author between two looks at the patch. The memory of all of them is proportional to what was written.
#[derive(Debug)]
struct Addition {
    /// `None` if the changes belong to no handler.
    author: Option<usize>,
    /// The keys of the values that are new or different; below each: those of its fields if it is a map, and null otherwise.
    places: Map<String, Value>,
    transformations: Vec<Transformation>,
}

impl Authors {
    /// Attributes the new parts of the patch to this author; `None` if they belong to no handler.
    pub fn note(&mut self, author: Option<usize>, patch: &Patch) {
        let mut places = Map::new();
        update(&mut self.last.merge, &patch.merge, &mut places);
        // They are only appended, or replaced in place.
        let (known, present) = (&mut self.last.transformations, &patch.transformations);
        let pairs = present.iter().zip(known.iter().map(Some).chain(std::iter::repeat(None)));
        let new = pairs.filter(|(it, known)| *known != Some(*it)).map(|(it, _)| it.clone());
        let transformations: Vec<_> = new.collect();
        if !transformations.is_empty() || known.len() > present.len() {
            known.clone_from(present);
        }
        if !(places.is_empty() && transformations.is_empty()) {
            self.additions.push(Addition { author, places, transformations });
        }
    }

    /// Adds the authors of a patch that was added to this one, which is `patch` now. Their numbers are increased by `first`.
    pub fn absorb(&mut self, newer: Authors, first: usize, patch: &Patch) {
        let theirs = newer.additions.into_iter();
        let author = |it: Option<usize>| it.map(|it| first + it);
        self.additions.extend(theirs.map(|it| Addition { author: author(it.author), ..it }));
        update(&mut self.last.merge, &patch.merge, &mut Map::new());
        self.last.transformations.clone_from(&patch.transformations);
    }

    /// Splits a merge-patch by its authors, in their order. A value that several have set belongs to the last one.
    pub fn split(&self, merge: &Map<String, Value>) -> Vec<(Option<usize>, Map<String, Value>)> {
        let mut rest = merge.clone();
        let mut parts = Vec::new();
        for Addition { author, places, .. } in self.additions.iter().rev() {
            let part = take(places, &mut rest);
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
        let first = self.additions.iter().find(|it| it.transformations.contains(transformation));
        first.and_then(|it| it.author)
    }
}

/// Makes a merge-patch equal to a later state of it, and adds the places of the values that differ.
fn update(
    earlier: &mut Map<String, Value>,
    later: &Map<String, Value>,
    places: &mut Map<String, Value>,
) {
    earlier.retain(|key, _| later.contains_key(key));
    for (key, value) in later {
        match (earlier.get_mut(key), value) {
            (Some(earlier), value) if earlier == value => {}
            (Some(Value::Object(earlier)), Value::Object(value)) => {
                let mut below = Map::new();
                update(earlier, value, &mut below);
                // Not if fields were only withdrawn.
                if !below.is_empty() {
                    places.insert(key.clone(), below.into());
                }
            }
            (_, value) => {
                places.insert(key.clone(), places_in(value));
                earlier.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns the places of a new value: those of its fields if it is a map, and null otherwise.
fn places_in(value: &Value) -> Value {
    let places = |fields: &Map<String, Value>| {
        fields.iter().map(|(key, it)| (key.clone(), places_in(it))).collect()
    };
    value.as_object().map_or(Value::Null, |it| Value::Object(places(it)))
}

/// Removes the values at these places from `rest`, and returns them.
fn take(places: &Map<String, Value>, rest: &mut Map<String, Value>) -> Map<String, Value> {
    let mut taken = Map::new();
    for (key, places) in places {
        let part = match (places, rest.get_mut(key)) {
            (Value::Object(places), Some(Value::Object(below))) if !below.is_empty() => {
                let part = take(places, below);
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
    use serde_json::{Map, Value, json};

    use super::Authors;
    use crate::logic::{
        change::patch::{Patch, Transformation},
        object::{conditions::ConditionChange, measure},
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
        let sum = json!({ "spec": { "a": 1, "b": 1, "c": 1 } });
        all.absorb(others, 1, &patch(&sum));
        let parts = all.split(sum.as_object().unwrap());
        let parts: Vec<_> =
            parts.into_iter().map(|(author, it)| (author, Value::from(it))).collect();
        let expected = ["a", "b", "c"].into_iter().enumerate();
        let expected: Vec<_> =
            expected.map(|(number, it)| (Some(number), json!({ "spec": { it: 1 } }))).collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_was_withdrawn_or_only_looked_at_belongs_to_nobody() {
        let mut authors = Authors::default();
        authors.note(Some(0), &patch(&json!({ "spec": { "a": 1, "b": 1 }, "status": {} })));
        authors.note(Some(1), &patch(&json!({ "spec": { "a": 1 }, "status": {} })));
        authors.note(Some(2), &patch(&json!({ "spec": { "a": 1, "b": 2 }, "status": { "x": 1 } })));
        let last = json!({ "spec": { "a": 1, "b": 2, "own": 1 }, "status": { "x": 1, "own": 1 } });
        let parts = authors.split(last.as_object().unwrap());
        let parts: Vec<_> =
            parts.into_iter().map(|(author, it)| (author, Value::from(it))).collect();
        let expected = [
            (Some(0), json!({ "spec": { "a": 1 } })),
            (Some(2), json!({ "spec": { "b": 2 }, "status": { "x": 1 } })),
            (None, json!({ "spec": { "own": 1 }, "status": { "own": 1 } })),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn the_memory_of_many_authors_does_not_grow_with_their_number_times_the_patch() {
        const AUTHORS: usize = 300;
        let mut authors = Authors::default();
        let mut all = Map::new();
        for number in 0..AUTHORS {
            all.insert(format!("a{number}"), json!({ "x": number }));
            authors.note(Some(number), &Patch { merge: all.clone(), ..Patch::default() });
        }
        let kept = authors.additions.iter().map(|it| measure::items_of(&it.places));
        assert_eq!(kept.sum::<usize>(), 2 * AUTHORS);
        assert_eq!(authors.split(&all).len(), AUTHORS);
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
