//! Converts Lua values to JSON; refuses what JSON cannot hold, instead of losing it.

use std::ffi::c_void;

use kopf_json::{shared::Part, tape::Shallow};
use kopf_luau::{
    levels::Levels,
    push::{self, Shapes},
};
use mlua::{LightUserData, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use super::views;
use crate::logic::object::measure;
use crate::scripting::values::{
    account::Account,
    refused::{BYTES, FUNCTION, HOST_OBJECT, NOT_FINITE, Refused},
};

/// Converts values of one VM.
pub(super) struct LuaReader<'a> {
    shapes: &'a Shapes,
    levels: &'a Levels,
    account: Account<'a>,
    /// The tables that contain the current one, to detect cycles.
    around: Vec<*const c_void>,
}

impl<'a> LuaReader<'a> {
    /// Creates a reader for the VM with these metatables.
    pub(super) fn new((shapes, levels): (&'a Shapes, &'a Levels), account: Account<'a>) -> Self {
        LuaReader { shapes, levels, account, around: Vec::new() }
    }

    /// Converts a value to JSON. Nil is null.
    ///
    /// `like` is the current value at the same place, if any: an empty table takes its type, and an equal number keeps its spelling.
    pub(super) fn read(
        &mut self,
        value: &LuaValue,
        like: Option<&Value>,
    ) -> Result<Value, Refused> {
        let refused = |problem: &str| Err(Refused::because(problem));
        self.account.take(weight(value))?;
        match value {
            LuaValue::Nil => Ok(Value::Null),
            LuaValue::LightUserData(LightUserData(it)) if it.is_null() => Ok(Value::Null),
            LuaValue::Boolean(it) => Ok(Value::Bool(*it)),
            LuaValue::Integer(it) => Ok(number(Number::from(*it), like)),
            LuaValue::Number(it) => {
                let finite = Number::from_f64(*it);
                finite.map(|it| number(it, like)).ok_or_else(|| Refused::because(NOT_FINITE))
            }
            LuaValue::String(it) => match it.to_str() {
                Ok(text) => Ok(Value::String(text.to_owned())),
                Err(_) => refused(BYTES),
            },
            LuaValue::Table(it) => self.read_table(it, like),
            LuaValue::UserData(it) => {
                let copied = views::copy(it, &mut self.account, self.around.len());
                copied.unwrap_or_else(|| refused(HOST_OBJECT))
            }
            LuaValue::Function(_) => refused(FUNCTION),
            LuaValue::Thread(_) => refused("a coroutine cannot be stored as JSON"),
            LuaValue::Error(_) => {
                refused("an error cannot be stored as JSON: convert it with tostring")
            }
            LuaValue::Buffer(_) => refused(BYTES),
            LuaValue::Vector(_) => refused("a vector cannot be stored as JSON"),
            LuaValue::LightUserData(_) | LuaValue::Other(_) => refused(HOST_OBJECT),
        }
    }

    /// Returns the items of a table that has keys which are numbers or booleans; `None` if the table is an object or a list.
    ///
    /// A table with the keys 1, 2, 3, … is a list, as everywhere in Lua.
    pub(super) fn read_keyed(
        &mut self,
        value: &LuaValue,
    ) -> Result<Option<Vec<(Value, Value)>>, Refused> {
        let LuaValue::Table(table) = value else { return Ok(None) };
        if table.metatable().is_some_and(|it| it == self.shapes.array) {
            return Ok(None);
        }
        let problem = |it: mlua::Error| Refused::because(it.to_string());
        if self.levels.read(table, |_| ()).map_err(problem)?.is_some() {
            return Ok(None);
        }
        let mut items = Vec::new();
        let mut texts = 0;
        let walked = table.for_each(|key: LuaValue, value: LuaValue| {
            self.glance(items.len())?;
            texts += usize::from(key.is_string());
            items.push((key, value));
            Ok(())
        });
        if items.len() > self.account.items_left() {
            return Err(self.account.too_many_items(items.len()));
        }
        walked.map_err(|error| Refused::because(error.to_string()))?;
        if texts == items.len() || items.len() == table.raw_len() {
            return Ok(None);
        }
        self.account.take_items(items.len())?;
        let mut entries = Vec::with_capacity(items.len());
        for (key, value) in items {
            if key.is_table() {
                let problem = "a key that is a table; join its parts into one string";
                return Err(Refused::because(problem));
            }
            let key =
                self.read(&key, None).map_err(|it| Refused::because(format!("a key: {it}")))?;
            let value = self.read(&value, None).map_err(|it| it.under(format!("[{key}]")))?;
            entries.push((key, value));
        }
        Ok(Some(entries))
    }

    fn read_table(&mut self, table: &Table, like: Option<&Value>) -> Result<Value, Refused> {
        let pointer = table.to_pointer();
        if self.around.contains(&pointer) {
            return Err(Refused::endless("a table that contains itself"));
        }
        self.account.enter(self.around.len())?;
        self.account.look_at_time()?;
        let levels = self.levels;
        let read = levels.read(table, |level| self.read_level(level, like, self.around.len()));
        if let Some(read) = read.map_err(|it| Refused::because(it.to_string()))? {
            return read;
        }
        self.around.push(pointer);
        let result = self.read_entries(table, like);
        self.around.pop();
        result
    }

    fn read_entries(&mut self, table: &Table, like: Option<&Value>) -> Result<Value, Refused> {
        let (items, mut fields) = self.entries(table)?;
        fields.extend(push::nulls(table).into_iter().map(|key| (key, LuaValue::NULL)));
        fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.account.take_items(items.len() + fields.len())?;
        if !items.is_empty() && !fields.is_empty() {
            return Err(Refused::because("a table with both list items and keys"));
        }
        if !fields.is_empty() {
            return self.read_fields(fields, like);
        }
        if items.is_empty() {
            return Ok(self.empty(table, like));
        }
        let mut list = Vec::with_capacity(items.len());
        for (place, (index, item)) in (1..).zip(items) {
            if index != place {
                return Err(Refused::because("a list with holes (use kopf.null for a null item)"));
            }
            let like = like.and_then(|it| it.get(list.len()));
            let item = self.read(&item, like).map_err(|it| it.under(format!("[{place}]")))?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn read_fields(
        &mut self,
        fields: Vec<(String, LuaValue)>,
        like: Option<&Value>,
    ) -> Result<Value, Refused> {
        let mut map = Map::with_capacity(fields.len());
        for (key, field) in fields {
            self.account.take(measure::field(&key))?;
            let like = like.and_then(|it| it.get(&key));
            let field = self.read(&field, like).map_err(|it| it.under(format!(".{key}")))?;
            map.insert(key, field);
        }
        Ok(Value::Object(map))
    }

    /// Reads an unfilled level at this depth. The result equals that of a filled one: sorted keys, and integers without a fraction.
    fn read_level(
        &mut self,
        level: Part<'_>,
        like: Option<&Value>,
        depth: usize,
    ) -> Result<Value, Refused> {
        match level.shallow() {
            Shallow::List(len) => {
                self.account.take_items(len)?;
                let mut list = Vec::with_capacity(len);
                for item in level.items() {
                    let like = like.and_then(|it| it.get(list.len()));
                    let item = self.read_item(item, like, depth + 1);
                    list.push(item.map_err(|it| it.under(format!("[{}]", list.len() + 1)))?);
                }
                Ok(Value::Array(list))
            }
            Shallow::Map(len) => {
                self.account.take_items(len)?;
                let mut sorted: Vec<_> = level.fields().collect();
                sorted.sort_unstable_by_key(|(key, _)| *key);
                let mut map = Map::with_capacity(sorted.len());
                for (key, field) in sorted {
                    self.account.take(measure::field(key))?;
                    let like = like.and_then(|it| it.get(key));
                    let field = self.read_item(field, like, depth + 1);
                    map.insert(key.to_owned(), field.map_err(|it| it.under(format!(".{key}")))?);
                }
                Ok(Value::Object(map))
            }
            Shallow::Null | Shallow::Bool(_) | Shallow::Number(_) | Shallow::Text(_) => {
                Ok(level.to_tree().into_owned())
            }
        }
    }

    fn read_item(
        &mut self,
        item: Part<'_>,
        like: Option<&Value>,
        depth: usize,
    ) -> Result<Value, Refused> {
        match item.shallow() {
            Shallow::List(_) | Shallow::Map(_) => {
                self.account.take(TABLE)?;
                self.account.enter(depth)?;
                self.account.look_at_time()?;
                self.read_level(item, like, depth)
            }
            Shallow::Number(it) => {
                let it = push::in_lua(&it);
                self.account.take(measure::number(&it))?;
                Ok(number(it, like))
            }
            Shallow::Text(text) => {
                self.account.take(measure::text(text))?;
                Ok(text.into())
            }
            Shallow::Null | Shallow::Bool(_) => {
                self.account.take(5)?;
                Ok(item.to_tree().into_owned())
            }
        }
    }

    /// Returns the empty list or object: a table from the cluster keeps its type; a new one takes the type of the value it replaces.
    fn empty(&self, table: &Table, like: Option<&Value>) -> Value {
        let shape = table.metatable();
        let is_array = match &shape {
            Some(it) if *it == self.shapes.array => true,
            Some(it) if *it == self.shapes.object => false,
            Some(_) | None => like.is_some_and(Value::is_array),
        };
        if is_array { Value::Array(Vec::new()) } else { Value::Object(Map::new()) }
    }

    /// Returns list items with their index, sorted, and fields with their key, in any order.
    fn entries(&self, table: &Table) -> Result<TableEntries, Refused> {
        let (mut items, mut fields) = (Vec::new(), Vec::new());
        let mut problem = None;
        let walked = table.for_each(|key: LuaValue, value: LuaValue| {
            self.glance(items.len() + fields.len())?;
            if let LuaValue::Integer(place) = key {
                items.push((place, value));
            } else if let LuaValue::String(key) = key {
                match key.to_str() {
                    Ok(key) => fields.push((key.to_owned(), value)),
                    Err(_) => problem = Some("a key that is not UTF-8".to_owned()),
                }
            } else {
                problem = Some(format!("a key that is a {}", key.type_name()));
            }
            Ok(())
        });
        if items.len() + fields.len() > self.account.items_left() {
            return Err(self.account.too_many_items(items.len() + fields.len()));
        }
        let problem = walked.err().map(|it| it.to_string()).or(problem);
        items.sort_unstable_by_key(|(place, _)| *place);
        problem.map_or(Ok((items, fields)), |it| Err(Refused::because(it)))
    }

    /// Checks from time to time whether to stop iterating over a table, of which `seen` entries have been collected.
    fn glance(&self, seen: usize) -> mlua::Result<()> {
        /// Takes less than a millisecond.
        const ENTRIES: usize = 1024;
        if seen % ENTRIES == ENTRIES - 1 && self.account.look_at_time().is_err() {
            return Err(mlua::Error::runtime("out of time"));
        }
        if seen > self.account.items_left() {
            // The caller replaces this error with a better message.
            return Err(mlua::Error::runtime("too many items"));
        }
        Ok(())
    }
}

type TableEntries = (Vec<(i64, LuaValue)>, Vec<(String, LuaValue)>);

/// Returns the number, or the old one if they are equal: Lua does not distinguish `1.0` from `1`.
fn number(read: Number, like: Option<&Value>) -> Value {
    match like {
        Some(Value::Number(old)) if old.is_f64() && old.as_f64() == read.as_f64() => {
            Value::Number(old.clone())
        }
        Some(_) | None => Value::Number(read),
    }
}

/// The bytes of an empty table as JSON, with a comma.
const TABLE: usize = 3;

/// Estimates the size of a value as JSON, without its items.
fn weight(value: &LuaValue) -> usize {
    match value {
        LuaValue::String(it) => match it.to_str() {
            Ok(it) => measure::text(&it),
            Err(_) => it.as_bytes().len(),
        },
        LuaValue::Integer(it) => measure::number(&Number::from(*it)),
        LuaValue::Number(it) => Number::from_f64(*it).map_or(0, |it| measure::number(&it)),
        LuaValue::Nil | LuaValue::Boolean(_) | LuaValue::LightUserData(_) => 5,
        // Its content is counted when it is copied.
        LuaValue::UserData(_) => 0,
        LuaValue::Vector(_)
        | LuaValue::Table(_)
        | LuaValue::Function(_)
        | LuaValue::Thread(_)
        | LuaValue::Buffer(_)
        | LuaValue::Error(_)
        | LuaValue::Other(_) => TABLE,
    }
}
