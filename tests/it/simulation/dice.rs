//! Random numbers by name: the same for the same seed and name, independent of other numbers.

use fastrand::Rng;

/// The random numbers of a run. A fault that is left out changes no other decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// Returns the random numbers of this name and number.
    pub(super) fn of(self, name: &str, number: u64) -> Rng {
        // FNV-1a over the seed, the name and the number.
        let seed = self.0.to_le_bytes().into_iter();
        let bytes = seed.chain(name.bytes()).chain(number.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut random = Rng::with_seed(hash);
        // Similar hashes begin with similar numbers.
        random = random.fork();
        random
    }
}
