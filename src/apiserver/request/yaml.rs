//! YAML: parsing of one document that represents a JSON value, with limits for the expansion of aliases; and writing.

use serde_json::Value;

use crate::request::json;

/// Limit of the depth of lists and maps. The parser considers this depth safe: it recurses with large stack frames.
const DEPTH_MAX: usize = 64;
/// Limit of values that aliases expand to, in total. The real server refuses beyond a ratio, which is never reached below this.
const REPLAYED_MAX: usize = 400_000;
/// Limit of parser events. A body of 3 MiB with one character per value has fewer.
const EVENTS_MAX: usize = 4_000_000;

/// Parses the first document; an empty text is `null`. The error is the text after `yaml: `.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(bytes);
    if text.trim().is_empty() && !text.contains('\t') {
        return Ok(Value::Null);
    }
    if flow_depth(&text) > DEPTH_MAX {
        return Err("exceeded max depth of 10000".into());
    }
    let documents: Result<Vec<Value>, _> =
        serde_saphyr::from_str_multiple_with_options(&text, options());
    match documents {
        Ok(documents) => {
            let mut value = documents.into_iter().next().unwrap_or_default();
            if json::depth(&value) > json::DEPTH_MAX {
                return Err("exceeded max depth of 10000".into());
            }
            json::settle_numbers(&mut value);
            Ok(value)
        }
        Err(error) => Err(words(&error)),
    }
}

/// Writes a document, its fields sorted by name.
pub(crate) fn write(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    // Long lines are not folded: some readers join them differently.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    // Only the depth could make it fail, and stored objects are not that deep.
    serde_saphyr::to_string_with_options(&sorted, options).unwrap_or_default()
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED_MAX,
        },
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_events: EVENTS_MAX,
            max_nodes: EVENTS_MAX,
        },
    }
}

/// Returns the error in one line, with the words of the real server where clients might look for them.
fn words(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let lower = text.to_lowercase();
    if lower.contains("alias") || lower.contains("replay") {
        return "document contains excessive aliasing".into();
    }
    if lower.contains("depth") || lower.contains("nest") || lower.contains("recursion") {
        return "exceeded max depth of 10000".into();
    }
    match (error.location(), text.lines().next()) {
        (Some(place), Some(first)) => format!("line {}: {first}", place.line()),
        (None, Some(first)) => first.to_owned(),
        (_, None) => "cannot be read".into(),
    }
}

/// Returns the maximum depth of brackets, including those in strings and comments: a cheap limit before a recursive parser.
fn flow_depth(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
