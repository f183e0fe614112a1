//! Uids and the suffixes of generated names: counted, so that transcripts of tests are readable, or random.

use fastrand::Rng;

use crate::metadata::generate_name;

/// A generator of uids and names.
#[derive(Debug)]
pub(crate) enum Identities {
    /// Counts up; the number of the last one.
    Counted(u64),
    /// Random, as on a real server.
    Random(Rng),
}

impl Identities {
    /// Creates a random generator from a seed, or a counting one without it.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::Counted(0), |it| Self::Random(Rng::with_seed(it)))
    }

    /// Returns a new uid in the form of a random UUID (RFC 9562).
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

    /// Returns a new name with this prefix, for `generateName`.
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
