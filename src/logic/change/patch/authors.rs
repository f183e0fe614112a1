//! Attributes the parts of a patch that several handlers have filled one after another.

use std::collections::BTreeMap;

use kopf_json::values::fingerprint;
use serde_json::{Map, Value};

use super::{Patch, Transformation};

/// Which of the authors of a patch has written which value. An author is a number that the caller assigns; `None` if a value belongs to no
/// handler.
#[derive(Debug, Default)]
pub struct Authors {
    values: Fields,
    /// The transformations when they were last seen.
    transformations: Vec<Transformation>,
    /// The authors of all transformations that were ever seen.
    transformed: Vec<(Option<usize>, Transformation)>,
}

type Fields = BTreeMap<String, Written>;

/// A value of the patch when it was last seen. Patches can be large, so values are not copied.
#[derive(Debug)]
struct Written {
    author: Option<usize>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A hash of the value.
    Value(u64),
    /// A map, whose fields can have other authors.
    Map(Fields),
}

impl Authors {
    /// Attributes the new parts of the patch to this author; `None` if they belong to no handler.
    pub fn note(&mut self, author: Option<usize>, patch: &Patch) {
        update(&mut self.values, &patch.merge, author);
        // They are only appended, or replaced in place.
        let (known, present) = (&mut self.transformations, &patch.transformations);
        let pairs = present.iter().zip(known.iter().map(Some).chain(std::iter::repeat(None)));
        let new = pairs.filter(|(it, known)| *known != Some(*it)).map(|(it, _)| it.clone());
        let count = self.transformed.len();
        self.transformed.extend(new.map(|it| (author, it)));
        if self.transformed.len() > count || known.len() > present.len() {
            known.clone_from(present);
        }
    }

    /// Adds the authors of a patch that was added to this one, which is `patch` now. Their numbers are increased by `first`.
    pub fn absorb(&mut self, mut newer: Authors, first: usize, patch: &Patch) {
        renumber(&mut newer.values, first);
        overlay(&mut self.values, newer.values);
        let theirs = newer.transformed.into_iter();
        self.transformed.extend(theirs.map(|(author, it)| (author.map(|it| first + it), it)));
        self.transformations.clone_from(&patch.transformations);
    }

    /// Splits a merge-patch by its authors, in their order; what belongs to no handler comes last. A value that several have set belongs to
    /// the last one.
    pub fn split(&self, merge: &Map<String, Value>) -> Vec<(Option<usize>, Map<String, Value>)> {
        let mut parts = parts(&self.values, merge);
        let others = parts.remove(&None);
        parts.into_iter().chain(others.map(|it| (None, it))).collect()
    }

    /// Returns the author of a transformation.
    pub fn author_of(&self, transformation: &Transformation) -> Option<usize> {
        self.transformed.iter().find(|(_, it)| it == transformation).and_then(|(author, _)| *author)
    }
}

impl Written {
    fn new(value: &Value, author: Option<usize>) -> Self {
        let content = match value {
            Value::Object(fields) => {
                let field = |(key, it): (&String, _)| (key.clone(), Written::new(it, author));
                Content::Map(fields.iter().map(field).collect())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Content::Value(fingerprint(value)),
        };
        Written { author, content }
    }
}

/// Attributes what differs in a later state of a merge-patch.
fn update(known: &mut Fields, later: &Map<String, Value>, author: Option<usize>) {
    known.retain(|key, _| later.contains_key(key));
    for (key, value) in later {
        match (known.get_mut(key).map(|it| &mut it.content), value) {
            (Some(Content::Map(known)), Value::Object(later)) => update(known, later, author),
            (Some(Content::Value(known)), value)
                if !value.is_object() && *known == fingerprint(value) => {}
            (_, value) => {
                known.insert(key.clone(), Written::new(value, author));
            }
        }
    }
}

/// Increases the numbers of all authors.
fn renumber(fields: &mut Fields, first: usize) {
    for Written { author, content } in fields.values_mut() {
        *author = author.map(|it| first + it);
        if let Content::Map(fields) = content {
            renumber(fields, first);
        }
    }
}

/// Adds the authors of a merge-patch that was added to another one.
fn overlay(known: &mut Fields, newer: Fields) {
    for (key, newer) in newer {
        match (known.get_mut(&key).map(|it| &mut it.content), newer) {
            (Some(Content::Map(known)), Written { content: Content::Map(newer), .. }) => {
                overlay(known, newer);
            }
            (_, newer) => {
                known.insert(key, newer);
            }
        }
    }
}

/// Returns the parts of a merge-patch by their authors.
fn parts(
    known: &Fields,
    merge: &Map<String, Value>,
) -> BTreeMap<Option<usize>, Map<String, Value>> {
    let mut all = BTreeMap::<_, Map<_, _>>::new();
    for (key, value) in merge {
        let written = known.get(key);
        match (written.map(|it| &it.content), value) {
            (Some(Content::Map(known)), Value::Object(fields)) if !fields.is_empty() => {
                for (author, part) in parts(known, fields) {
                    all.entry(author).or_default().insert(key.clone(), part.into());
                }
            }
            _ => {
                let author = written.and_then(|it| it.author);
                all.entry(author).or_default().insert(key.clone(), value.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Authors, Content, Fields, Written};
    use crate::logic::{
        change::patch::{Patch, Transformation},
        object::conditions::ConditionChange,
    };

    fn count(fields: &Fields) -> usize {
        let below = |it: &Written| match &it.content {
            Content::Value(_) => 0,
            Content::Map(fields) => count(fields),
        };
        fields.values().map(|it| 1 + below(it)).sum()
    }

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
    fn what_both_patches_have_set_belongs_to_the_one_that_was_added() {
        let (mut all, mut others) = (Authors::default(), Authors::default());
        all.note(Some(0), &patch(&json!({ "spec": { "a": 1, "b": { "c": 1 } }, "status": 1 })));
        others.note(Some(0), &patch(&json!({ "spec": { "a": { "x": 1 }, "b": { "d": 1 } } })));
        others.note(None, &patch(&json!({ "spec": { "a": { "x": 1 }, "b": 2 } })));
        let sum = json!({ "spec": { "a": { "x": 1 }, "b": 2 }, "status": 1 });
        all.absorb(others, 4, &patch(&sum));
        let parts = all.split(sum.as_object().unwrap()).into_iter();
        let parts: Vec<_> = parts.map(|(author, it)| (author, Value::from(it))).collect();
        let expected = [
            (Some(0), json!({ "status": 1 })),
            (Some(4), json!({ "spec": { "a": { "x": 1 } } })),
            (None, json!({ "spec": { "b": 2 } })),
        ];
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
        assert_eq!(count(&authors.values), 2 * AUTHORS);
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
