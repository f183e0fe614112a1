//! A new generation of scripts takes over from the live one: everything that an edit means for what runs.
//!
//! | file | does |
//! |---|---|
//! | `candidates.rs` | runs the start-up handlers of a candidate; accepts or rejects it |
//! | `state.rs` | the generation that took over last: indexes, settings, what waits for it |
//! | `contexts.rs` | makes the next context of each stream whose handlers have changed |
//! | `context.rs` | what a stream and its workers share, and where they find it |
//! | `handover.rs` | lets a stream continue with its next context |
//! | `relist.rs` | one more list of the objects, because new handlers are to see them |
//! | `pending_calls.rs` | which handlers are still to be called for an event |
//!
//! There is one counter, [`crate::logic::generation::Version`], and it goes with everything: the context of a stream, an event, the
//! calls that are pending, a known object, an index. Nothing asks for "the" generation while it serves an object: it has a context,
//! and a context is of one generation. So several generations can be live at once, each with its own [`state::GenerationState`].
//!
//! # What becomes of what runs
//!
//! Which edit of a handler concerns which objects is a table of its own, in `logic/generation/recheck/mod.rs`. An edited handler has
//! other code or options; a removed one is treated like it where the table does not say otherwise.
//!
//! | what | state at the takeover | becomes | see |
//! |---|---|---|---|
//! | call | running | finishes with the code that it began with; its result counts | `reactor/worker.rs` |
//! | cycle | running | finishes with its context; then the object is looked at again, unless something newer comes anyway | `reactor/worker.rs` |
//! | cycle | waits for indexes | begins again with the new context | `reactor/cycle.rs` |
//! | change handler | waits for its retry | edited: is tried at once, attempts are counted on; unchanged: waits on | `logic/generation/retries.rs` |
//! | change handler | failed permanently | edited: is retried from zero, if `settings.reload.retry_failed` allows; unchanged: stays failed | `reactor/change/retry.rs` |
//! | change handler | recorded as finished | is not called again, edited or not | `logic/state/mod.rs` |
//! | change handler | has ended, its changes are not accepted by the server yet | edited: they are dropped, and it is called again; unchanged: they are sent again | `reactor/delivery.rs` |
//! | event | in a queue | comes to the new handlers | `reactor/queue/mod.rs` |
//! | object | idle | comes to new handlers once; to others with its next event | `reactor/generation/handover.rs` |
//! | object | pauses after errors | is tried at once | `reactor/worker.rs` |
//! | stream | watches, still wanted | continues with the next context, without a list of its own | `reactor/generation/handover.rs` |
//! | stream | lists | continues; the list shows the objects to the new handlers | `reactor/streams/taking.rs` |
//! | stream | paused, or waits after a failure | takes over at once; its next list shows the objects | `reactor/streams/mod.rs` |
//! | stream | no handler wants it any more | finishes its workers, forgets its objects, ends | `reactor/streams/end.rs` |
//! | stream | wanted for the first time | starts with a list | `reactor/streams/set.rs` |
//! | relist | not complete | begins again for the handlers of both versions | `reactor/generation/relist.rs` |
//! | daemon or timer | runs or rests, unchanged | continues; its next call is of the new generation | `features/daemons/current_handlers.rs` |
//! | daemon or timer | runs or rests, edited | is stopped, then started again | `reactor/background.rs` |
//! | daemon or timer | ended by itself | unchanged: stays ended; edited: starts again | `features/daemons/object.rs` |
//! | index | complete, unchanged | keeps its entries | `ports/indexes.rs` |
//! | index | complete or not, edited | old entries serve until they are replaced; the rest goes when all objects are indexed again | `ports/indexes.rs` |
//! | index | new | handlers that are new wait for it, up to 10 s; all others do not | `features/indexes/readiness.rs` |
//! | activity | of the next run | is of the generation that took over last | `handling/activities.rs` |

mod candidates;
mod context;
mod contexts;
mod handover;
mod pending_calls;
mod relist;
mod state;

pub(super) use self::{
    candidates::{Candidates, ReadyCandidate},
    context::{SharedContext, StreamContext},
    contexts::Contexts,
    pending_calls::{HandlerSet, PendingCalls},
    relist::Relist,
    state::GenerationState,
};
