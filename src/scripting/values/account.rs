//! Measures a value that crosses from a script to the host: bytes, items and depth, the same in both languages.
//!
//! Everything is counted before it is copied, including what is behind a handle of the host: a memo in a table counts with its
//! content and its depth, wherever the handle is. So no value takes more memory of the host than the limits allow, and no walk over
//! a value goes deeper than [`DEPTH_MAX`] levels.

use serde_json::{Map, Value};

use super::refused::{DEPTH_MAX, Refused, SizeLimit};
use crate::call::Index;
use crate::logic::{
    background::indexing::{IndexItem, IndexValues},
    object::measure,
};

/// What is left of the limits for one value.
pub(crate) struct Account<'a> {
    room: SizeLimit,
    bytes: usize,
    items: usize,
    /// The number of levels around the place where the value will be kept.
    around: usize,
    /// The index of the first item of a list, in messages: 0 or 1.
    first: usize,
    /// Values visited since the last check of the deadline.
    steps: usize,
    deadline: &'a dyn Deadline,
}

/// The deadline of the call that passes a value.
pub(crate) trait Deadline {
    /// Returns whether the call has used up its time.
    fn is_over(&self) -> bool;
}

impl<'a> Account<'a> {
    /// Returns an account with this room. `first` is the index of the first item of a list; the copy is cancelled at the deadline.
    pub(crate) fn new(room: SizeLimit, first: usize, deadline: &'a dyn Deadline) -> Self {
        let (bytes, items) = (room.bytes(), room.items());
        Account { room, bytes, items, around: 0, first, steps: 0, deadline }
    }

    /// Returns the account for a value that will be kept below `around` levels.
    #[must_use]
    pub(crate) fn below(self, around: usize) -> Self {
        Account { around, ..self }
    }

    /// Returns how many items and fields still fit.
    pub(crate) fn items_left(&self) -> usize {
        self.items
    }

    /// Takes the bytes of a value or a key, as JSON.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Refused> {
        let left = self.bytes.checked_sub(bytes);
        let all = self.room.bytes() - self.bytes;
        self.bytes =
            left.ok_or_else(|| Refused::too_large(self.room, all.saturating_add(bytes)))?;
        Ok(())
    }

    /// Takes `count` items of a list, or fields of a map.
    pub(crate) fn take_items(&mut self, count: usize) -> Result<(), Refused> {
        let left = self.items.checked_sub(count);
        self.items = left.ok_or_else(|| self.too_many_items(count))?;
        Ok(())
    }

    /// Returns the error for `more` items in addition to those counted so far.
    pub(crate) fn too_many_items(&self, more: usize) -> Refused {
        Refused::too_many_items(self.room, (self.room.items() - self.items).saturating_add(more))
    }

    /// Checks the depth of a map or a list that has `depth` levels of the value around it, together with the levels of the place
    /// where it will be kept.
    pub(crate) fn enter(&self, depth: usize) -> Result<(), Refused> {
        if self.around + depth < DEPTH_MAX { Ok(()) } else { Err(Refused::too_deep()) }
    }

    /// Checks that the call has not used up its time.
    pub(crate) fn look_at_time(&self) -> Result<(), Refused> {
        if self.deadline.is_over() { Err(Refused::endless("out of time")) } else { Ok(()) }
    }

    /// Checks the deadline from time to time.
    fn step(&mut self) -> Result<(), Refused> {
        /// The number of values between two checks: they take less than a millisecond.
        const STEPS: usize = 1024;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) { self.look_at_time() } else { Ok(()) }
    }

    /// Counts a tree of the host that has `depth` levels of the value around it, then copies it.
    pub(crate) fn copy(&mut self, tree: &Value, depth: usize) -> Result<Value, Refused> {
        self.count(tree, depth)?;
        Ok(tree.clone())
    }

    /// Counts the fields of a tree of the host, then copies them.
    pub(crate) fn copy_fields(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, Refused> {
        self.count_fields(fields, depth)?;
        Ok(Value::Object(fields.clone()))
    }

    /// Counts a tree of the host without a copy.
    pub(crate) fn count(&mut self, tree: &Value, depth: usize) -> Result<(), Refused> {
        self.step()?;
        match tree {
            Value::Null | Value::Bool(_) => self.take(5),
            Value::Number(it) => self.take(measure::number(it)),
            Value::String(text) => self.take(measure::text(text)),
            Value::Array(items) => {
                self.enter(depth)?;
                self.take(3)?;
                self.take_items(items.len())?;
                let first = self.first;
                items.iter().enumerate().try_for_each(|(index, item)| {
                    let counted = self.count(item, depth + 1);
                    counted.map_err(|it| it.under(format!("[{}]", index + first)))
                })
            }
            Value::Object(fields) => self.count_fields(fields, depth),
        }
    }

    fn count_fields(&mut self, fields: &Map<String, Value>, depth: usize) -> Result<(), Refused> {
        self.enter(depth)?;
        self.take(3)?;
        self.take_items(fields.len())?;
        fields.iter().try_for_each(|(key, field)| {
            self.take(measure::field(key))?;
            self.count(field, depth + 1).map_err(|it| it.under(format!(".{key}")))
        })
    }

    /// Copies the values under one key of an index.
    pub(crate) fn copy_values(
        &mut self,
        values: &IndexValues,
        depth: usize,
    ) -> Result<Value, Refused> {
        self.enter(depth)?;
        self.take_items(values.len())?;
        values.iter().filter_map(IndexItem::value).map(|it| self.copy(it, depth + 1)).collect()
    }

    /// Copies an index. It is not locked meanwhile.
    pub(crate) fn copy_index(&mut self, index: &Index, depth: usize) -> Result<Value, Refused> {
        self.enter(depth)?;
        let mut all = Map::new();
        for key in index.keys() {
            // The key may have been removed meanwhile.
            let Some(values) = index.get(&key) else { continue };
            let name = key.to_name();
            self.take_items(1)?;
            self.take(measure::field(&name))?;
            let values = self.copy_values(&values, depth + 1);
            let values = values.map_err(|it| it.under(format!(".{name}")))?;
            all.insert(name, values);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lists(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    struct Over(bool);

    impl Deadline for Over {
        fn is_over(&self) -> bool {
            self.0
        }
    }

    fn account() -> Account<'static> {
        Account::new(SizeLimit::Text(1000), 1, &Over(false))
    }

    #[test]
    fn depth_counts_what_is_around_the_value_and_around_the_place_where_it_is_kept() {
        assert!(account().count(&lists(DEPTH_MAX), 0).is_ok());
        let refused = account().count(&lists(DEPTH_MAX + 1), 0).unwrap_err();
        let message = refused.at("spec");
        assert!(message.starts_with("spec[1][1]"), "{message}");
        assert!(message.ends_with("nested deeper than 128 levels"), "{message}");
        assert!(account().count(&lists(100), 28).is_ok());
        assert!(account().count(&lists(100), 29).is_err());
        assert!(account().below(28).count(&lists(100), 0).is_ok());
        assert!(account().below(28).count(&lists(100), 1).is_err());
    }

    #[test]
    fn bytes_and_items_are_counted_over_all_copies() {
        let mut account = account();
        let text = json!({ "a": "x".repeat(400) });
        assert_eq!(account.copy(&text, 0).unwrap(), text);
        assert!(account.copy(&text, 0).is_ok());
        let refused = account.copy(&text, 0).unwrap_err();
        let expected = Refused::too_large(SizeLimit::Text(1000), 1233).under(".a".into());
        assert_eq!(refused, expected);
        for (room, items) in [
            (SizeLimit::Result(usize::MAX), 20_000),
            (SizeLimit::Kept(usize::MAX), 100_000),
            (SizeLimit::Text(usize::MAX), 100_000),
        ] {
            let mut wide = Account::new(room, 0, &Over(false));
            assert_eq!(wide.count(&json!(vec![1; items]), 0), Ok(()));
            assert_eq!(
                wide.copy(&json!({ "a": 1 }), 0),
                Err(Refused::too_many_items(room, items + 1))
            );
        }
    }

    #[test]
    fn a_call_whose_time_is_up_ends_within_a_copy() {
        let mut over = Account::new(SizeLimit::Text(usize::MAX), 0, &Over(true));
        assert!(over.count(&json!(vec![1; 2000]), 0).is_err());
    }
}
