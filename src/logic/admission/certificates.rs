//! Decides when the generated certificates of the webhook server are replaced.
//!
//! A CA signs the certificate of the server; API servers trust the CA. Both are replaced after two thirds of their validity. A new CA signs
//! nothing until API servers had the time to receive it; the old one stays trusted until the server's certificate of every replica is
//! signed by the new one. So every API server trusts every replica at all times.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The validity of a CA.
pub const CA_LIFE: Duration = Duration::from_hours(365 * 24);
/// The validity of the certificate of a server.
pub const LEAF_LIFE: Duration = Duration::from_hours(90 * 24);
/// The time for API servers to receive a new CA, and for replicas to load a new certificate.
pub const OVERLAP: Duration = Duration::from_mins(10);
/// Certificates are backdated by this, because the clocks of machines differ.
pub const BACKDATED: Duration = Duration::from_mins(5);

/// The validity of all certificates, as stored with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lives {
    /// The trusted CAs; the last one is the newest.
    pub cas: Vec<Life>,
    /// The certificate of the server; absent until it is signed.
    pub leaf: Option<Leaf>,
}

/// The validity of a certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// The common name of the certificate.
    pub name: String,
    /// When it was created.
    pub from: Timestamp,
    /// When it becomes invalid.
    pub until: Timestamp,
}

/// The certificate of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The names that it is valid for.
    pub names: Vec<String>,
    /// The name of the CA that has signed it.
    pub ca: String,
    /// When it was created.
    pub from: Timestamp,
    /// When it becomes invalid.
    pub until: Timestamp,
}

/// The next action for the CAs and the certificate of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateStep {
    /// Create the first CA, and the certificate of the server.
    Create,
    /// Create another CA, which signs nothing yet.
    AddCa,
    /// Sign the certificate of the server with this CA.
    Sign(String),
    /// No longer trust this CA.
    DropCa(String),
    /// Check again at this time.
    Wait(Timestamp),
}

impl Lives {
    /// Returns the next step for a server with these names.
    pub fn next(&self, names: &[String], now: Timestamp) -> CertificateStep {
        let (Some(newest), Some(leaf)) = (self.cas.last(), &self.leaf) else {
            return CertificateStep::Create;
        };
        if newest.until <= now || leaf.until <= now {
            return CertificateStep::Create;
        }
        if due(newest.from, newest.until) <= now {
            return CertificateStep::AddCa;
        }
        let is_settled = later(newest.from, OVERLAP) <= now;
        if leaf.ca != newest.name && is_settled {
            return CertificateStep::Sign(newest.name.clone());
        }
        let signer = self.cas.iter().find(|it| it.name == leaf.ca);
        if leaf.names != names || due(leaf.from, leaf.until) <= now {
            // The key of an older CA is not kept.
            return if leaf.ca == newest.name || signer.is_none() {
                CertificateStep::Sign(newest.name.clone())
            } else {
                CertificateStep::Wait(later(newest.from, OVERLAP))
            };
        }
        let outdated = self.cas.iter().find(|it| it.name != newest.name && it.name != leaf.ca);
        if let Some(outdated) = outdated {
            let dropped = later(leaf.from, OVERLAP);
            return if dropped <= now {
                CertificateStep::DropCa(outdated.name.clone())
            } else {
                CertificateStep::Wait(dropped)
            };
        }
        let signed = (leaf.ca != newest.name).then(|| later(newest.from, OVERLAP));
        let renewed = due(leaf.from, leaf.until).min(due(newest.from, newest.until));
        CertificateStep::Wait(signed.map_or(renewed, |it| it.min(renewed)))
    }
}

/// Returns when a certificate must be replaced.
fn due(from: Timestamp, until: Timestamp) -> Timestamp {
    let life = Duration::try_from(until.duration_since(from)).unwrap_or_default();
    later(from, life * 2 / 3)
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::{
        CA_LIFE, CertificateStep, LEAF_LIFE, Leaf, Life, Lives, OVERLAP, Timestamp, later,
    };

    const START: &str = "2026-01-01T00:00:00Z";

    /// Executes the steps until this time. Returns them with the day of each.
    fn run(days: i64) -> Vec<String> {
        let names = vec!["hooks.ops.svc".to_owned()];
        let start: Timestamp = START.parse().unwrap();
        let (mut lives, mut now, mut count, mut steps) = (Lives::default(), start, 0, Vec::new());
        let day = |it: Timestamp| it.duration_since(start).as_hours() / 24;
        while day(now) < days {
            let step = lives.next(&names, now);
            let sign = |lives: &mut Lives, ca: &str| {
                let (names, ca) = (names.clone(), ca.to_owned());
                lives.leaf = Some(Leaf { names, ca, from: now, until: later(now, LEAF_LIFE) });
            };
            let mut add = |lives: &mut Lives| {
                count += 1;
                let name = format!("ca{count}");
                lives.cas.push(Life { name: name.clone(), from: now, until: later(now, CA_LIFE) });
                name
            };
            let shown = match step {
                CertificateStep::Create => {
                    lives = Lives::default();
                    let name = add(&mut lives);
                    sign(&mut lives, &name);
                    "create".to_owned()
                }
                CertificateStep::AddCa => format!("add {}", add(&mut lives)),
                CertificateStep::Sign(ca) => {
                    sign(&mut lives, &ca);
                    format!("sign with {ca}")
                }
                CertificateStep::DropCa(ca) => {
                    lives.cas.retain(|it| it.name != ca);
                    format!("drop {ca}")
                }
                CertificateStep::Wait(until) => {
                    assert!(until > now, "waits for the past");
                    now = until;
                    continue;
                }
            };
            // The server's certificate is always valid, and its CA is trusted.
            let leaf = lives.leaf.as_ref().unwrap();
            let ca = lives.cas.iter().find(|it| it.name == leaf.ca).unwrap();
            assert!(leaf.until > now && ca.until > now);
            steps.push(format!("day {}: {shown}", day(now)));
        }
        steps
    }

    #[test]
    fn certificates_are_replaced_at_two_thirds_of_their_life_with_both_cas_trusted() {
        assert_eq!(
            run(320),
            [
                "day 0: create",
                "day 60: sign with ca1",
                "day 120: sign with ca1",
                "day 180: sign with ca1",
                "day 240: sign with ca1",
                "day 243: add ca2",
                "day 243: sign with ca2",
                "day 243: drop ca1",
                "day 303: sign with ca2",
            ]
        );
    }

    #[test]
    fn a_new_ca_signs_only_after_api_servers_know_it() {
        let names = vec!["a".to_owned()];
        let start: Timestamp = START.parse().unwrap();
        let life = |name: &str, from| Life { name: name.into(), from, until: later(from, CA_LIFE) };
        let added = later(start, CA_LIFE * 2 / 3);
        let leaf_from = later(start, CA_LIFE / 2);
        let leaf = Leaf {
            names: names.clone(),
            ca: "old".into(),
            from: leaf_from,
            until: later(leaf_from, LEAF_LIFE),
        };
        let lives = Lives { cas: vec![life("old", start), life("new", added)], leaf: Some(leaf) };
        assert_eq!(lives.next(&names, added), CertificateStep::Wait(later(added, OVERLAP)));
        assert_eq!(lives.next(&names, later(added, OVERLAP)), CertificateStep::Sign("new".into()));
    }

    #[test]
    fn a_certificate_for_other_names_or_that_is_over_is_replaced_at_once() {
        let start: Timestamp = START.parse().unwrap();
        let ca = Life { name: "ca".into(), from: start, until: later(start, CA_LIFE) };
        let names = vec!["a".to_owned()];
        let leaf = Leaf {
            names: names.clone(),
            ca: "ca".into(),
            from: start,
            until: later(start, LEAF_LIFE),
        };
        let lives = Lives { cas: vec![ca], leaf: Some(leaf) };
        assert_eq!(lives.next(&["b".to_owned()], start), CertificateStep::Sign("ca".into()));
        assert_eq!(lives.next(&names, later(start, LEAF_LIFE)), CertificateStep::Create);
        assert_eq!(Lives::default().next(&names, start), CertificateStep::Create);
    }
}
