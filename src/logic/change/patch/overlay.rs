//! A merge-patch that is composed with a large one for a moment: reverting it costs less than a copy.

use serde_json::{Map, Value};

/// What a merge-patch has replaced in the one that it was composed with.
#[derive(Debug)]
pub struct Overlay(Vec<(String, Replaced)>);

#[derive(Debug)]
enum Replaced {
    /// This value, or none.
    Whole(Option<Value>),
    /// Fields of a map that stays.
    Below(Overlay),
}

impl Overlay {
    /// Adds a newer merge-patch, as [`super::compose`] does.
    pub fn compose(older: &mut Map<String, Value>, newer: Map<String, Value>) -> Self {
        let replace = |(key, value): (String, Value)| {
            let replaced = match (older.get_mut(&key), value) {
                (Some(Value::Object(present)), Value::Object(more)) => {
                    Replaced::Below(Overlay::compose(present, more))
                }
                (_, value) => Replaced::Whole(older.insert(key.clone(), value)),
            };
            (key, replaced)
        };
        Overlay(newer.into_iter().map(replace).collect())
    }

    /// Restores the older merge-patch. Top-level fields that it does not have any more stay absent.
    pub fn revert(self, composed: &mut Map<String, Value>) {
        for (key, replaced) in self.0 {
            let Some(present) = composed.get_mut(&key) else { continue };
            match (replaced, present) {
                (Replaced::Whole(Some(value)), present) => *present = value,
                (Replaced::Whole(None), _) => drop(composed.shift_remove(&key)),
                (Replaced::Below(below), present) => {
                    if let Some(present) = present.as_object_mut() {
                        below.revert(present);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::Overlay;
    use crate::logic::change::patch::compose;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn it_composes_and_reverts_to_exactly_what_was_there() {
        let older = json!({"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}, "spec": {"c": [3]}, "gone": null});
        for newer in [
            json!({}),
            json!({"metadata": {"annotations": {"b": "3", "new": "4"}, "uid": "u"}}),
            json!({"metadata": {"labels": null}, "status": {"kopf": {}}}),
            json!({"spec": 5, "gone": {"here": 1}}),
            json!({"spec": {"c": {"d": {}}, "e": {}}}),
        ] {
            let (older, newer) = (map(&older), map(&newer));
            let mut expected = older.clone();
            compose(&mut expected, newer.clone());
            let mut composed = older.clone();
            let overlay = Overlay::compose(&mut composed, newer.clone());
            assert_eq!(composed, expected);
            overlay.revert(&mut composed);
            assert_eq!(composed, older);
            assert!(composed.keys().eq(older.keys()), "the order is the same, too");
        }
    }

    #[test]
    fn fields_that_were_taken_out_meanwhile_stay_absent() {
        let mut composed = map(&json!({"spec": {"a": 1}, "status": {"b": 2}}));
        let overlay = Overlay::compose(
            &mut composed,
            map(&json!({"spec": {"c": 3}, "status": {"d": 4}, "metadata": {}})),
        );
        composed.retain(|key, _| key == "status");
        overlay.revert(&mut composed);
        assert_eq!(Value::Object(composed), json!({"status": {"b": 2}}));
    }
}
