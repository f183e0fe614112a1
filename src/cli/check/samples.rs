//! Generates objects from the schema of a CRD. The same seed generates the same objects.
//!
//! Some constraints of a schema, such as CEL rules, are ignored: the embedded server decides which objects are valid.

use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

/// Maximum depth of optional fields.
const DEPTH_MAX: usize = 8;
/// Maximum number of items of a list or a map, unless the schema requires more.
const ITEMS_MAX: u64 = 2;
/// Maximum number of repetitions of a part of a pattern beyond its minimum.
const REPEATED_MAX: u32 = 4;
/// Maximum length of a string that a schema requires.
const LENGTH_MAX: u64 = 1000;

/// Reproducible pseudorandom numbers: the generator `SplitMix64`.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below the limit, or 0.
    fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or_default()
    }

    /// Returns true in this many out of four calls, on average.
    fn is_in_four(&mut self, times: u64) -> bool {
        self.below(4) < times
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        all.get(index)
    }

    /// Returns a value that a schema describes.
    pub(super) fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let flag = |name: &str| schema.get(name).is_some_and(|it| *it == true);
        if let Some(all) = schema.get("enum").and_then(Value::as_array)
            && let Some(one) = self.pick(all)
        {
            return one.clone();
        }
        if let Some(default) = schema.get("default")
            && self.is_in_four(1)
        {
            return default.clone();
        }
        if flag("x-kubernetes-int-or-string") {
            return if self.is_in_four(2) { self.integer(schema) } else { self.text(schema) };
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => self.is_in_four(2).into(),
            Some("integer") => self.integer(schema),
            Some("number") => self.number(schema),
            Some("array") => self.list(schema, depth),
            Some("string") => self.text(schema),
            Some("object") => self.map(schema, depth),
            _ if schema.get("properties").is_some() => self.map(schema, depth),
            _ => self.anything(),
        }
    }

    fn map(&mut self, schema: &Value, depth: usize) -> Value {
        let mut map = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            if is_required(name) || (depth < DEPTH_MAX && self.is_in_four(3)) {
                map.insert(name.clone(), self.value(field, depth + 1));
            }
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) | None => {}
            Some(values) => {
                for number in 0..self.count(schema, "minProperties", "maxProperties") {
                    map.insert(format!("key-{number}"), self.value(values, depth + 1));
                }
            }
        }
        let keeps = schema.get("x-kubernetes-preserve-unknown-fields");
        if keeps.is_some_and(|it| *it == true) && map.is_empty() {
            map.insert("key".to_owned(), self.anything());
        }
        Value::Object(map)
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(items) = schema.get("items") else { return json!([]) };
        let count = self.count(schema, "minItems", "maxItems");
        (0..count).map(|_| self.value(items, depth + 1)).collect()
    }

    /// Returns a random number of items between these limits of the schema.
    fn count(&mut self, schema: &Value, min: &str, max: &str) -> u64 {
        let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
        let least = limit(min).unwrap_or_default();
        let most = limit(max).unwrap_or(u64::MAX).min(least.saturating_add(ITEMS_MAX)).max(least);
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
        let excludes = |name: &str| i64::from(schema.get(name).is_some_and(|it| *it == true));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a limit beyond the range is the end of the range"
        )]
        let whole = |it: f64| it as i64;
        let unit = limit("multipleOf").map_or(1, |it| whole(it).max(1));
        let least =
            limit("minimum").map(whole).map(|it| it.saturating_add(excludes("exclusiveMinimum")));
        let most =
            limit("maximum").map(whole).map(|it| it.saturating_sub(excludes("exclusiveMaximum")));
        let (least, most) = match (least, most) {
            (Some(least), Some(most)) => (least, most),
            (Some(least), None) => (least, least.saturating_add(100_000)),
            (None, Some(most)) => (most.saturating_sub(100_000), most),
            (None, None) => (-1000, 100_000),
        };
        let span = most.saturating_sub(least).unsigned_abs().saturating_add(1);
        let step = i64::try_from(self.below(span)).unwrap_or_default();
        let value = least.saturating_add(step);
        let rest = value.checked_rem_euclid(unit).unwrap_or_default();
        let down = value.saturating_sub(rest);
        Value::from(if down < least { down.saturating_add(unit) } else { down })
    }

    fn number(&mut self, schema: &Value) -> Value {
        let whole = self.integer(schema);
        if schema.get("multipleOf").is_some() || self.is_in_four(2) {
            return whole;
        }
        let half = whole.as_f64().map(|it| it + 0.5).and_then(Number::from_f64);
        half.map_or(whole, Value::Number)
    }

    fn text(&mut self, schema: &Value) -> Value {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && let Ok(parsed) = regex_syntax::parse(pattern)
        {
            let mut text = String::new();
            self.matching(&parsed, &mut text);
            return text.into();
        }
        let example = match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => "2030-01-02T03:04:05Z",
            Some("date") => "2030-01-02",
            Some("duration") => "90s",
            Some("ipv4" | "ip") => "192.0.2.1",
            Some("ipv6") => "2001:db8::1",
            Some("cidr") => "192.0.2.0/24",
            Some("uri" | "url") => "https://example.com/path",
            Some("hostname") => "host.example.com",
            Some("email") => "user@example.com",
            Some("uuid" | "uuid4") => "0f8fad5b-d9cb-469f-a165-70867728950e",
            Some("byte") => "dGV4dA==",
            _ => return self.word(schema).into(),
        };
        example.into()
    }

    fn word(&mut self, schema: &Value) -> String {
        let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
        let least = limit("minLength").unwrap_or(1).min(LENGTH_MAX);
        let most = limit("maxLength").unwrap_or(u64::MAX).clamp(least, least.saturating_add(8));
        let length = least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)));
        (0..length)
            .filter_map(|_| self.pick(b"abcdefghijklmnopqrstuvwxyz").copied())
            .map(char::from)
            .collect()
    }

    /// Appends a string that matches a pattern.
    fn matching(&mut self, pattern: &Hir, text: &mut String) {
        match pattern.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(class) => text.extend(self.symbol(class)),
            HirKind::Capture(capture) => self.matching(&capture.sub, text),
            HirKind::Repetition(it) => {
                let most = it.max.unwrap_or(u32::MAX).min(it.min.saturating_add(REPEATED_MAX));
                let more = self.below(u64::from(most.saturating_sub(it.min)) + 1);
                for _ in 0..u64::from(it.min).saturating_add(more) {
                    self.matching(&it.sub, text);
                }
            }
            HirKind::Concat(parts) => parts.iter().for_each(|it| self.matching(it, text)),
            HirKind::Alternation(parts) => {
                if let Some(one) = self.pick(parts) {
                    self.matching(one, text);
                }
            }
        }
    }

    /// Returns a character of a class, if possible a visible ASCII character.
    fn symbol(&mut self, class: &Class) -> Option<char> {
        let symbols: Vec<char> = match class {
            Class::Unicode(class) => {
                let readable = |it: &char| it.is_ascii_graphic();
                let ascii =
                    class.iter().flat_map(|it| (it.start()..=it.end().min('~')).filter(readable));
                let ascii: Vec<char> = ascii.collect();
                let starts = class.iter().map(ClassUnicodeRange::start);
                if ascii.is_empty() { starts.collect() } else { ascii }
            }
            Class::Bytes(class) => class.iter().map(|it| char::from(it.start())).collect(),
        };
        self.pick(&symbols).copied()
    }

    fn anything(&mut self) -> Value {
        let all =
            [json!("text"), json!(7), json!(true), json!([1, "two"]), json!({ "a": { "b": [] } })];
        self.pick(&all).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_values_within_the_limits_of_the_schema() {
        let schema = json!({
            "type": "object", "required": ["port", "address", "list", "kind", "map"],
            "properties": {
                "port": { "type": "integer", "minimum": 1, "maximum": 9 },
                "address": { "type": "string", "pattern": "^[a-z]{2,3}:(1|2)$" },
                "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "maxLength": 4 } },
                "kind": { "type": "string", "enum": ["a", "b"] },
                "map": { "type": "object", "additionalProperties": { "type": "number" } },
                "rest": {},
            },
        });
        let made = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.value(&schema, 0)).collect::<Vec<_>>()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        let address = regex::Regex::new("^[a-z]{2,3}:(1|2)$").unwrap();
        for value in made(3) {
            assert!((1..=9).contains(&value["port"].as_i64().unwrap()), "{value}");
            assert!(address.is_match(value["address"].as_str().unwrap()), "{value}");
            assert!((1..=2).contains(&value["list"].as_array().unwrap().len()), "{value}");
            assert!(["a", "b"].contains(&value["kind"].as_str().unwrap()), "{value}");
        }
    }
}
