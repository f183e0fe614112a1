//! Reads label selectors as users write them.

use serde_json::{Value, json};

/// Returns a label selector such as `app=scripts,tier in (a, b),!old` as expressions.
pub(super) fn expressions(labels: &str) -> Vec<Value> {
    let mut parts: Vec<String> = vec![String::new()];
    let mut is_inside = false;
    for symbol in labels.chars() {
        is_inside = (is_inside || symbol == '(') && symbol != ')';
        match parts.last_mut() {
            Some(part) if symbol != ',' || is_inside => part.push(symbol),
            Some(_) | None => parts.push(String::new()),
        }
    }
    parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).map(expression).collect()
}

fn expression(part: &str) -> Value {
    let of = |key: &str, operator: &str, values: &str| {
        let values = values.trim().trim_start_matches('(').trim_end_matches(')').split(',');
        let values: Vec<&str> = values.map(str::trim).collect();
        json!({ "key": key.trim(), "operator": operator, "values": values })
    };
    for (sign, operator) in
        [(" notin ", "NotIn"), (" in ", "In"), ("!=", "NotIn"), ("==", "In"), ("=", "In")]
    {
        if let Some((key, values)) = part.split_once(sign) {
            return of(key, operator, values);
        }
    }
    match part.strip_prefix('!') {
        Some(key) => json!({ "key": key.trim(), "operator": "DoesNotExist" }),
        None => json!({ "key": part, "operator": "Exists" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_become_expressions() {
        let found = expressions("app=scripts, tier in (a, b),zone notin (c),x!=y,z==1,!old,new");
        let expected = [
            json!({ "key": "app", "operator": "In", "values": ["scripts"] }),
            json!({ "key": "tier", "operator": "In", "values": ["a", "b"] }),
            json!({ "key": "zone", "operator": "NotIn", "values": ["c"] }),
            json!({ "key": "x", "operator": "NotIn", "values": ["y"] }),
            json!({ "key": "z", "operator": "In", "values": ["1"] }),
            json!({ "key": "old", "operator": "DoesNotExist" }),
            json!({ "key": "new", "operator": "Exists" }),
        ];
        assert_eq!(found, expected);
    }
}
