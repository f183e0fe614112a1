//! Values of scripts that cannot become JSON, told the same in both languages: where inside the value, and why.

use std::fmt;

use super::limits;
use crate::logic::text::size;

/// Deeper structures are refused: readers of JSON stop here too. A value that contains itself ends here.
pub(crate) const DEPTH_MAX: usize = 128;

/// A function in the place of data.
pub(crate) const FUNCTION: &str = "a function cannot be kept as JSON";
/// Bytes in the place of data.
pub(crate) const BYTES: &str =
    "bytes cannot be kept as JSON: make a string of them with base64.encode";
/// A value of the host that is no data.
pub(crate) const HOST_OBJECT: &str = "an object of the host cannot be kept as JSON";
/// A number that JSON does not know.
pub(crate) const NOT_FINITE: &str = "NaN and infinity are no JSON numbers";

/// Why a value cannot become JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// From the inside out: `.key` or `[1]`.
    path: Vec<String>,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq)]
enum Problem {
    Here(String),
    /// It does not end here.
    Endless(String),
    /// Of the value as a whole, which has at least so many bytes up to this place.
    TooLarge(Room, usize),
    /// The same of items and fields.
    TooManyItems(usize),
}

/// How large a value may be as JSON, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Of results, patches and memos.
    Result(usize),
    /// Of other values, which are texts to the host.
    Text(usize),
}

impl Room {
    /// The number of bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Room::Result(bytes) | Room::Text(bytes) => bytes,
        }
    }

    /// The error of a value that does not fit.
    pub(crate) fn exceeded(self, place: &str) -> String {
        match self {
            Room::Result(limit) => limits::too_large(place, limit),
            Room::Text(limit) => limits::too_large_as_text(place, limit),
        }
    }
}

impl Refused {
    /// Refuses the value at hand.
    pub(crate) fn because(problem: impl Into<String>) -> Self {
        Refused { path: Vec::new(), problem: Problem::Here(problem.into()) }
    }

    /// Refuses a value that has no end, or none near.
    pub(crate) fn endless(problem: impl Into<String>) -> Self {
        Refused { path: Vec::new(), problem: Problem::Endless(problem.into()) }
    }

    /// Refuses a value for its size: it has this many bytes up to the value at hand.
    pub(crate) fn too_large(room: Room, bytes: usize) -> Self {
        Refused { path: Vec::new(), problem: Problem::TooLarge(room, bytes) }
    }

    /// Refuses a value for the number of its items and fields, those inside included: it has this many up to the value at hand.
    pub(crate) fn too_many_items(count: usize) -> Self {
        Refused { path: Vec::new(), problem: Problem::TooManyItems(count) }
    }

    /// Refuses a value for its depth.
    pub(crate) fn too_deep() -> Self {
        Refused::endless(format!("nested deeper than {DEPTH_MAX} levels"))
    }

    /// Whether it is the size or the depth of the value, and not what is in it.
    pub(crate) fn is_bound(&self) -> bool {
        match &self.problem {
            Problem::Endless(_) | Problem::TooLarge(..) | Problem::TooManyItems(_) => true,
            Problem::Here(_) => false,
        }
    }

    /// The value around it has it in this place.
    pub(crate) fn under(mut self, segment: String) -> Self {
        self.path.push(segment);
        self
    }

    /// The message, with the path below this place.
    pub(crate) fn at(&self, place: &str) -> String {
        /// Enough to find the place; the path of an endless value is long.
        const SHOWN: usize = 8;
        let path: String = self.path.iter().rev().take(SHOWN).map(String::as_str).collect();
        let more = if self.path.len() > SHOWN { "…" } else { "" };
        match &self.problem {
            Problem::Here(problem) | Problem::Endless(problem) => {
                format!("{place}{path}{more}: {problem}")
            }
            Problem::TooLarge(room, bytes) => {
                let whole = room.exceeded(place);
                format!("{whole}: {} up to {place}{path}{more}", size::about(*bytes))
            }
            Problem::TooManyItems(count) => {
                let whole = limits::too_many_items(place, limits::ITEMS_MAX);
                format!("{whole}: {count} up to {place}{path}{more}")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at("the value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_says_where_it_became_so_and_how_large_it_is() {
        let under = |it: Refused| it.under(".x".into()).under("[3]".into()).under(".items".into());
        let large = under(Refused::too_large(Room::Result(1 << 20), 2_000_000));
        assert_eq!(
            large.at("memo.spec"),
            "memo.spec is larger than 1 MiB as JSON (settings.sandbox.result_size): 1.9 MiB up to memo.spec.items[3].x"
        );
        let many = under(Refused::too_many_items(100_001));
        assert_eq!(
            many.at("the result"),
            "the result would have more than 100000 items: 100001 up to the result.items[3].x"
        );
    }
}
