//! Where uids and generated names come from: a count, so that transcripts of tests can be read, or chance.

use fastrand::Rng;

use crate::metadata::generate_name;

/// A source of uids and names.
#[derive(Debug)]
pub(crate) enum Identities {
    /// How many were made.
    Counted(u64),
    /// As on a real server.
    Random(Rng),
}

impl Identities {
    /// Random from this seed on, or counted.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::Counted(0), |it| Self::Random(Rng::with_seed(it)))
    }

    /// In the form of a random UUID, RFC 9562.
    pub(crate) fn uid(&mut self) -> String {
        match self {
            Self::Counted(count) => {
                *count += 1;
                format!("00000000-0000-4000-8000-{count:012x}")
            }
            Self::Random(random) => format!(
                "{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}",
                random.u32(..),
                random.u16(..),
                random.u16(..0x1000),
                random.u8(8..12),
                random.u16(..0x1000),
                random.u64(..1 << 48),
            ),
        }
    }

    /// A name with this start.
    pub(crate) fn name(&mut self, start: &str) -> String {
        match self {
            Self::Counted(count) => {
                *count += 1;
                format!("{start}{count:05x}")
            }
            Self::Random(random) => generate_name(start, |below| random.usize(..below)),
        }
    }
}
