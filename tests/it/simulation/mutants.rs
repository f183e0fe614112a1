//! Deliberate bugs, as if the operator had them: each must be found.

use std::{fmt::Write as _, time::Duration};

use bytes::Bytes;
use fastrand::Rng;
use serde_json::Value;

/// A bug. It shows at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mutant {
    /// An event of a watch is dropped silently.
    DropsEvent,
    /// A PATCH of the status is dropped, and counts as sent.
    ForgetsStatus,
    /// The removal of the finalizer is dropped, and counts as sent.
    ForgetsFinalizer,
    /// A PATCH is sent once more after newer ones.
    RepeatsPatch,
    /// Objects of the same name are treated as one object.
    IgnoresUid,
}

/// The way in which a PATCH is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is sent once.
    Once,
    /// It is not sent, and the operator treats it as sent.
    Never,
    /// It is sent now, and once more after this time.
    Twice(Duration),
}

impl Mutant {
    pub(super) const ALL: [Mutant; 5] = [
        Mutant::DropsEvent,
        Mutant::ForgetsStatus,
        Mutant::ForgetsFinalizer,
        Mutant::RepeatsPatch,
        Mutant::IgnoresUid,
    ];

    /// Returns the way in which a PATCH with this path and body is sent.
    pub(super) fn sent(self, path: &str, body: &[u8], random: &mut Rng) -> Sent {
        let is_status = path.ends_with("/status");
        let payload: Value = serde_json::from_slice(body).unwrap_or_default();
        let operations = payload.as_array().into_iter().flatten();
        let is_release = operations.clone().any(|it| {
            it["op"] == "remove" && it["path"].as_str().is_some_and(|it| it.contains("/finalizers"))
        });
        let is_by_chance = random.u32(..10) == 0;
        match self {
            Mutant::ForgetsStatus if is_status && is_by_chance => Sent::Never,
            Mutant::ForgetsFinalizer if is_release && is_by_chance => Sent::Never,
            Mutant::RepeatsPatch if payload.is_object() && is_by_chance => {
                Sent::Twice(Duration::from_millis(random.u64(100..5000)))
            }
            _ => Sent::Once,
        }
    }

    /// Returns whether a line of a watch is dropped.
    pub(super) fn drops(self, random: &mut Rng) -> bool {
        self == Mutant::DropsEvent && random.u32(..20) == 0
    }

    /// Returns a response as the operator reads it.
    pub(super) fn read(self, body: &Bytes) -> Bytes {
        if self != Mutant::IgnoresUid {
            return body.clone();
        }
        // Uids are `NAME.NUMBER`.
        let text = String::from_utf8_lossy(body);
        let mut parts = text.split("\"uid\":\"");
        let mut read = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (uid, rest) = part.split_once('"').unwrap_or((part, ""));
            let name = uid.split('.').next().unwrap_or_default();
            write!(read, "\"uid\":\"{name}\"{rest}").expect("a string");
        }
        read.into()
    }
}
