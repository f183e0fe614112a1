//! Replaces the live generation of scripts with a new one, with all the effects of an edit on what is running.
//!
//! | file | does |
//! |---|---|
//! | `candidates.rs` | runs the start-up handlers of a candidate; accepts or rejects it |
//! | `state.rs` | the generation that took over last: its indexes and settings, and what its handlers wait for |
//! | `contexts.rs` | makes the next context of each stream whose handlers have changed |
//! | `reactor/object/context.rs` | the state that a stream and its workers share |
//! | `handover.rs` | hands a stream over to its next context |
//! | `reactor/streams/relist.rs` | lists the objects once more, because new handlers must see them |
//! | `reactor/object/pending_calls.rs` | which handlers must still be called for an event |
//!
//! There is one counter, [`crate::logic::generation::Version`], and it is attached to everything: the context of a stream, an event, a
//! pending call, a known object, an index. Code that serves an object never uses "the" generation: it has a context, and a context belongs
//! to one generation. So several generations can be live at once, each with its own [`state::GenerationState`].
//!
//! # The effects on what is running
//!
//! A separate table, in `logic/generation/recheck/mod.rs`, shows which edit of a handler concerns which objects. An edited handler has
//! other code or options; a removed handler is treated like an edited one, unless the table says otherwise.
//!
//! | what | state at the takeover | becomes | see |
//! |---|---|---|---|
//! | call | running | finishes with the code that it started with; its result counts | `reactor/object/worker.rs` |
//! | cycle | running | finishes with its context; then the object is handled again, unless something newer arrives anyway | `reactor/object/worker.rs` |
//! | cycle | waits for indexes | starts over with the new context | `reactor/object/cycle.rs` |
//! | change handler | waits for its retry | edited: is tried at once, its attempts still count; unchanged: keeps waiting | `logic/generation/retries.rs` |
//! | change handler | failed permanently | edited: is retried from zero, if `settings.reload.retry_failed` allows; unchanged: stays failed | `reactor/object/change/retry.rs` |
//! | change handler | recorded as finished | is not called again, edited or not | `logic/change/state/mod.rs` |
//! | change handler | has ended, but the server has not accepted its changes yet | edited: they are dropped, and it is called again, unless the object shows that they were accepted; unchanged: they are sent again | `reactor/object/delivery.rs` |
//! | event | in a queue | reaches the new handlers | `reactor/object/queue/mod.rs` |
//! | object | idle | is shown to new handlers once; to others with its next event | `reactor/generation/handover.rs` |
//! | object | pauses after errors | is tried at once | `reactor/object/worker.rs` |
//! | stream | watching, still wanted | continues with the next context, without another list | `reactor/generation/handover.rs` |
//! | stream | listing | continues; the list shows the objects to the new handlers | `reactor/streams/taking.rs` |
//! | stream | paused, or waiting after a failure | takes over at once; its next list shows the objects | `reactor/streams/mod.rs` |
//! | stream | no longer wanted | finishes its workers, drops its objects, ends | `reactor/streams/end.rs` |
//! | stream | wanted for the first time | starts with a list | `reactor/streams/set.rs` |
//! | relist | incomplete | starts over for the handlers of both versions | `reactor/streams/relist.rs` |
//! | daemon or timer | runs or waits, unchanged | continues; its next call belongs to the new generation | `features/daemons/current_handlers.rs` |
//! | daemon or timer | runs or waits, edited | is stopped, then started again | `reactor/object/daemon_sync.rs` |
//! | daemon or timer | ended by itself | unchanged: stays ended; edited: starts again | `features/daemons/object.rs` |
//! | index | complete, unchanged | keeps its entries | `call/indexes.rs` |
//! | index | complete or not, edited | old entries stay until they are replaced; the rest is removed when all objects are indexed again | `call/indexes.rs` |
//! | index | new | new handlers wait for it, up to 10 s; all others do not | `features/indexes/readiness.rs` |
//! | activity | next run | uses the generation that took over last | `handling/activities.rs` |

mod candidates;
mod contexts;
pub(super) mod digest_key;
mod handover;
pub(super) mod shared;
mod state;

pub(super) use self::{
    candidates::{Candidates, ReadyCandidate},
    contexts::Contexts,
    state::GenerationState,
};
