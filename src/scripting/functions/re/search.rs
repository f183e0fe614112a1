//! Searches that can be interrupted.
//!
//! A short string is searched at once. A long one is searched by lazy automata, byte by byte and with checks of the time: a hostile
//! pattern can make each byte cost some hundred nanoseconds, which is a second for megabytes. `threads.rs` searches what the
//! automata cannot handle, and the groups within a long match.

use regex_automata::{
    Anchored, Input, Match, MatchError, PatternID, Span,
    hybrid::{LazyStateID, dfa::Cache, dfa::DFA, regex},
    util::iter::Searcher,
};

use super::{
    pattern::{Pattern, Stepwise},
    threads::{self, Groups, Haystack},
};
use crate::scripting::functions::{outcome::Failure, pace};

/// Maximum bytes of a string, times the size of the pattern, that are searched at once: some milliseconds.
const AT_ONCE: usize = 1 << 24;
/// Maximum bytes of a match, times the size of the pattern and its groups, in which groups are searched at once: some milliseconds.
const GROUPS_AT_ONCE: usize = 1 << 27;

/// A search through a string, from one match to the next.
pub(super) struct Search<'a> {
    pattern: &'a Pattern,
    text: &'a str,
    places: Searcher<'a>,
    steps: Option<Steps<'a>>,
}

/// Why a search stops.
enum Stop {
    /// The call must end.
    Failed(Failure),
    /// The automata cannot continue.
    Lost,
}

/// A search step by step.
struct Steps<'a> {
    stepwise: &'a Stepwise,
    cache: regex::Cache,
    /// The number of bytes between two checks of the time.
    stride: usize,
}

impl<'a> Search<'a> {
    /// Creates a search from the start of the string.
    pub(super) fn new(pattern: &'a Pattern, text: &'a str) -> Result<Self, Failure> {
        if text.len().saturating_mul(pattern.size) > AT_ONCE {
            return Search::step_by_step(pattern, text);
        }
        Ok(Search { pattern, text, places: Searcher::new(Input::new(text)), steps: None })
    }

    /// Creates a search as for long strings.
    pub(super) fn step_by_step(pattern: &'a Pattern, text: &'a str) -> Result<Self, Failure> {
        let steps = Some(Steps::new(pattern)?);
        Ok(Search { pattern, text, places: Searcher::new(Input::new(text)), steps })
    }

    /// Returns whether there is a match.
    pub(super) fn tests(mut self) -> Result<bool, Failure> {
        let input = Input::new(self.text).earliest(true);
        match &mut self.steps {
            None => Ok(self.pattern.whole.is_match(input)),
            Some(steps) => steps.is_match(&input),
        }
    }

    /// Returns the next match.
    pub(super) fn next(&mut self) -> Result<Option<Span>, Failure> {
        pace::step()?;
        let (whole, steps, mut failed) = (&self.pattern.whole, &mut self.steps, None);
        let found = self.places.try_advance(|input| match steps {
            None => Ok(whole.search(input)),
            Some(steps) => steps.find(input).map_err(|failure| {
                failed = Some(failure);
                MatchError::gave_up(input.start())
            }),
        });
        match found {
            Ok(found) => Ok(found.map(|it| it.span())),
            Err(problem) => Err(failed.unwrap_or_else(|| problem.to_string().into())),
        }
    }

    /// Returns the whole match and its groups.
    pub(super) fn groups(&self, found: Span) -> Result<Groups, Failure> {
        let Pattern { whole, size, .. } = self.pattern;
        let groups = whole.captures_len();
        let work = found.len().saturating_mul(*size).saturating_mul(groups);
        if work > GROUPS_AT_ONCE {
            let nfa = &self.pattern.stepwise()?.nfa;
            let place = Haystack { text: self.text.as_bytes(), span: found, is_anchored: true };
            return Ok(threads::search(nfa, place, true)?.unwrap_or_default());
        }
        let mut caught = whole.create_captures();
        let input = Input::new(self.text).span(found).anchored(Anchored::Yes);
        whole.search_captures(&input, &mut caught);
        Ok(caught.iter().collect())
    }
}

impl<'a> Steps<'a> {
    fn new(pattern: &'a Pattern) -> Result<Self, Failure> {
        let stepwise = pattern.stepwise()?;
        // A step of the largest patterns takes a tenth of a millisecond.
        let stride = ((1 << 22) / pattern.size).clamp(16, 1024);
        Ok(Steps { stepwise, cache: stepwise.automata.create_cache(), stride })
    }

    fn is_match(&mut self, input: &Input<'_>) -> Result<bool, Failure> {
        match self.end(input) {
            Ok(end) => Ok(end.is_some()),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Lost) => Ok(self.find_slowly(input)?.is_some()),
        }
    }

    /// Returns the first match.
    fn find(&mut self, input: &Input<'_>) -> Result<Option<Match>, Failure> {
        let mut input = input.clone();
        while !input.is_done() {
            let found = match self.find_quickly(&input) {
                Ok(found) => found,
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Lost) => self.find_slowly(&input)?,
            };
            let Some(found) = found else { return Ok(None) };
            let byte = input.haystack().get(found.start);
            // There are no matches within a character.
            if found.is_empty() && byte.is_some_and(|it| it & 0b1100_0000 == 0b1000_0000) {
                input.set_start(input.start() + 1);
                continue;
            }
            return Ok(Some(Match::new(PatternID::ZERO, found)));
        }
        Ok(None)
    }

    fn find_quickly(&mut self, input: &Input<'_>) -> Result<Option<Span>, Stop> {
        let Some(end) = self.end(input)? else { return Ok(None) };
        let start = self.start(input.clone().span(input.start()..end))?;
        Ok(Some(Span::from(start..end)))
    }

    fn find_slowly(&self, input: &Input<'_>) -> Result<Option<Span>, Failure> {
        let place = Haystack { text: input.haystack(), span: input.get_span(), is_anchored: false };
        let found = threads::search(&self.stepwise.nfa, place, false)?;
        Ok(found.and_then(|it| it.first().copied().flatten()))
    }

    /// Returns the end of the first match.
    fn end(&mut self, input: &Input<'_>) -> Result<Option<usize>, Stop> {
        let (dfa, cache) = (self.stepwise.automata.forward(), self.cache.as_parts_mut().0);
        let mut state = dfa.start_state_forward(cache, input).map_err(|_lost| Stop::Lost)?;
        let (text, mut end) = (input.haystack(), None);
        let bytes = text.get(input.get_range()).unwrap_or_default();
        for (at, byte) in (input.start()..).zip(bytes) {
            look(at, self.stride)?;
            state = dfa.next_state(cache, state, *byte).map_err(|_full| Stop::Lost)?;
            if state.is_tagged() {
                // A state reports a match that ended before its last byte.
                if state.is_match() {
                    end = Some(at);
                    if input.get_earliest() {
                        return Ok(end);
                    }
                } else if state.is_dead() {
                    return Ok(end);
                } else if state.is_quit() {
                    return Err(Stop::Lost);
                }
            }
        }
        let last = beyond((dfa, cache), state, text.get(input.end()))?;
        Ok(if last { Some(input.end()) } else { end })
    }

    /// Returns the start of the match that ends at the end of this input.
    fn start(&mut self, found: Input<'_>) -> Result<usize, Stop> {
        let input = found.anchored(Anchored::Yes).earliest(false);
        let (dfa, cache) = (self.stepwise.automata.reverse(), self.cache.as_parts_mut().1);
        let mut state = dfa.start_state_reverse(cache, &input).map_err(|_lost| Stop::Lost)?;
        let (text, mut start) = (input.haystack(), input.end());
        let bytes = text.get(input.get_range()).unwrap_or_default();
        for (at, byte) in (input.start()..input.end()).zip(bytes).rev() {
            look(at, self.stride)?;
            state = dfa.next_state(cache, state, *byte).map_err(|_full| Stop::Lost)?;
            if state.is_tagged() {
                if state.is_match() {
                    start = at + 1;
                } else if state.is_dead() {
                    return Ok(start);
                } else if state.is_quit() {
                    return Err(Stop::Lost);
                }
            }
        }
        let before = input.start().checked_sub(1).and_then(|it| text.get(it));
        let first = beyond((dfa, cache), state, before)?;
        Ok(if first { input.start() } else { start })
    }
}

/// Returns whether a match ends here: the next byte may matter, as for `$`.
fn beyond(
    (dfa, cache): (&DFA, &mut Cache),
    state: LazyStateID,
    next: Option<&u8>,
) -> Result<bool, Stop> {
    let state = match next {
        Some(byte) => dfa.next_state(cache, state, *byte),
        None => dfa.next_eoi_state(cache, state),
    };
    let state = state.map_err(|_full| Stop::Lost)?;
    if state.is_quit() { Err(Stop::Lost) } else { Ok(state.is_match()) }
}

fn look(at: usize, stride: usize) -> Result<(), Stop> {
    if at.is_multiple_of(stride) { pace::step().map_err(Stop::Failed) } else { Ok(()) }
}
