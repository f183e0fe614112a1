//! Values of scripts that cannot become JSON, told the same in both languages: where inside the value, and why.

use std::fmt;

/// Deeper structures are refused: readers of JSON stop here too. A value that contains itself ends here.
pub(crate) const DEPTH_MAX: usize = 128;

/// A function in the place of data.
pub(crate) const FUNCTION: &str = "a function cannot be kept as JSON";
/// A value of the host that is no data.
pub(crate) const HOST_OBJECT: &str = "an object of the host cannot be kept as JSON";
/// A number that JSON does not know.
pub(crate) const NOT_FINITE: &str = "NaN and infinity are no JSON numbers";

/// Why a value cannot become JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// From the inside out: `.key` or `[1]`.
    path: Vec<String>,
    problem: String,
}

impl Refused {
    /// Refuses the value at hand.
    pub(crate) fn because(problem: impl Into<String>) -> Self {
        Refused { path: Vec::new(), problem: problem.into() }
    }

    /// Refuses a value for its depth.
    pub(crate) fn too_deep() -> Self {
        Refused::because(format!("nested deeper than {DEPTH_MAX} levels"))
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
        format!("{place}{path}{more}: {}", self.problem)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at("the value"))
    }
}
