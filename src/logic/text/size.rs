//! Sizes in bytes as users write them: a number, or one with a binary unit as in Kubernetes.

use serde_json::Value;

/// The accepted forms, for messages.
pub const EXPECTED: &str = "a number of bytes or a size such as \"64Mi\"";

/// The largest unit comes first, to keep the output short.
const UNITS: [(&str, u64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

/// Reads a size; `None` if it is invalid. `64MiB` is `64Mi`.
pub fn parse(value: &Value) -> Option<usize> {
    let bytes = match value {
        Value::Number(it) => it.as_f64()?,
        Value::String(text) => {
            let text = text.trim();
            let text = text.strip_suffix('B').unwrap_or(text);
            let split = |(unit, size): &(&str, u64)| Some((text.strip_suffix(unit)?, *size));
            let (number, size) = UNITS.iter().find_map(split)?;
            number.trim().parse::<f64>().ok()? * f64::from(u32::try_from(size).ok()?)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    // A float without a fraction prints as an integer, and parses unless it is out of range.
    (bytes >= 0.0 && bytes.fract() == 0.0).then(|| format!("{bytes:.0}").parse().ok())?
}

/// Formats a size for messages: `64 MiB`, or the exact number of bytes if it is not a multiple of a unit.
pub fn shown(bytes: usize) -> String {
    let exact = |(_, size): &&(&str, u64)| {
        usize::try_from(*size).is_ok_and(|size| bytes >= size && bytes.is_multiple_of(size))
    };
    match UNITS.iter().find(exact) {
        Some((unit, size)) => format!("{} {unit}B", bytes as u64 / size),
        None => format!("{bytes} bytes"),
    }
}

/// Formats a size that was measured: with one decimal place from 1 KiB on.
pub fn about(bytes: usize) -> String {
    let unit = |size: usize, name: &str| {
        let (whole, tenth) = (bytes / size, bytes % size * 10 / size);
        (bytes >= size).then(|| format!("{whole}.{tenth} {name}"))
    };
    unit(1 << 20, "MiB")
        .or_else(|| unit(1 << 10, "KiB"))
        .unwrap_or_else(|| format!("{bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{parse, shown};

    #[test]
    fn numbers_and_units_are_read_and_invalid_text_is_not() {
        for (value, expected) in [
            (json!(0), 0),
            (json!(4096.0), 4096),
            (json!("64Mi"), 64 << 20),
            (json!(" 64 MiB "), 64 << 20),
            (json!("1.5Ki"), 1536),
            (json!("2Gi"), 2 << 30),
        ] {
            assert_eq!(parse(&value), Some(expected), "{value}");
        }
        for value in [json!(-1), json!(1.5), json!("64"), json!("Mi"), json!("64M"), json!(true)] {
            assert_eq!(parse(&value), None, "{value}");
        }
    }

    #[test]
    fn a_size_is_shown_in_the_largest_exact_unit() {
        let texts = [64 << 20, 1 << 10, 1536, 3 << 30].map(shown);
        assert_eq!(texts, ["64 MiB", "1 KiB", "1536 bytes", "3 GiB"]);
    }
}
