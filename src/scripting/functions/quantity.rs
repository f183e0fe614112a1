//! `quantity`: quantities as Kubernetes writes them, `500m` of a processor or `2Gi` of memory. Exact, in billionths.

use std::cmp::Ordering;

use serde_json::Value;

use super::Call;
use crate::scripting::{
    functions::{
        outcome::{Datum, Failure, Outcome},
        types::{Library, Parameter, Type, immediate, optional, required},
    },
    values::text::shown,
};

const A: Parameter = required(
    "a",
    Type::Any,
    "A string such as \"500m\" or \"2Gi\", at most 100 bytes with 30 digits, or a number; longer strings are rejected.",
);
const B: Parameter = required("b", Type::Any, "The other quantity.");

/// The number 1 in billionths.
const ONE: i128 = 1_000_000_000;
/// Decimal units, in billionths.
const DECIMAL: [(&str, i128); 10] = [
    ("E", ONE * 1_000_000_000_000_000_000),
    ("P", ONE * 1_000_000_000_000_000),
    ("T", ONE * 1_000_000_000_000),
    ("G", ONE * 1_000_000_000),
    ("M", ONE * 1_000_000),
    ("k", ONE * 1_000),
    ("", ONE),
    ("m", ONE / 1_000),
    ("u", ONE / 1_000_000),
    ("n", 1),
];
/// Binary units, in billionths.
const BINARY: [(&str, i128); 7] = [
    ("Ei", ONE << 60),
    ("Pi", ONE << 50),
    ("Ti", ONE << 40),
    ("Gi", ONE << 30),
    ("Mi", ONE << 20),
    ("Ki", ONE << 10),
    ("", ONE),
];

pub(super) const LIBRARY: Library = Library {
    name: "quantity",
    doc: "Kubernetes quantities: `500m` of a CPU, `2Gi` of memory.",
    functions: &[
        immediate(
            "parse",
            "Returns the number of a quantity: `quantity.parse(\"500m\")` is 0.5, `quantity.parse(\"1Ki\")` is 1024.",
            &[A],
            Type::Number,
            |call| Ok(number(read(call, "a")?)),
        ),
        immediate("is_valid", "Returns whether a value is a quantity.", &[A], Type::Boolean, |call| {
            Ok(Value::from(read(call, "a").is_ok()).into())
        }),
        immediate(
            "format",
            "Formats a number as a quantity, in its shortest exact form: `quantity.format(0.5)` is `500m`.",
            &[A],
            Type::Text,
            |call| {
                let amount = read(call, "a")?;
                let is_binary =
                    if call.has("binary") { call.flag("binary") } else { amount.is_binary };
                Ok(text(Amount { is_binary, ..amount }))
            },
        )
        .with(&[optional(
            "binary",
            Type::Boolean,
            "Use units of 1024, such as `2Gi`; default: the units of the quantity.",
        )]),
        immediate(
            "compare",
            "Compares two quantities: returns -1, 0 or 1 if the first one is smaller than, equal to, or larger than the second one. `1Gi` equals `1024Mi`.",
            &[A, B],
            Type::Integer,
            |call| {
                let order = read(call, "a")?.billionths.cmp(&read(call, "b")?.billionths);
                Ok(Value::from(sign(order)).into())
            },
        ),
        immediate(
            "add",
            "Returns the sum of two quantities, in the units of the first one: `quantity.add(\"1Gi\", \"512Mi\")` is `1536Mi`.",
            &[A, B],
            Type::Text,
            |call| combined(call, i128::checked_add),
        ),
        immediate(
            "subtract",
            "Returns the difference of two quantities, in the units of the first one.",
            &[A, B],
            Type::Text,
            |call| combined(call, i128::checked_sub),
        ),
        immediate(
            "multiply",
            "Multiplies a quantity by a number: `quantity.multiply(\"250m\", 3)` is `750m`. Rounded up to billionths.",
            &[A, required("by", Type::Number, "The factor.")],
            Type::Text,
            multiply,
        ),
    ],
};

/// A quantity, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    billionths: i128,
    /// Whether it is written in units of 1024.
    is_binary: bool,
}

pub(super) fn sign(order: Ordering) -> i64 {
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn read(call: &Call, name: &str) -> Result<Amount, Failure> {
    let value = call.value(name);
    let amount = match value {
        Value::String(text) => of_text(text),
        // Read as it would be written.
        Value::Number(number) => of_text(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    amount.ok_or_else(|| {
        let got = shown(value);
        format!("`{name}`: expected a quantity such as \"500m\" or \"2Gi\", got {got}").into()
    })
}

fn of_text(text: &str) -> Option<Amount> {
    /// Longer strings have no meaning.
    const BYTES_MAX: usize = 100;
    if text.len() > BYTES_MAX {
        return None;
    }
    let digits = |it: char| it.is_ascii_digit() || matches!(it, '.' | '+' | '-');
    let end = text.find(|it| !digits(it)).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let exponent = unit
        .strip_prefix(['e', 'E'])
        .and_then(|it| it.parse::<u32>().ok().map(i64::from).or_else(|| it.parse::<i64>().ok()));
    let (size, is_binary) = match (exponent, unit) {
        (Some(exponent), _) => return scientific(number, exponent),
        (None, unit) => match BINARY.iter().find(|(it, _)| *it == unit && !it.is_empty()) {
            Some((_, size)) => (*size, true),
            None => (DECIMAL.iter().find(|(it, _)| *it == unit)?.1, false),
        },
    };
    Some(Amount { billionths: scaled(number, size)?, is_binary })
}

/// Reads `1e3`: the exponent moves the point.
fn scientific(number: &str, exponent: i64) -> Option<Amount> {
    let exponent = i32::try_from(exponent).ok().filter(|it| (-9..=18).contains(it))?;
    let size = if exponent >= 0 {
        ONE.checked_mul(10_i128.checked_pow(exponent.unsigned_abs())?)?
    } else {
        ONE / 10_i128.checked_pow(exponent.unsigned_abs())?
    };
    Some(Amount { billionths: scaled(number, size)?, is_binary: false })
}

/// Returns a decimal number of units, in billionths; smaller fractions are rounded up, as in Kubernetes.
fn scaled(number: &str, size: i128) -> Option<i128> {
    /// More digits have no meaning.
    const DIGITS_MAX: usize = 30;
    let (is_negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty())
        || !is_number(whole)
        || !is_number(fraction)
        || digits.len() > DIGITS_MAX
    {
        return None;
    }
    let mut sum =
        if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.checked_mul(size)? };
    // Digit by digit: a fraction of a large unit would overflow at once.
    let (mut rest, mut is_rounded) = (size, false);
    for digit in fraction.bytes() {
        let digit = i128::from(digit - b'0');
        is_rounded |= digit != 0 && (rest * digit) % 10 != 0;
        sum = sum.checked_add(rest * digit / 10)?;
        is_rounded |= rest % 10 != 0 && digit != 0;
        rest /= 10;
    }
    let sum = sum.checked_add(i128::from(is_rounded))?;
    Some(if is_negative { -sum } else { sum })
}

fn number(amount: Amount) -> Datum {
    let (whole, rest) = (amount.billionths / ONE, amount.billionths % ONE);
    // Exact as long as a number can be.
    let text = if rest == 0 {
        whole.to_string()
    } else {
        let sign = if amount.billionths < 0 { "-" } else { "" };
        format!("{sign}{}.{:09}", whole.abs(), rest.abs())
    };
    Datum::of_number(text.parse().unwrap_or_default())
}

/// Formats a quantity in the largest unit that needs no fraction.
fn text(amount: Amount) -> Datum {
    let Amount { billionths, is_binary } = amount;
    let fits = |(_, size): &&(&str, i128)| billionths % size == 0;
    let binary = BINARY.iter().filter(|_| is_binary).find(fits);
    let unit = binary.or_else(|| DECIMAL.iter().find(fits));
    let written = match unit {
        _ if billionths == 0 => "0".to_owned(),
        Some((unit, size)) => format!("{}{unit}", billionths / size),
        // Cannot happen: every quantity is a multiple of a billionth.
        None => format!("{billionths}n"),
    };
    Value::from(written).into()
}

fn combined(call: &Call, combine: fn(i128, i128) -> Option<i128>) -> Outcome {
    let (a, b) = (read(call, "a")?, read(call, "b")?);
    let billionths = combine(a.billionths, b.billionths).ok_or("the result is too large")?;
    // Zero has no unit.
    let is_binary = if a.billionths == 0 { b.is_binary } else { a.is_binary };
    Ok(text(Amount { billionths, is_binary }))
}

fn multiply(call: &Call) -> Outcome {
    let amount = read(call, "a")?;
    let by = read(call, "by")?;
    let product = amount.billionths.checked_mul(by.billionths).ok_or("the result is too large")?;
    let rounded = product.div_euclid(ONE) + i128::from(product.rem_euclid(ONE) != 0);
    Ok(text(Amount { billionths: rounded, ..amount }))
}
