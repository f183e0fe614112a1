//! `uuid`: random and name-based UUIDs.

use ::uuid::Uuid;
use serde_json::Value;

use super::random;
use crate::scripting::functions::{
    outcome::Failure,
    types::{Library, Type, immediate, required},
};

pub(super) const LIBRARY: Library = Library {
    name: "uuid",
    doc: "Universally unique identifiers.",
    functions: &[
        immediate("v4", "Returns a new random UUID.", &[], Type::Text, |_| {
            let mut bytes = [0; 16];
            random::fill(&mut bytes)?;
            Ok(Value::from(::uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
                .into())
        }),
        immediate(
            "v5",
            "Returns the UUID of a name: always the same for the same name in the same namespace.",
            &[
                required(
                    "namespace",
                    Type::Name,
                    "\"dns\", \"url\", \"oid\", \"x500\", or a UUID.",
                ),
                required("name", Type::Text, "The name."),
            ],
            Type::Text,
            |call| {
                let namespace = match call.text("namespace") {
                    "dns" => Uuid::NAMESPACE_DNS,
                    "url" => Uuid::NAMESPACE_URL,
                    "oid" => Uuid::NAMESPACE_OID,
                    "x500" => Uuid::NAMESPACE_X500,
                    text => Uuid::parse_str(text).map_err(|_problem| {
                        Failure::Plain(format!(
                            "`namespace`: expected \"dns\", \"url\", \"oid\", \"x500\" or a UUID, got \"{text}\""
                        ))
                    })?,
                };
                let uuid = Uuid::new_v5(&namespace, call.text("name").as_bytes());
                Ok(Value::from(uuid.to_string()).into())
            },
        ),
        immediate(
            "is_valid",
            "Returns whether a string is a UUID.",
            &[required("text", Type::Text, "The string.")],
            Type::Boolean,
            |call| Ok(Value::from(Uuid::parse_str(call.text("text")).is_ok()).into()),
        ),
    ],
};
