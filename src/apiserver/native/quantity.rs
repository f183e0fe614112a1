//! Quantities such as `500m` or `1Gi`: parsing, comparison, and the canonical form of the real server.

use std::cmp::Ordering;

/// A number with nine decimal places, and the family of suffixes in which it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nano: i128,
    family: QuantityFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    Decimal,
    Binary,
    Exponent,
}

const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
/// The number one, in nanos.
const ONE: i128 = 1_000_000_000;
/// The maximum; greater amounts are cut to it.
const MAX: i128 = i64::MAX as i128 * ONE;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Limit of digits; more of them do not change an amount.
const DIGITS: usize = 28;

impl Quantity {
    pub(crate) const ZERO: Self = Self { nano: 0, family: QuantityFormat::Decimal };
    pub(crate) const ONE: Self = Self { nano: ONE, family: QuantityFormat::Decimal };

    /// Parses a quantity. The errors are those of the real server.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
        // Only one point is accepted; what follows it would be a suffix.
        let whole = bare.bytes().take_while(u8::is_ascii_digit).count();
        let rest = bare.bytes().skip(whole);
        let point = usize::from(rest.clone().next() == Some(b'.'));
        let digits = whole
            + point
            + rest.skip(point).take_while(|it| point > 0 && it.is_ascii_digit()).count();
        let (number, suffix) = bare.split_at_checked(digits).ok_or(WRONG)?;
        if number.is_empty() || !well_formed(suffix) {
            return Err(WRONG);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(WRONG_NUMBER);
        }
        let (family, factor, exponent) = read_suffix(suffix).ok_or(WRONG_SUFFIX)?;
        let amount = amount(whole, fraction, factor, exponent).min(MAX);
        Ok(Self { nano: if text.starts_with('-') { -amount } else { amount }, family })
    }

    /// Returns the shortest exact form, which the real server stores.
    pub(crate) fn canonical(self) -> String {
        let Self { nano, family } = self;
        if nano == 0 {
            return "0".into();
        }
        if family == QuantityFormat::Binary && nano.abs() >= 1024 * ONE && nano % ONE == 0 {
            let mut whole = nano / ONE;
            let mut suffix = "";
            for next in BINARY {
                if whole % 1024 != 0 {
                    break;
                }
                whole /= 1024;
                suffix = next;
            }
            return format!("{whole}{suffix}");
        }
        let mut mantissa = nano;
        let mut exponent = -9;
        while mantissa % 1000 == 0 && exponent < 18 {
            mantissa /= 1000;
            exponent += 3;
        }
        if family == QuantityFormat::Exponent {
            return if exponent == 0 {
                mantissa.to_string()
            } else {
                format!("{mantissa}e{exponent}")
            };
        }
        let suffix = DECIMAL.iter().find(|it| it.1 == exponent).map_or("", |it| it.0);
        format!("{mantissa}{suffix}")
    }

    /// Rounds up to a thousandth: the finest amount for resources of containers.
    pub(crate) fn to_milli(self) -> Self {
        let rest = self.nano.rem_euclid(1_000_000);
        let up = if rest == 0 { 0 } else { 1_000_000 - rest };
        Self { nano: self.nano + up, ..self }
    }

    pub(crate) fn negative(self) -> bool {
        self.nano < 0
    }

    pub(crate) fn zero(self) -> bool {
        self.nano == 0
    }

    /// Returns whether it is an integer.
    pub(crate) fn whole(self) -> bool {
        self.nano % ONE == 0
    }

    /// Creates a quantity from an integer.
    pub(crate) fn of(count: usize) -> Self {
        Self {
            nano: i128::try_from(count).unwrap_or(i128::MAX / ONE).saturating_mul(ONE),
            family: QuantityFormat::Decimal,
        }
    }

    /// Adds two quantities. The result has the suffixes of the first one that is not zero.
    pub(crate) fn plus(self, other: Self) -> Self {
        let family = if self.zero() { other.family } else { self.family };
        Self { nano: self.nano.saturating_add(other.nano), family }
    }

    pub(crate) fn larger(self, other: Self) -> Self {
        if self.compare(other).is_lt() { other } else { self }
    }

    /// Returns this quantity divided by another one.
    #[expect(clippy::cast_precision_loss, reason = "a ratio is a float")]
    pub(crate) fn ratio(self, other: Self) -> f64 {
        self.nano as f64 / other.nano as f64
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// Returns whether a suffix has the right characters: letters, then a number with a sign.
fn well_formed(suffix: &str) -> bool {
    let number = suffix.trim_start_matches(|it| "eEinumkKMGTP".contains(it));
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    number.bytes().all(|it| it.is_ascii_digit())
}

/// Parses a suffix: its family, a factor, and an exponent of ten.
fn read_suffix(suffix: &str) -> Option<(QuantityFormat, i128, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|it| it.0 == suffix) {
        return Some((QuantityFormat::Decimal, 1, *exponent));
    }
    let binary = BINARY.iter().zip(1_u32..).find(|it| *it.0 == suffix);
    if let Some((_, power)) = binary {
        return Some((QuantityFormat::Binary, 1024_i128.checked_pow(power)?, 0));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((QuantityFormat::Exponent, 1, exponent))
}

/// Returns the amount in nanos, rounded up.
fn amount(whole: &str, fraction: &str, factor: i128, exponent: i32) -> i128 {
    let whole = whole.trim_start_matches('0');
    if whole.len() > DIGITS {
        return MAX;
    }
    let kept =
        fraction.get(..DIGITS.min(fraction.len()).min(DIGITS - whole.len())).unwrap_or_default();
    let lost =
        fraction.len() > kept.len() && fraction.bytes().skip(kept.len()).any(|it| it != b'0');
    let digits = format!("0{whole}{kept}").parse::<i128>().unwrap_or(MAX);
    let Some(product) = digits.checked_mul(factor) else { return MAX };
    let places = i32::try_from(kept.len()).unwrap_or(i32::MAX);
    let shift = exponent.saturating_add(9).saturating_sub(places);
    let Some(power) = 10_i128.checked_pow(shift.unsigned_abs()) else {
        // Far beyond all limits: zero, the maximum or the minimum.
        return if product == 0 && !lost {
            0
        } else if shift > 0 {
            MAX
        } else {
            1
        };
    };
    if shift >= 0 {
        return product.checked_mul(power).unwrap_or(MAX);
    }
    let up = i128::from(product % power != 0 || lost);
    product / power + up
}
