//! Formats numbers, intervals and strings as Kopf does in log lines and stored messages.
//!
//! Operators are compared by their logs and by messages stored on objects, so the format is part of the contract.

#[cfg(test)]
mod tests;

use std::time::Duration;

const SECONDS_PER_DAY: u64 = 86_400;

/// Formats seconds as a number: `60`, `1.5`.
pub fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        duration.as_secs().to_string()
    } else {
        duration.as_secs_f64().to_string()
    }
}

/// Formats seconds as a number with a fraction in all cases: `10.0`, `9.87`.
pub fn float(duration: Duration) -> String {
    format!("{:?}", duration.as_secs_f64())
}

/// Formats an interval like a clock: `0:01:41`, `1 day, 0:00:00.500000`. Digits below microseconds are cut.
pub fn interval(duration: Duration) -> String {
    let (days, rest) = (duration.as_secs() / SECONDS_PER_DAY, duration.as_secs() % SECONDS_PER_DAY);
    let days = match days {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        _ => format!("{days} days, "),
    };
    let fraction = match duration.subsec_micros() {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    format!("{days}{}:{:02}:{:02}{fraction}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Formats a string in quotes: single ones unless the string has single but no double quotes.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut result = String::with_capacity(text.len() + 2);
    result.push(quote);
    for symbol in text.chars() {
        match symbol {
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            _ if symbol == quote => result.extend(['\\', quote]),
            _ => result.push(symbol),
        }
    }
    result.push(quote);
    result
}

/// Formats a list of strings: `['a', 'b']`.
pub fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<_> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}
