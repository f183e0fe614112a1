//! `random`: from the randomness of the system, suitable for passwords; or from a seed, reproducible.

use serde_json::Value;

use super::{Call, pace};
use crate::scripting::{
    functions::{
        outcome::{Datum, Failure, Outcome, plain_number},
        types::{Library, Parameter, Type, immediate, optional, required},
    },
    values::limits,
};

const SEED_OPTION: Parameter = optional(
    "seed",
    Type::Integer,
    "The same seed returns the same result, for tests; without a seed, the result is unpredictable.",
);
const SEED: &[Parameter] = &[SEED_OPTION];
/// The default characters: letters and digits.
const CHARACTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(super) const LIBRARY: Library = Library {
    name: "random",
    doc: "Random numbers, choices and strings, also suitable for passwords.",
    functions: &[
        immediate(
            "integer",
            "Returns an integer between two others, both included.",
            &[
                required("min", Type::Integer, "The minimum."),
                required("max", Type::Integer, "The maximum."),
            ],
            Type::Integer,
            integer,
        )
        .with(SEED),
        immediate("number", "Returns a number from 0 to below 1.", &[], Type::Number, |call| {
            let bits = RandomSource::of(call).next()? >> 11;
            // 53 bits are exact.
            let number =
                bits.to_string().parse::<f64>().unwrap_or_default() / 9_007_199_254_740_992.0;
            Ok(plain_number(number).into())
        })
        .with(SEED),
        immediate(
            "choice",
            "Returns one item of a list that is not empty.",
            &[required("list", Type::List, "The items.")],
            Type::Any,
            |call| {
                let items = call.list("list");
                if items.is_empty() {
                    return Err("`list`: expected a list with at least one item".into());
                }
                let place = RandomSource::of(call).below(items.len())?;
                Ok(items.get(place).cloned().unwrap_or_default().into())
            },
        )
        .with(SEED),
        immediate(
            "shuffle",
            "Returns the items of a list in random order.",
            &[required("list", Type::List, "The items.")],
            Type::List,
            |call| {
                let mut items = call.list("list").to_vec();
                let mut source = RandomSource::of(call);
                for place in (1..items.len()).rev() {
                    items.swap(place, source.below(place + 1)?);
                }
                Ok(Value::Array(items).into())
            },
        )
        .with(SEED),
        immediate(
            "string",
            "Returns a string of random letters and digits: `random.string(24)` is a good password.",
            &[required("length", Type::Integer, "The number of characters.")],
            Type::Text,
            string,
        )
        .with(&[
            optional("characters", Type::Name, "The characters to use; default: letters and digits."),
            SEED_OPTION,
        ]),
        immediate(
            "bytes",
            "Returns random bytes: a string in Lua, a blob in Rhai. `base64.encode(random.bytes(32))` is a good key.",
            &[required("count", Type::Integer, "The number of bytes.")],
            Type::Bytes,
            bytes,
        )
        .with(SEED),
    ],
};

/// The source of randomness.
enum RandomSource {
    System { bytes: Box<[u8; 256]>, used: usize },
    Seeded(fastrand::Rng),
}

impl RandomSource {
    fn of(call: &Call) -> Self {
        match call.integer("seed") {
            Some(seed) => RandomSource::Seeded(fastrand::Rng::with_seed(seed.cast_unsigned())),
            None => RandomSource::System { bytes: Box::new([0; 256]), used: 256 },
        }
    }

    fn next(&mut self) -> Result<u64, Failure> {
        match self {
            RandomSource::Seeded(random) => Ok(random.u64(..)),
            RandomSource::System { bytes, used } => {
                if *used >= bytes.len() {
                    fill(bytes.as_mut())?;
                    *used = 0;
                }
                let next = bytes.get(*used..).and_then(<[u8]>::first_chunk);
                *used += 8;
                Ok(u64::from_ne_bytes(next.copied().unwrap_or_default()))
            }
        }
    }

    /// Returns a number below `limit`, which is not 0, uniformly distributed.
    fn below_u64(&mut self, limit: u64) -> Result<u64, Failure> {
        // The rest above the last multiple would make small numbers likelier.
        let fair = u64::MAX - u64::MAX % limit;
        loop {
            let next = self.next()?;
            if next < fair {
                return Ok(next % limit);
            }
        }
    }

    fn below(&mut self, limit: usize) -> Result<usize, Failure> {
        let below = self.below_u64(u64::try_from(limit).unwrap_or(u64::MAX))?;
        Ok(usize::try_from(below).unwrap_or_default())
    }
}

/// Fills the bytes with randomness of the system.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(bytes)
        .map_err(|problem| format!("the system provides no randomness: {problem}").into())
}

fn integer(call: &Call) -> Outcome {
    let (min, max) = (call.integer("min").unwrap_or(0), call.integer("max").unwrap_or(0));
    if min > max {
        return Err(format!("`max`: expected a number of at least {min}, got {max}").into());
    }
    let mut source = RandomSource::of(call);
    let picked = match max.abs_diff(min).checked_add(1) {
        Some(count) => source.below_u64(count)?,
        None => source.next()?,
    };
    Ok(Value::from(min.wrapping_add_unsigned(picked)).into())
}

fn string(call: &Call) -> Outcome {
    let length = call.count("length", 0)?;
    let characters: Vec<char> =
        call.some_text("characters").unwrap_or(CHARACTERS).chars().collect();
    let limit = call.surroundings.limits.string_size;
    // A character has at most four bytes.
    if length.saturating_mul(4) > limit {
        return Err(limits::too_long_text(limit).into());
    }
    let mut source = RandomSource::of(call);
    let mut text = String::new();
    for made in 0..length {
        pace::short_step(made)?;
        let place = source.below(characters.len())?;
        text.extend(characters.get(place));
    }
    Ok(Value::from(text).into())
}

fn bytes(call: &Call) -> Outcome {
    let count = call.count("count", 0)?;
    let limit = call.surroundings.limits.string_size;
    if count > limit {
        return Err(limits::too_long_text(limit).into());
    }
    let mut bytes = vec![0; count];
    match call.integer("seed") {
        Some(seed) => fastrand::Rng::with_seed(seed.cast_unsigned()).fill(&mut bytes),
        None => fill(&mut bytes)?,
    }
    Ok(Datum::Bytes(bytes))
}
