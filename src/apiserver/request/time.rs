//! Times of objects: RFC 3339, and Go's words for what is not.

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
/// The parts of the layout with their lengths, the names of ranges, and the ranges themselves.
const PARTS: [(&str, usize, &str, u32, u32); 11] = [
    ("2006", 4, "", 0, 9999),
    ("-", 1, "", 0, 0),
    ("01", 2, "month", 1, 12),
    ("-", 1, "", 0, 0),
    ("02", 2, "day", 1, 31),
    ("T", 1, "", 0, 0),
    ("15", 2, "hour", 0, 23),
    (":", 1, "", 0, 0),
    ("04", 2, "minute", 0, 59),
    (":", 1, "", 0, 0),
    ("05", 2, "second", 0, 59),
];

/// Whether a text is a time; the error as Go has it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let cannot = |rest: &str, part: &str| {
        format!("parsing time {text:?} as \"{LAYOUT}\": cannot parse {rest:?} as \"{part}\"")
    };
    let mut rest = text;
    let mut numbers = [0_u32; 11];
    for (number, (part, length, range, least, most)) in numbers.iter_mut().zip(PARTS) {
        let Some((head, tail)) = rest.split_at_checked(length) else {
            return Err(cannot(rest, part));
        };
        if length == 1 {
            if head != part {
                return Err(cannot(rest, part));
            }
        } else {
            let digits = head.bytes().all(|it| it.is_ascii_digit());
            let value = head.parse().ok().filter(|_| digits).ok_or_else(|| cannot(rest, part))?;
            if !(least..=most).contains(&value) {
                return Err(format!("parsing time {text:?}: {range} out of range"));
            }
            *number = value;
        }
        rest = tail;
    }
    let [year, _, month, _, day, ..] = numbers;
    if day > days(year, month) {
        return Err(format!("parsing time {text:?}: day out of range"));
    }
    zone(fraction(rest))
        .map_err(|rest| cannot(rest, "Z07:00"))?
        .map_or(Ok(()), |extra| Err(format!("parsing time {text:?}: extra text: {extra:?}")))
}

/// Passes parts of a second.
fn fraction(rest: &str) -> &str {
    let Some(digits) = rest.strip_prefix('.') else { return rest };
    let tail = digits.trim_start_matches(|it: char| it.is_ascii_digit());
    if tail.len() == digits.len() { rest } else { tail }
}

/// What is left behind the zone; the error is where no zone is.
fn zone(rest: &str) -> Result<Option<&str>, &str> {
    let left = |tail: &'_ str| Some(tail.len()).filter(|it| *it > 0);
    if let Some(tail) = rest.strip_prefix('Z') {
        return Ok(left(tail).map(|_| tail));
    }
    let Some((head, tail)) = rest.split_at_checked(6) else { return Err(rest) };
    let shape = head.bytes().zip("+00:00".bytes()).all(|(it, like)| match like {
        b'+' => matches!(it, b'+' | b'-'),
        b'0' => it.is_ascii_digit(),
        other => it == other,
    });
    if shape { Ok(left(tail).map(|_| tail)) } else { Err(rest) }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time in UTC as Go prints it; `None` if it is none.
pub(crate) fn go_print(text: &str) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string())
}
