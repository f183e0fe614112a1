//! The slow search, which supports all patterns and also finds groups: it follows all threads through the pattern at once, byte by
//! byte, with checks of the time.
//!
//! The engines of the crate for this cannot be interrupted. Like them, it is Pike's machine: of the threads in the same state, the
//! one that the pattern prefers continues.

use regex_automata::{
    Span,
    nfa::thompson::{NFA, State},
    util::primitives::StateID,
};

use crate::scripting::functions::{outcome::Failure, pace};

/// Maximum number of slots of all threads together: the starts and ends of their groups.
const KEPT_MAX: usize = 1 << 20;
/// The number of slots that are copied between two checks of the time: a fraction of a millisecond.
const WORK: usize = 1 << 16;
/// The slot of a group that has captured nothing.
const NOWHERE: usize = usize::MAX;

/// The positions of the whole match and of each group.
pub(super) type Groups = Vec<Option<Span>>;

/// The input of a search.
#[derive(Clone, Copy)]
pub(super) struct Haystack<'a> {
    pub(super) text: &'a [u8],
    pub(super) span: Span,
    /// Whether the match must begin where the span does.
    pub(super) is_anchored: bool,
}

/// All threads that have reached the same byte, the preferred ones first.
struct Ways {
    states: Vec<StateID>,
    /// The byte at which each state was last entered: it is entered once per byte.
    seen: Vec<usize>,
    /// The groups of each state.
    slots: Vec<usize>,
}

struct Machine<'a> {
    nfa: &'a NFA,
    place: Haystack<'a>,
    /// The number of slots of one thread.
    width: usize,
    work: usize,
    stack: Vec<ThreadFrame>,
}

/// Pending work while threads are followed without consuming a byte.
enum ThreadFrame {
    Follow(StateID),
    Restore(usize, usize),
}

/// Finds the first match; its groups only if they are wanted.
pub(super) fn search(
    nfa: &NFA,
    place: Haystack<'_>,
    with_groups: bool,
) -> Result<Option<Groups>, Failure> {
    let states = nfa.states().len();
    let width = if with_groups { nfa.group_info().slot_len() } else { 2 };
    if states.saturating_mul(width) > KEPT_MAX {
        return Err(
            "`pattern`: has too many groups for a match of this length; use re.find, or fewer groups"
                .into(),
        );
    }
    let ways = || Ways {
        states: Vec::new(),
        seen: vec![NOWHERE; states],
        slots: vec![NOWHERE; states * width],
    };
    let mut machine = Machine { nfa, place, width, work: 0, stack: Vec::new() };
    let found = machine.run(&mut ways(), &mut ways())?;
    Ok(found.map(|slots| slots.chunks(2).map(group).collect()))
}

fn group(slots: &[usize]) -> Option<Span> {
    match slots {
        [start, end] if *start != NOWHERE && *end != NOWHERE => Some(Span::from(*start..*end)),
        _ => None,
    }
}

impl Machine<'_> {
    fn run<'w>(
        &mut self,
        mut here: &'w mut Ways,
        mut next: &'w mut Ways,
    ) -> Result<Option<Vec<usize>>, Failure> {
        let Haystack { text, span, is_anchored } = self.place;
        let mut found = None;
        for at in span.start..=span.end {
            let may_begin = found.is_none() && (at == span.start || !is_anchored);
            if here.states.is_empty() && !may_begin {
                break;
            }
            if may_begin {
                let mut slots = vec![NOWHERE; self.width];
                self.follow(here, (self.nfa.start_anchored(), at), &mut slots)?;
            }
            for place in 0..here.states.len() {
                let Some(id) = here.states.get(place).copied() else { break };
                let to = match self.nfa.state(id) {
                    State::Match { .. } => {
                        // Less preferred threads end here.
                        found = Some(here.slots_of(id, self.width).to_vec());
                        break;
                    }
                    _ if at == span.end => None,
                    State::ByteRange { trans } => trans.matches(text, at).then_some(trans.next),
                    State::Sparse(it) => it.matches(text, at),
                    State::Dense(it) => it.matches(text, at),
                    State::Look { .. }
                    | State::Union { .. }
                    | State::BinaryUnion { .. }
                    | State::Capture { .. }
                    | State::Fail => None,
                };
                if let Some(to) = to {
                    let mut slots = here.slots_of(id, self.width).to_vec();
                    self.follow(next, (to, at + 1), &mut slots)?;
                }
            }
            std::mem::swap(&mut here, &mut next);
            next.states.clear();
        }
        Ok(found)
    }

    /// Adds a thread, with all that it leads to without consuming a byte.
    fn follow(
        &mut self,
        ways: &mut Ways,
        (begin, at): (StateID, usize),
        slots: &mut [usize],
    ) -> Result<(), Failure> {
        self.stack.push(ThreadFrame::Follow(begin));
        while let Some(frame) = self.stack.pop() {
            match frame {
                ThreadFrame::Restore(slot, before) => {
                    if let Some(slot) = slots.get_mut(slot) {
                        *slot = before;
                    }
                }
                ThreadFrame::Follow(id) => self.follow_one(ways, (id, at), slots)?,
            }
        }
        Ok(())
    }

    fn follow_one(
        &mut self,
        ways: &mut Ways,
        (mut id, at): (StateID, usize),
        slots: &mut [usize],
    ) -> Result<(), Failure> {
        while ways.is_new(id, at) {
            self.work += slots.len() + 1;
            if self.work > WORK {
                self.work = 0;
                pace::step()?;
            }
            match self.nfa.state(id) {
                State::Fail => break,
                State::Match { .. }
                | State::ByteRange { .. }
                | State::Sparse(_)
                | State::Dense(_) => {
                    ways.add(id, slots);
                    break;
                }
                State::Look { look, next } => {
                    if !self.nfa.look_matcher().matches(*look, self.place.text, at) {
                        break;
                    }
                    id = *next;
                }
                State::Union { alternates } => {
                    let Some((first, others)) = alternates.split_first() else { break };
                    self.stack.extend(others.iter().rev().map(|it| ThreadFrame::Follow(*it)));
                    id = *first;
                }
                State::BinaryUnion { alt1, alt2 } => {
                    self.stack.push(ThreadFrame::Follow(*alt2));
                    id = *alt1;
                }
                State::Capture { next, slot, .. } => {
                    if let Some(kept) = slots.get_mut(slot.as_usize()) {
                        self.stack.push(ThreadFrame::Restore(slot.as_usize(), *kept));
                        *kept = at;
                    }
                    id = *next;
                }
            }
        }
        Ok(())
    }
}

impl Ways {
    /// Returns whether a state is entered for the first time at this byte.
    fn is_new(&mut self, id: StateID, at: usize) -> bool {
        let seen = self.seen.get_mut(id.as_usize());
        seen.is_some_and(|seen| std::mem::replace(seen, at) != at)
    }

    fn add(&mut self, id: StateID, slots: &[usize]) {
        self.states.push(id);
        let begin = id.as_usize() * slots.len();
        if let Some(kept) = self.slots.get_mut(begin..begin + slots.len()) {
            kept.copy_from_slice(slots);
        }
    }

    fn slots_of(&self, id: StateID, width: usize) -> &[usize] {
        let begin = id.as_usize() * width;
        self.slots.get(begin..begin + width).unwrap_or_default()
    }
}
