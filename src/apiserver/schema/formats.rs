//! The string formats that the real server checks, and the values that it accepts for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::civil::Date;

use crate::metadata::names;

/// The known formats of integers.
const INTEGERS: [&str; 4] = ["int32", "int64", "uint32", "uint64"];
const FLOATS: [&str; 2] = ["float", "double"];
/// The known formats of strings, without hyphens, which do not matter.
const KNOWN: [&str; 27] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "quantity",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Returns the format of a schema with this type (empty for none), unless the real server ignores it.
pub(super) fn relevant<'a>(kind: &str, format: &'a str) -> Option<&'a str> {
    let known = match kind {
        "" | "string" => KNOWN.contains(&normal(format).as_str()),
        "integer" => INTEGERS.contains(&format),
        "number" => FLOATS.contains(&format),
        _ => false,
    };
    known.then_some(format)
}

/// Accepts leading zeros, as Go did for a long time.
fn is_ipv4(text: &str) -> bool {
    let short = |it: &str| it.trim_start_matches('0').to_owned();
    let parts: Vec<String> = text.split('.').map(short).collect();
    let filled: Vec<&str> = parts.iter().map(|it| if it.is_empty() { "0" } else { it }).collect();
    !text.split('.').any(str::is_empty) && filled.join(".").parse::<Ipv4Addr>().is_ok()
}

/// Returns whether a string has a format. Every string has an unknown format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match normal(format).as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => is_hex_color(text),
        "hostname" => is_hostname(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => names::dns_subdomain(text).is_empty(),
        "k8sshortname" => names::dns_label(text).is_empty(),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb_color(text),
        "ssn" => is_ssn(text),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        _ => true,
    }
}

fn normal(format: &str) -> String {
    format.replace('-', "")
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && STANDARD.decode(text).is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    is_digits(bits) && bits.len() <= 3 && bits.parse::<u8>().is_ok_and(|it| it <= most)
}

/// Checks the prefixes and lengths of issuers, but not the check digit.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|it| digits.starts_with(it));
    match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    }
}

fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text
            .char_indices()
            .all(|(at, c)| if matches!(at, 4 | 7) { c == '-' } else { c.is_ascii_digit() });
    shape && text.parse::<Date>().is_ok()
}

/// Checks for RFC 3339 approximately: any separator before the fraction is accepted, and the offset is not checked.
fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['t', 'T']) else { return false };
    if !is_date(date) {
        return false;
    }
    let (Some(clock), Some(rest)) = (rest.get(..8), rest.get(8..)) else { return false };
    let mut parts = clock.split(':');
    let mut in_range =
        |most: &str| parts.next().is_some_and(|it| it.len() == 2 && is_digits(it) && it <= most);
    if !(in_range("23") && in_range("59") && in_range("59")) {
        return false;
    }
    // The fraction: one character of any kind, then digits.
    let mut chars = rest.chars();
    let fraction = chars.next().filter(|c| !matches!(c, 'z' | 'Z' | '+' | '-'));
    let zone = match fraction {
        Some(_) if chars.as_str().starts_with(|c: char| c.is_ascii_digit()) => {
            chars.as_str().trim_start_matches(|c: char| c.is_ascii_digit())
        }
        Some(_) => return false,
        None => rest,
    };
    is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    if matches!(text, "z" | "Z") {
        return true;
    }
    let Some(offset) = text.strip_prefix(['+', '-']) else { return false };
    offset.split_once(':').is_some_and(|(hours, minutes)| {
        hours.len() == 2 && minutes.len() == 2 && is_digits(hours) && is_digits(minutes)
    })
}

/// Accepts durations of Go (`1h30m`), and those in words (`2 weeks`).
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_spoken_duration(text)
}

pub(super) fn is_go_duration(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let amount = rest.strip_suffix(after).unwrap_or_default();
        let fits =
            amount.matches('.').count() <= 1 && amount.contains(|c: char| c.is_ascii_digit());
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"]
            .iter()
            .filter(|unit| after.starts_with(**unit))
            .max_by_key(|unit| unit.len());
        let (true, Some(unit)) = (fits, unit) else { return false };
        rest = after.strip_prefix(unit).unwrap_or_default();
    }
    !text.is_empty()
}

fn is_spoken_duration(text: &str) -> bool {
    const UNITS: [&str; 34] = [
        "ns",
        "nano",
        "nanosecond",
        "nanoseconds",
        "nanos",
        "us",
        "µs",
        "micro",
        "microsecond",
        "microseconds",
        "micros",
        "ms",
        "milli",
        "millisecond",
        "milliseconds",
        "millis",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "m",
        "min",
        "mins",
        "minute",
        "minutes",
        "h",
        "hr",
        "hour",
        "hours",
        "d",
        "day",
        "days",
        "w",
    ];
    let amount = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if amount.len() == text.len() {
        return false;
    }
    let unit = amount.trim_start().to_lowercase();
    UNITS.contains(&unit.as_str()) || matches!(unit.as_str(), "week" | "weeks" | "wk" | "wks")
}

/// Accepts an address, or a name with an address in angle brackets.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|it| it.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| {
                !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
            })
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || local.split('.').all(atom)) && domain.split('.').all(atom)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// Accepts one label, or several with a top-level domain of at least two letters.
fn is_hostname(text: &str) -> bool {
    let symbol = |c: char| c.is_ascii_alphanumeric() || (!c.is_ascii() && !c.is_whitespace());
    let label = |part: &str| {
        part.chars().count() <= 63
            && part.starts_with(symbol)
            && part.ends_with(symbol)
            && part.chars().all(|c| symbol(c) || c == '-')
    };
    if text.len() > 255 || !text.split('.').all(label) {
        return false;
    }
    match text.rsplit_once('.') {
        None => true,
        Some((_, top)) => {
            top.chars().count() >= 2
                && top.chars().all(|c| c.is_ascii_alphabetic() || !c.is_ascii())
        }
    }
}

fn isbn_digits(text: &str) -> Vec<u32> {
    let kept = text.chars().filter(|c| !matches!(c, ' ' | '-'));
    // `X` is the check digit 10; any other character makes the length or the sum wrong.
    kept.map(|c| if c == 'X' { 10 } else { c.to_digit(10).unwrap_or(100) }).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let (Some((last, first)), 10) = (digits.split_last(), digits.len()) else { return false };
    let sum: u32 = (1..).zip(&digits).map(|(weight, digit)| weight * digit).sum();
    first.iter().all(|it| *it < 10) && *last <= 10 && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let sum: u32 =
        digits.iter().zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    digits.len() == 13 && digits.iter().all(|it| *it < 10) && sum.is_multiple_of(10)
}

/// Accepts 6, 8 or 20 bytes, separated by `:` or `-`, or in pairs separated by dots.
fn is_mac(text: &str) -> bool {
    let parts = |separator: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|it| it.len() == digits && is_hex(it))
    };
    parts(':', 2, [6, 8, 20]) || parts('-', 2, [6, 8, 20]) || parts('.', 4, [3, 4, 10])
}

fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|it| it.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    parts.len() == 3
        && parts.iter().all(|it| {
            let plain = *it == "0" || !it.starts_with('0');
            plain && is_digits(it) && it.parse::<u8>().is_ok()
        })
}

fn is_ssn(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let separators: Vec<usize> =
        text.char_indices().filter(|(_, c)| matches!(c, '-' | ' ')).map(|(at, _)| at).collect();
    digits.len() == 9
        && is_digits(&digits)
        && matches!(separators.as_slice(), [] | [3 | 5] | [3, 6])
}

/// Accepts what Go accepts as the target of a request: an absolute URI, or a path from the root.
fn is_uri(text: &str) -> bool {
    if text.contains(|c: char| c.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') {
        return escapes_fit(text);
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !scheme_fits {
        return false;
    }
    let Some(after) = rest.strip_prefix("//") else { return true };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    escapes_fit(path) && host_fits(host)
}

fn host_fits(host: &str) -> bool {
    let port_fits = |port: &str| {
        port.is_empty()
            || port.strip_prefix(':').is_some_and(|it| it.chars().all(|c| c.is_ascii_digit()))
    };
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(_, port)| port_fits(port));
    }
    let (name, port) =
        host.find(':').and_then(|at| host.split_at_checked(at)).unwrap_or((host, ""));
    port_fits(port) && !name.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}'])
}

/// Checks that every `%` is followed by two hexadecimal digits.
fn escapes_fit(text: &str) -> bool {
    text.split('%').skip(1).all(|it| it.get(..2).is_some_and(is_hex))
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let hyphens = text.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at);
    // Each of the four hyphens may be left out.
    let mut missing = [8, 12, 16, 20].into_iter();
    let placed = hyphens.enumerate().all(|(before, at)| missing.any(|it| it + before == at));
    let variant = digits.chars().nth(16).is_some_and(|c| "89abAB".contains(c));
    digits.len() == 32
        && is_hex(&digits)
        && placed
        && version.is_none_or(|it| digits.chars().nth(12) == Some(it) && (it == '3' || variant))
}
