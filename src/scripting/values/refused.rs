//! Values of scripts that cannot become JSON: where inside the value the problem is, and why, in the same words for both languages.

use std::fmt;

use super::limits;
use crate::logic::{handlers::handler::Kind, object::measure, text::size};

/// Maximum depth of a structure. JSON parsers have this limit, too. A value that contains itself exceeds it.
pub(crate) const DEPTH_MAX: usize = 128;

/// The error of a function in place of data.
pub(crate) const FUNCTION: &str = "a function cannot be stored as JSON";
/// The error of bytes in place of data.
pub(crate) const BYTES: &str = "bytes cannot be stored as JSON: encode them with base64.encode";
/// The error of a value of the host that is not data.
pub(crate) const HOST_OBJECT: &str = "an object of the host cannot be stored as JSON";
/// The error of a number that JSON cannot represent.
pub(crate) const NOT_FINITE: &str = "NaN and infinity are not valid in JSON";

/// Why a value cannot become JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// From the inside out: `.key` or `[1]`.
    path: Vec<String>,
    problem: RefusedProblem,
}

#[derive(Clone, Debug, PartialEq)]
enum RefusedProblem {
    Here(String),
    /// The value is too deep or contains itself.
    Endless(String),
    /// The value as a whole is too large: it has at least this many bytes up to this place.
    TooLarge(SizeLimit, usize),
    /// The value has too many items and fields: at least this many up to this place.
    TooManyItems(SizeLimit, usize),
}

/// Maximum size of a value: its bytes as JSON, and its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeLimit {
    /// For results and patches, which the operator copies, compares and frees on its own thread.
    Result(usize),
    /// For memos, for the children of a reconcile handler, and for converted objects.
    Kept(usize),
    /// For the results of probes, which share one response.
    Probe,
    /// For other values, which are strings to the host.
    Text(usize),
}

/// Maximum bytes of the result of a probe.
const PROBE_BYTES_MAX: usize = 16 << 10;

impl SizeLimit {
    /// Returns the limit of what a function of such a handler returns; `None` is a function without a call.
    ///
    /// A converted object may be as large as the object, and a reconcile handler may have thousands of children. Fakes of tests
    /// return whole responses.
    pub(crate) fn of_result(kind: Option<Kind>, bytes: usize) -> Self {
        if kind == Some(Kind::Probe) {
            return SizeLimit::Probe;
        }
        let is_large = matches!(kind, Some(Kind::Convert | Kind::Reconcile | Kind::Test));
        if is_large { SizeLimit::Kept(bytes) } else { SizeLimit::Result(bytes) }
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            SizeLimit::Result(bytes) | SizeLimit::Kept(bytes) | SizeLimit::Text(bytes) => bytes,
            SizeLimit::Probe => PROBE_BYTES_MAX,
        }
    }

    /// Returns the number of items and fields, nested ones included.
    pub(crate) fn items(self) -> usize {
        match self {
            SizeLimit::Result(_) | SizeLimit::Probe => measure::ITEMS_MAX,
            SizeLimit::Kept(_) | SizeLimit::Text(_) => limits::ITEMS_MAX,
        }
    }

    /// Returns what to do about a value with too many items.
    fn hint(self) -> String {
        match self {
            SizeLimit::Result(_) => format!("; {}", measure::ADVICE),
            SizeLimit::Kept(_) | SizeLimit::Probe | SizeLimit::Text(_) => String::new(),
        }
    }

    /// Returns the error of a value that does not fit.
    pub(crate) fn exceeded(self, place: &str) -> String {
        match self {
            SizeLimit::Result(limit) | SizeLimit::Kept(limit) => limits::too_large(place, limit),
            SizeLimit::Probe => limits::too_large_of_probe(place, PROBE_BYTES_MAX),
            SizeLimit::Text(limit) => limits::too_large_as_text(place, limit),
        }
    }
}

impl Refused {
    /// Refuses the current value.
    pub(crate) fn because(problem: impl Into<String>) -> Self {
        Refused { path: Vec::new(), problem: RefusedProblem::Here(problem.into()) }
    }

    /// Refuses a value that contains itself, or takes too long to read.
    pub(crate) fn endless(problem: impl Into<String>) -> Self {
        Refused { path: Vec::new(), problem: RefusedProblem::Endless(problem.into()) }
    }

    /// Refuses a value for its size: it has this many bytes up to the current one.
    pub(crate) fn too_large(room: SizeLimit, bytes: usize) -> Self {
        Refused { path: Vec::new(), problem: RefusedProblem::TooLarge(room, bytes) }
    }

    /// Refuses a value for the number of its items and fields, nested ones included: it has this many up to the current one.
    pub(crate) fn too_many_items(room: SizeLimit, count: usize) -> Self {
        Refused { path: Vec::new(), problem: RefusedProblem::TooManyItems(room, count) }
    }

    /// Refuses a value for its depth.
    pub(crate) fn too_deep() -> Self {
        Refused::endless(format!("nested deeper than {DEPTH_MAX} levels"))
    }

    /// Returns whether the size or the depth of the value is the problem, not its content.
    pub(crate) fn is_bound(&self) -> bool {
        match &self.problem {
            RefusedProblem::Endless(_)
            | RefusedProblem::TooLarge(..)
            | RefusedProblem::TooManyItems(..) => true,
            RefusedProblem::Here(_) => false,
        }
    }

    /// Adds the place in the surrounding value.
    pub(crate) fn under(mut self, segment: String) -> Self {
        self.path.push(segment);
        self
    }

    /// Returns the message, with the path below this place.
    pub(crate) fn at(&self, place: &str) -> String {
        /// Enough to find the place; the path of an endless value is long.
        const SHOWN: usize = 8;
        let path: String = self.path.iter().rev().take(SHOWN).map(String::as_str).collect();
        let more = if self.path.len() > SHOWN { "…" } else { "" };
        match &self.problem {
            RefusedProblem::Here(problem) | RefusedProblem::Endless(problem) => {
                format!("{place}{path}{more}: {problem}")
            }
            RefusedProblem::TooLarge(room, bytes) => {
                let whole = room.exceeded(place);
                format!("{whole}: {} up to {place}{path}{more}", size::about(*bytes))
            }
            RefusedProblem::TooManyItems(room, count) => {
                let whole = limits::too_many_items(place, room.items());
                format!("{whole}: {count} up to {place}{path}{more}{}", room.hint())
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
    fn the_error_of_a_large_value_names_its_size_and_the_place() {
        let under = |it: Refused| it.under(".x".into()).under("[3]".into()).under(".items".into());
        let large = under(Refused::too_large(SizeLimit::Result(1 << 20), 2_000_000));
        assert_eq!(
            large.at("memo.spec"),
            "memo.spec is larger than 1 MiB as JSON (settings.sandbox.result_size): 1.9 MiB up to memo.spec.items[3].x"
        );
        let many = under(Refused::too_many_items(SizeLimit::Kept(1), 100_001));
        assert_eq!(
            many.at("memo.a"),
            "memo.a would have more than 100000 items: 100001 up to memo.a.items[3].x"
        );
        let many = under(Refused::too_many_items(SizeLimit::Result(1), 20_001));
        assert_eq!(
            many.at("the result"),
            "the result would have more than 20000 items: 20001 up to the result.items[3].x; keep them in a separate object, such as a ConfigMap"
        );
    }

    #[test]
    fn results_of_probes_are_small() {
        let limit = SizeLimit::of_result(Some(Kind::Probe), 1 << 20);
        assert_eq!(limit.bytes(), 16 << 10);
        let error = Refused::too_large(limit, 20_000).at("the result");
        let expected =
            "the result of a probe is larger than 16 KiB as JSON: 19.5 KiB up to the result";
        assert_eq!(error, expected);
    }

    #[test]
    fn results_that_may_be_as_large_as_their_input_have_the_higher_limit_of_items() {
        let items = |kind| SizeLimit::of_result(Some(kind), 1).items();
        assert_eq!([Kind::Create, Kind::Index, Kind::Mutate, Kind::Timer].map(items), [20_000; 4]);
        assert_eq!([Kind::Convert, Kind::Reconcile, Kind::Test].map(items), [100_000; 3]);
    }
}
