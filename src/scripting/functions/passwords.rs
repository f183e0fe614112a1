//! Password hashes: `hash.bcrypt`, `hash.argon2` and `hash.check`.

use argon2::{
    Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version,
    password_hash::phc::PasswordHash,
};
use bcrypt::BcryptError;
use serde_json::Value;

use super::{Call, random};
use crate::logic::text::size;
use crate::scripting::functions::{
    outcome::{Failure, Outcome},
    types::{Body, Function, Parameter, Type, optional, required},
};

const PASSWORD: Parameter = required("password", Type::Bytes, "The password.").secret();

pub(super) const BCRYPT: Function = Function {
    name: "bcrypt",
    doc: "Returns the bcrypt hash of a password, such as `$2b$12$…`: for htpasswd files and the users of databases. Runs in the background, one at a time per script.",
    parameters: &[PASSWORD],
    options: &[
        optional(
            "cost",
            Type::Integer,
            "The cost, from 4 to 15; default: 12. Each step doubles the time.",
        ),
        optional(
            "version",
            Type::Name,
            "\"2b\", \"2a\" or \"2y\"; default: \"2b\". Apache requires \"2y\".",
        ),
    ],
    returns: Type::Text,
    body: Body::Waiting(|call| Box::pin(call.heavily(bcrypt))),
};

pub(super) const ARGON2: Function = Function {
    name: "argon2",
    doc: "Returns the Argon2id hash of a password, such as `$argon2id$v=19$…`. Runs in the background, one at a time per script; its memory is taken in addition to that of the script.",
    parameters: &[PASSWORD],
    options: &[
        optional(
            "memory",
            Type::Integer,
            "KiB of memory; default: 19456. At most `settings.sandbox.memory_limit`.",
        ),
        optional(
            "iterations",
            Type::Integer,
            "Passes over the memory; default: 2. At most 1 GiB in all passes together.",
        ),
        optional("parallelism", Type::Integer, "Lanes, from 1 to 16; default: 1."),
    ],
    returns: Type::Text,
    body: Body::Waiting(|call| Box::pin(call.heavily(argon2))),
};

pub(super) const CHECK: Function = Function {
    name: "check",
    doc: "Returns whether a hash of bcrypt or Argon2 is that of a password. Runs in the background, one at a time per script.",
    parameters: &[PASSWORD, required("hash", Type::Text, "The hash.").secret()],
    options: &[],
    returns: Type::Boolean,
    body: Body::Waiting(|call| Box::pin(call.heavily(check))),
};

/// Takes a second or two.
const COST_MAX: u32 = 15;
const COST: u32 = 12;
/// bcrypt truncates longer passwords.
const BCRYPT_BYTES_MAX: usize = 72;
/// OWASP's recommendation, which is the default of the crate.
const MEMORY_KIB: u32 = Params::DEFAULT_M_COST;
const ITERATIONS: u32 = Params::DEFAULT_T_COST;
const LANES_MAX: u32 = 16;
/// Maximum of memory times iterations, in KiB: takes a second or two.
const WORK_KIB_MAX: u64 = 1 << 20;

fn bcrypt(call: &Call) -> Outcome {
    let cost = number(call, "cost", COST, (4, COST_MAX))?;
    let version = match call.some_text("version").unwrap_or("2b") {
        "2a" => bcrypt::Version::TwoA,
        "2b" => bcrypt::Version::TwoB,
        "2y" => bcrypt::Version::TwoY,
        other => {
            return Err(
                format!("`version`: expected \"2a\", \"2b\" or \"2y\", got {other:?}").into()
            );
        }
    };
    let password = call.bytes("password");
    if password.len() > BCRYPT_BYTES_MAX || password.contains(&0) {
        return Err(format!(
            "`password`: expected at most {BCRYPT_BYTES_MAX} bytes without a zero byte: bcrypt ignores the rest; use hash.argon2"
        )
        .into());
    }
    let mut salt = [0; 16];
    random::fill(&mut salt)?;
    let hashed = bcrypt::hash_with_salt(password, cost, salt).map_err(|it| failed(&it))?;
    Ok(Value::from(hashed.format_for_version(version)).into())
}

fn argon2(call: &Call) -> Outcome {
    let memory = number(call, "memory", MEMORY_KIB, (8, u32::MAX))?;
    let iterations = number(call, "iterations", ITERATIONS, (1, u32::MAX))?;
    let lanes = number(call, "parallelism", 1, (1, LANES_MAX))?;
    affordable(call, "`memory`, `iterations`", (memory, iterations))?;
    let params = Params::new(memory, iterations, lanes, None)
        .map_err(|it| Failure::Plain(format!("`memory`, `parallelism`: {it}")))?;
    let mut salt = [0; 16];
    random::fill(&mut salt)?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hashed = argon2.hash_password_with_salt(call.bytes("password"), &salt);
    let hashed = hashed.map_err(|it| Failure::Plain(format!("`password`: {it}")))?;
    Ok(Value::from(hashed.to_string()).into())
}

fn check(call: &Call) -> Outcome {
    let (password, hash) = (call.bytes("password"), call.text("hash"));
    if hash.starts_with("$2") {
        return check_bcrypt(password, hash);
    }
    let unknown = || {
        Failure::from(
            "`hash`: expected a hash of bcrypt ($2b$…) or Argon2 ($argon2id$…), got another string",
        )
    };
    if !hash.starts_with("$argon2") {
        return Err(unknown());
    }
    let hashed = PasswordHash::new(hash).map_err(|_problem| unknown())?;
    let params = Params::try_from(&hashed).map_err(|_problem| unknown())?;
    affordable(call, "`hash`", (params.m_cost(), params.t_cost()))?;
    if params.p_cost() > LANES_MAX {
        return Err(
            format!("`hash`: expected at most {LANES_MAX} lanes, got {}", params.p_cost()).into()
        );
    }
    match Argon2::default().verify_password(password, &hashed) {
        Ok(()) => Ok(Value::from(true).into()),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(Value::from(false).into()),
        Err(_) => Err(unknown()),
    }
}

fn check_bcrypt(password: &[u8], hash: &str) -> Outcome {
    let cost = hash.get(4..6).and_then(|it| it.parse::<u32>().ok());
    if let Some(cost) = cost.filter(|it| *it > COST_MAX) {
        return Err(format!("`hash`: expected a cost of at most {COST_MAX}, got {cost}").into());
    }
    let checked = bcrypt::verify(password, hash).map_err(|it| failed(&it))?;
    Ok(Value::from(checked).into())
}

/// Rejects parameters that take too much memory or time.
fn affordable(call: &Call, what: &str, (memory, iterations): (u32, u32)) -> Result<(), Failure> {
    let limit = call.surroundings.limits.memory_limit;
    let bytes = usize::try_from(memory).unwrap_or(usize::MAX).saturating_mul(1024);
    if bytes > limit {
        return Err(format!(
            "{what}: expected at most {} of memory (settings.sandbox.memory_limit), got {}",
            size::shown(limit),
            size::shown(bytes)
        )
        .into());
    }
    if u64::from(memory).saturating_mul(iterations.into()) > WORK_KIB_MAX {
        return Err(format!(
            "{what}: expected at most {WORK_KIB_MAX} KiB in all passes together, got {iterations} passes over {memory} KiB"
        )
        .into());
    }
    Ok(())
}

/// Returns a number within a range.
fn number(call: &Call, name: &str, default: u32, (min, max): (u32, u32)) -> Result<u32, Failure> {
    let Some(given) = call.integer(name) else { return Ok(default) };
    let number = u32::try_from(given).ok().filter(|it| (min..=max).contains(it));
    number.ok_or_else(|| {
        let expected =
            if max == u32::MAX { format!("at least {min}") } else { format!("{min} to {max}") };
        Failure::Plain(format!("`{name}`: expected {expected}, got {given}"))
    })
}

/// Returns an error without the password and the hash.
fn failed(error: &BcryptError) -> Failure {
    match error {
        BcryptError::CostNotAllowed(cost) => {
            format!("`hash`: expected a cost of 4 to {COST_MAX}, got {cost}").into()
        }
        BcryptError::InvalidHash(_) => {
            "`hash`: expected a hash of bcrypt, such as `$2b$12$…` with 60 characters, got another string".into()
        }
        BcryptError::Rand(problem) => format!("the system provides no randomness: {problem}").into(),
        BcryptError::Truncation(bytes) => {
            format!("`password`: expected at most {BCRYPT_BYTES_MAX} bytes, got {bytes}").into()
        }
    }
}
