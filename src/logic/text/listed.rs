//! Lists of names in one line.

use std::fmt::Display;

/// Joins the first `max` items, and counts the others: `a, b, and 3 more`.
pub fn listed(items: impl ExactSizeIterator<Item: Display>, max: usize) -> String {
    let more = items.len().saturating_sub(max);
    let mut listed: Vec<_> = items.take(max).map(|it| it.to_string()).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn the_rest_is_counted() {
        assert_eq!(listed([""; 0].iter(), 2), "");
        assert_eq!(listed(["a", "b"].iter(), 2), "a, b");
        assert_eq!(listed(["a", "b", "c", "d"].iter(), 2), "a, b, and 2 more");
    }
}
