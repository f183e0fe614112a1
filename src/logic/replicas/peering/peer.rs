//! One record of a peering object.

use std::{fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::logic::{handlers::progress, text::python_text};

/// The default lifetime of a record, in seconds.
const LIFETIME_SECONDS: i64 = 60;

/// An operator, or a user who requests operators to pause.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// The key of its record in the peering object.
    pub identity: String,
    /// The operator with the highest priority is active.
    pub priority: i64,
    /// How long the record is valid, in seconds.
    pub lifetime: i64,
    /// When it was written.
    pub lastseen: Timestamp,
    /// The note of a user.
    pub message: Option<String>,
}

impl Peer {
    /// Returns all records of a status. Invalid entries are skipped; missing or invalid fields get their defaults.
    pub fn all_of(body: &Value, now: Timestamp) -> Vec<Peer> {
        let entries = body.get("status").and_then(Value::as_object);
        let records = entries.into_iter().flatten().filter_map(|(identity, entry)| {
            let fields = entry.as_object()?;
            let lastseen = fields.get("lastseen").and_then(Value::as_str);
            Some(Peer {
                identity: identity.clone(),
                priority: fields.get("priority").and_then(whole).unwrap_or_default(),
                lifetime: fields.get("lifetime").and_then(whole).unwrap_or(LIFETIME_SECONDS),
                lastseen: lastseen.and_then(progress::parse_stamp).unwrap_or(now),
                message: fields.get("message").and_then(Value::as_str).map(str::to_owned),
            })
        });
        records.collect()
    }

    /// Returns the lifetime; zero if it is negative.
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.lifetime).unwrap_or_default())
    }

    /// Returns how long the record is still valid by its own stamp.
    pub fn time_left(&self, now: Timestamp) -> Duration {
        let age = now.duration_since(self.lastseen);
        let left = SignedDuration::from_secs(self.lifetime).checked_sub(age);
        Duration::try_from(left.unwrap_or_default()).unwrap_or_default()
    }
}

/// Reads a number without its fraction, or a string of one.
fn whole(value: &Value) -> Option<i64> {
    let float = || value.as_f64().and_then(|it| format!("{:.0}", it.trunc()).parse().ok());
    let text = || value.as_str().and_then(|it| it.trim().parse().ok());
    value.as_i64().or_else(float).or_else(text)
}

impl fmt::Display for Peer {
    /// Formats the peer as Kopf does; a message comes last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peer { identity, priority, lifetime, .. } = self;
        let lastseen = progress::touch_stamp(self.lastseen);
        write!(
            f,
            "<Peer {identity}: priority={priority}, lifetime={lifetime}, lastseen='{lastseen}'"
        )?;
        if let Some(message) = &self.message {
            write!(f, ", message={}", python_text::quoted(message))?;
        }
        f.write_str(">")
    }
}
