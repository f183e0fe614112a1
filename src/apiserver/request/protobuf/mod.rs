//! Protobuf bodies of Kubernetes: an envelope with the kind, and a message that only the Go types of the kind describe. The result
//! is the JSON that Go would write, and is processed like any other body.
//!
//! The field numbers are part of the facts about native kinds, so one decoder is enough for all. Malformed bytes are refused with
//! the messages of the real server; unknown fields are dropped, as on the real server.

#[cfg(test)]
mod tests;
mod wire;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

use self::wire::{Tag, WireError, WireReader, low_half};
use crate::{
    native::{
        facts::{self, GoField, GoType, GoValueType, Union},
        quantity::Quantity,
    },
    request::json,
};

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The magic bytes at the start of every body.
const PREFIX: &[u8] = b"k8s\0";
/// The same limit as for JSON. Types that contain themselves (JSON schemas in CRDs) would allow any depth.
const DEPTH_MAX: usize = json::DEPTH_MAX;
/// The zero value of a time in Go: the first second of the year 1, in seconds since 1970.
const NO_TIME: i64 = -62_135_596_800;

/// An envelope with a message that is not decoded yet. Kind and version are empty if missing.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) message: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, WireError> {
        if body.is_empty() {
            return Err("empty data".into());
        }
        let Some(body) = body.strip_prefix(PREFIX) else {
            return Err(format!(
                "provided data does not appear to be a protobuf message, expected prefix {}",
                "[107 56 115 0]"
            ));
        };
        if body.is_empty() {
            return Err("empty body".into());
        }
        let mut envelope = Self::default();
        let mut reader = WireReader::new(body);
        while let Some(tag) = reader.tag("Unknown")? {
            match tag.number {
                1 => {
                    tag.expect(wire::BYTES, "TypeMeta")?;
                    envelope.type_meta(reader.bytes()?)?;
                }
                2 => {
                    tag.expect(wire::BYTES, "Raw")?;
                    envelope.message = reader.bytes()?;
                }
                // The encoding and the content type: the real server ignores them, too.
                3 => {
                    tag.expect(wire::BYTES, "ContentEncoding")?;
                    reader.skip(tag)?;
                }
                4 => {
                    tag.expect(wire::BYTES, "ContentType")?;
                    reader.skip(tag)?;
                }
                _ => reader.skip(tag)?,
            }
        }
        // An invalid version counts as missing here.
        if envelope.api_version.matches('/').count() > 1 {
            envelope.api_version.clear();
        }
        Ok(envelope)
    }

    fn type_meta(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let mut reader = WireReader::new(bytes);
        while let Some(tag) = reader.tag("TypeMeta")? {
            let (place, name) = match tag.number {
                1 => (&mut self.api_version, "APIVersion"),
                2 => (&mut self.kind, "Kind"),
                _ => {
                    reader.skip(tag)?;
                    continue;
                }
            };
            tag.expect(wire::BYTES, name)?;
            *place = reader.text()?;
        }
        Ok(())
    }
}

/// Decodes a message of a definition, such as `io.k8s.api.core.v1.Pod`. Kind and version are in the envelope, not in the message.
pub(crate) fn message(definition: &str, bytes: &[u8]) -> Result<Value, WireError> {
    let mut fields = Map::new();
    Message::of(definition, 0)?.read(bytes, &mut fields)?;
    Ok(Value::Object(fields))
}

/// A message that is being decoded, or a struct that is embedded in it.
#[derive(Clone, Copy)]
struct Message<'a> {
    definition: &'a str,
    known: &'static GoType,
    /// The name in errors.
    name: &'a str,
    /// The field numbers that lead to an embedded struct.
    around: &'a [u32],
    depth: usize,
}

impl<'a> Message<'a> {
    fn of(definition: &'a str, depth: usize) -> Result<Self, WireError> {
        if depth > DEPTH_MAX {
            return Err("exceeded max depth".into());
        }
        let known = facts::go_type(definition).ok_or("unknown type")?;
        let name = known.name.rsplit('.').next().unwrap_or_default();
        Ok(Self { definition, known, name, around: &[], depth })
    }

    /// Adds the fields to the existing ones: a message may be split into parts.
    fn read(self, bytes: &[u8], into: &mut Map<String, Value>) -> Result<(), WireError> {
        let mut reader = WireReader::new(bytes);
        while let Some(tag) = reader.tag(self.name)? {
            let numbers = [self.around, &[tag.number]].concat();
            let found = self.known.fields.iter().find(|it| it.numbers.starts_with(&numbers));
            let Some(field) = found else {
                reader.skip(tag)?;
                continue;
            };
            // The name of the field, after those of the embedded structs around it.
            let go = field.go.split(": ").nth(self.around.len()).unwrap_or(field.go);
            if field.numbers.len() > numbers.len() {
                tag.expect(wire::BYTES, go)?;
                let embedded = Message { name: go, around: &numbers, ..self };
                embedded.read(reader.bytes()?, into)?;
                continue;
            }
            let old = into.get_mut(field.name).map_or(Value::Null, Value::take);
            let value = self.field(field, old, (tag, go), &mut reader)?;
            if field.omit && !field.pointer && is_zero(&field.form, &value) {
                into.shift_remove(field.name);
            } else {
                into.insert(field.name.into(), value);
            }
        }
        Ok(())
    }

    fn field(
        self,
        field: &GoField,
        old: Value,
        (tag, go): (Tag, &str),
        reader: &mut WireReader<'_>,
    ) -> Result<Value, WireError> {
        match &field.form {
            GoValueType::List(items) => {
                let mut list = if let Value::Array(list) = old { list } else { Vec::new() };
                let is_number =
                    matches!(**items, GoValueType::Bool | GoValueType::Int32 | GoValueType::Int64);
                if is_number && tag.wire == wire::BYTES {
                    let mut packed = WireReader::new(reader.bytes()?);
                    while !packed.is_empty() {
                        list.push(self.value(field, items, Value::Null, &mut packed)?);
                    }
                } else {
                    check_wire(items, tag, go)?;
                    list.push(self.value(field, items, Value::Null, reader)?);
                }
                Ok(Value::Array(list))
            }
            GoValueType::Map(items) => {
                tag.expect(wire::BYTES, go)?;
                let mut map = if let Value::Object(map) = old { map } else { Map::new() };
                let (key, value) = self.entry(field, items, reader.bytes()?)?;
                map.insert(key, value);
                Ok(Value::Object(map))
            }
            form @ (GoValueType::Text
            | GoValueType::Bool
            | GoValueType::Int32
            | GoValueType::Int64
            | GoValueType::Float
            | GoValueType::Bytes
            | GoValueType::Quantity
            | GoValueType::Time
            | GoValueType::MicroTime
            | GoValueType::IntOrText
            | GoValueType::Any
            | GoValueType::Struct(_)) => {
                check_wire(form, tag, go)?;
                self.value(field, form, old, reader)
            }
        }
    }

    fn entry(
        self,
        field: &GoField,
        items: &GoValueType,
        bytes: &[u8],
    ) -> Result<(String, Value), WireError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = WireReader::new(bytes);
        while let Some(tag) = reader.entry_tag()? {
            match tag.number {
                1 => key = reader.text()?,
                2 => value = Some(self.value(field, items, Value::Null, &mut reader)?),
                _ => reader.skip(tag)?,
            }
        }
        Ok((key, value.unwrap_or_else(|| zero(items))))
    }

    /// Decodes a single value; `old` is the earlier part of it.
    fn value(
        self,
        field: &GoField,
        form: &GoValueType,
        old: Value,
        reader: &mut WireReader<'_>,
    ) -> Result<Value, WireError> {
        Ok(match form {
            GoValueType::Text => reader.text()?.into(),
            GoValueType::Bool => (reader.varint()? != 0).into(),
            GoValueType::Int32 => low_half(reader.varint()?).cast_signed().into(),
            GoValueType::Int64 => reader.varint()?.cast_signed().into(),
            GoValueType::Float => float(f64::from_bits(reader.fixed64()?)),
            GoValueType::Bytes => STANDARD.encode(reader.bytes()?).into(),
            GoValueType::Quantity => quantity(reader.bytes()?)?,
            GoValueType::Time => time(reader.bytes()?, false)?,
            GoValueType::MicroTime => time(reader.bytes()?, true)?,
            GoValueType::IntOrText => int_or_text(reader.bytes()?)?,
            GoValueType::Any => match field.union {
                Some(union) => self.union(union, reader.bytes()?)?,
                None => raw(reader.bytes()?)?,
            },
            GoValueType::Struct(definition) => {
                let mut fields = if let Value::Object(fields) = old { fields } else { Map::new() };
                Message::of(definition, self.depth + 1)?.read(reader.bytes()?, &mut fields)?;
                Value::Object(fields)
            }
            // Lists in lists and in maps are separate messages.
            GoValueType::List(items) => {
                let mut list = Vec::new();
                let mut reader = WireReader::new(reader.bytes()?);
                while let Some(tag) = reader.tag("Items")? {
                    if tag.number == 1 {
                        check_wire(items, tag, "Items")?;
                        list.push(self.value(field, items, Value::Null, &mut reader)?);
                    } else {
                        reader.skip(tag)?;
                    }
                }
                Value::Array(list)
            }
            GoValueType::Map(_) => return Err("unknown type".into()),
        })
    }

    /// Decodes a field of a JSON schema that has several forms.
    fn union(self, union: Union, bytes: &[u8]) -> Result<Value, WireError> {
        let (name, first, second) = match union {
            Union::Schemas => ("JSONSchemaPropsOrArray", "Schema", "JSONSchemas"),
            Union::Flag => ("JSONSchemaPropsOrBool", "Allows", "Schema"),
            Union::Names => ("JSONSchemaPropsOrStringArray", "Schema", "Property"),
        };
        let (mut schema, mut list, mut flag) = (None, Vec::new(), false);
        let mut reader = WireReader::new(bytes);
        while let Some(tag) = reader.tag(name)? {
            match (union, tag.number) {
                (Union::Flag, 1) => {
                    tag.is_varint(first)?;
                    flag = reader.varint()? != 0;
                }
                (Union::Schemas | Union::Names, 1) | (Union::Flag, 2) => {
                    tag.expect(wire::BYTES, "Schema")?;
                    schema = Some(self.schema(reader.bytes()?)?);
                }
                (Union::Schemas, 2) => {
                    tag.expect(wire::BYTES, second)?;
                    list.push(self.schema(reader.bytes()?)?);
                }
                (Union::Names, 2) => {
                    tag.expect(wire::BYTES, second)?;
                    list.push(reader.text()?.into());
                }
                _ => reader.skip(tag)?,
            }
        }
        Ok(match (union, schema) {
            (Union::Schemas | Union::Names, _) if !list.is_empty() => list.into(),
            (Union::Flag, None) => flag.into(),
            (_, schema) => schema.unwrap_or_default(),
        })
    }

    /// Decodes a nested schema.
    fn schema(self, bytes: &[u8]) -> Result<Value, WireError> {
        let mut fields = Map::new();
        Message::of(self.definition, self.depth + 1)?.read(bytes, &mut fields)?;
        Ok(Value::Object(fields))
    }
}

fn check_wire(form: &GoValueType, tag: Tag, go: &str) -> Result<(), WireError> {
    match form {
        GoValueType::Bool | GoValueType::Int32 | GoValueType::Int64 => tag.is_varint(go),
        GoValueType::Float => tag.is_fixed64(go),
        GoValueType::Text
        | GoValueType::Bytes
        | GoValueType::Quantity
        | GoValueType::Time
        | GoValueType::MicroTime
        | GoValueType::IntOrText
        | GoValueType::Any
        | GoValueType::List(_)
        | GoValueType::Map(_)
        | GoValueType::Struct(_) => tag.expect(wire::BYTES, go),
    }
}

/// Returns whether JSON leaves the value out. Protobuf contains it.
fn is_zero(form: &GoValueType, value: &Value) -> bool {
    match value {
        Value::Bool(it) => !it,
        Value::Number(it) => !matches!(form, GoValueType::IntOrText) && it.as_f64() == Some(0.0),
        Value::String(it) => {
            it.is_empty() && matches!(form, GoValueType::Text | GoValueType::Bytes)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns the value of a map entry without one.
fn zero(form: &GoValueType) -> Value {
    match form {
        GoValueType::Text | GoValueType::Bytes => "".into(),
        GoValueType::Bool => false.into(),
        GoValueType::Int32 | GoValueType::Int64 | GoValueType::Float | GoValueType::IntOrText => {
            0.into()
        }
        GoValueType::Quantity => "0".into(),
        GoValueType::Struct(_) => Map::new().into(),
        GoValueType::Time
        | GoValueType::MicroTime
        | GoValueType::Any
        | GoValueType::List(_)
        | GoValueType::Map(_) => Value::Null,
    }
}

/// Converts a float as Go writes it: without a point if it is an integer.
fn float(value: f64) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or_default()
}

fn quantity(bytes: &[u8]) -> Result<Value, WireError> {
    let mut text = String::new();
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag("Quantity")? {
        if tag.number == 1 {
            tag.expect(wire::BYTES, "String_")?;
            text = reader.text()?;
        } else {
            reader.skip(tag)?;
        }
    }
    Quantity::parse(&text)?;
    Ok(text.into())
}

/// Decodes a time: seconds, and nanoseconds, which only some types keep. An empty message is null.
fn time(bytes: &[u8], fine: bool) -> Result<Value, WireError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag("Timestamp")? {
        match tag.number {
            1 => {
                tag.is_varint("Seconds")?;
                seconds = reader.varint()?.cast_signed();
            }
            2 => {
                tag.is_varint("Nanos")?;
                nanos = low_half(reader.varint()?).cast_signed();
            }
            _ => reader.skip(tag)?,
        }
    }
    if seconds == NO_TIME && (nanos == 0 || !fine) {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, if fine { nanos } else { 0 });
    let text = time.map(|it| if fine { format!("{it:.6}") } else { it.to_string() });
    // Negative years have a sign.
    match text {
        Ok(text) if !text.starts_with('-') => Ok(text.into()),
        Ok(_) | Err(_) => Err("Time.MarshalJSON: year outside of range [0,9999]".into()),
    }
}

fn int_or_text(bytes: &[u8]) -> Result<Value, WireError> {
    let (mut kind, mut number, mut text) = (0, 0, String::new());
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag("IntOrString")? {
        match tag.number {
            1 => {
                tag.is_varint("Type")?;
                kind = reader.varint()?;
            }
            2 => {
                tag.is_varint("IntVal")?;
                number = low_half(reader.varint()?).cast_signed();
            }
            3 => {
                tag.expect(wire::BYTES, "StrVal")?;
                text = reader.text()?;
            }
            _ => reader.skip(tag)?,
        }
    }
    match kind {
        0 => Ok(number.into()),
        1 => Ok(text.into()),
        // The real server closes the connection.
        _ => Err("impossible IntOrString.Type".into()),
    }
}

/// Decodes JSON in protobuf: extensions, managed fields, defaults in schemas.
fn raw(bytes: &[u8]) -> Result<Value, WireError> {
    let mut raw: &[u8] = &[];
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag("RawExtension")? {
        if tag.number == 1 {
            tag.expect(wire::BYTES, "Raw")?;
            raw = reader.bytes()?;
        } else {
            reader.skip(tag)?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    json::parse(raw)
}
