//! The errors of scripts that reach a limit, the same in both languages. Each names the limit and its setting.

use std::{io, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::logic::{object::measure, text::size};

/// Returns the error of a call that has used up its CPU time.
pub(crate) fn computed_too_long(limit: Duration) -> String {
    let limit = limit.as_secs_f64();
    format!("the call used more than {limit} s of CPU time and was aborted ({CPU_LIMIT})")
}

/// Returns the error of a call that has computed too long without a pause, on the thread of the operator.
pub(crate) fn computed_without_pause() -> String {
    "the call computed too long where it cannot be suspended and was aborted; it is repeated on the thread of the script".into()
}

/// Returns the error of a script that has used up its memory.
pub(crate) fn too_much_memory(limit: usize) -> String {
    format!("the script needs more than {} of memory ({MEMORY_LIMIT})", size::shown(limit))
}

/// Returns the error of a script whose memos are too large together.
pub(crate) fn too_much_in_memos(limit: usize) -> String {
    format!("the memos of this script hold more than {} ({MEMORY_LIMIT})", size::shown(limit))
}

/// Returns the error of a script whose patches are too large together.
pub(crate) fn too_much_in_patches(limit: usize) -> String {
    format!(
        "the patches and results of this script that are not sent yet hold more than {} ({MEMORY_LIMIT}): a patch is sent when its handler has returned",
        size::shown(limit)
    )
}

/// Returns the error of a script that keeps too many paths of handles.
pub(crate) fn too_many_places(limit: usize) -> String {
    format!(
        "the levels of ctx.memo and ctx.patch that the script keeps have paths of more than {} ({MEMORY_LIMIT})",
        size::shown(limit)
    )
}

/// Returns the error of a script whose indexes are too large together.
pub(crate) fn too_much_in_indexes(limit: usize) -> String {
    format!("the indexes of this script hold more than {} ({MEMORY_LIMIT})", size::shown(limit))
}

/// Returns the error of a script whose memory fills again and again with values that cannot be freed.
pub(crate) fn leaking() -> String {
    "the script is stopped for a few minutes: values that contain themselves filled its memory repeatedly and cannot be freed; \
     remove the cycle from the script, or restart the operator"
        .into()
}

/// Returns the error of calls that are nested too deep.
pub(crate) fn too_deep_calls(limit: usize) -> String {
    format!("calls are nested deeper than {limit} levels ({CALL_DEPTH})")
}

/// Returns the error of too many unfinished coroutines.
pub(crate) fn too_many_coroutines(limit: usize) -> String {
    format!("more than {limit} coroutines have not finished ({COROUTINES})")
}

/// Returns the error of a string that a script creates.
pub(crate) fn too_long_text(limit: usize) -> String {
    format!("a string would be longer than {} ({STRING_SIZE})", size::shown(limit))
}

/// Maximum number of items of a list or fields of a map, nested ones included. Applies to values of Rhai, to memos, and to arguments
/// and results of libraries in both languages. An item takes at least a hundred bytes of memory, independent of its size as JSON.
/// Results and patches have the lower limit [`measure::ITEMS_MAX`](crate::logic::object::measure::ITEMS_MAX).
pub(crate) const ITEMS_MAX: usize = 100_000;

/// Returns the error of a list or a map with too many items, nested ones included.
pub(crate) fn too_many_items(of: &str, limit: usize) -> String {
    format!("{of} would have more than {limit} items")
}

/// Maximum number of handlers that a script declares. Each event of an object is compared with the filters of all of them.
pub(crate) const HANDLERS_MAX: usize = 1_000;

/// Maximum number of handlers of each kind that takes much work: selector functions are called for all resources of the cluster, schedules
/// share one Lease, probes one response, and each object can have all of the script's daemons, timers, reconcile handlers and index entries.
pub(crate) const COSTLY_MAX: usize = 100;

/// Returns the error of too many handlers of a kind that takes much work.
pub(crate) fn too_many_costly(kind: &str) -> String {
    format!(
        "the script declares more than {COSTLY_MAX} {kind}; distribute them over several scripts"
    )
}

/// Maximum number of functions in one filter, which `kopf.all_` and the like combine; the combinations count, too. Each event is compared
/// with all of them.
pub(crate) const COMBINED_MAX: usize = 1_000;

/// Returns the error of a filter of too many functions.
pub(crate) fn too_many_combined() -> String {
    format!(
        "the filter combines more than {COMBINED_MAX} functions; one function can decide instead"
    )
}

/// Maximum number of functions in the patch of one call.
pub(crate) const TRANSFORMATIONS_MAX: usize = 10_000;

/// Returns the error of too many declared handlers.
pub(crate) fn too_many_handlers() -> String {
    format!(
        "the script declares more than {HANDLERS_MAX} handlers; distribute them over several scripts"
    )
}

/// Returns the error of too many transformations in a patch.
pub(crate) fn too_many_transformations() -> String {
    format!("ctx.patch.fns would have more than {TRANSFORMATIONS_MAX} functions")
}

/// Returns the error of a result or a patch that is too large; `what` says which.
pub(crate) fn too_large(what: &str, limit: usize) -> String {
    format!("{what} is larger than {} as JSON ({RESULT_SIZE})", size::shown(limit))
}

/// Returns the error of a result of a probe that is too large.
pub(crate) fn too_large_of_probe(what: &str, limit: usize) -> String {
    format!("{what} of a probe is larger than {} as JSON", size::shown(limit))
}

/// Returns the error of a patch or a memo that would be too large as a whole: `bytes` includes the new value.
pub(crate) fn too_large_together(what: &str, limit: usize, bytes: usize) -> String {
    format!("{}: {} together", too_large(what, limit), size::about(bytes))
}

/// Returns the error of a patch that would have too many items as a whole: `count` includes the new value.
pub(crate) fn too_many_items_together(what: &str, limit: usize, count: usize) -> String {
    format!("{}: {count} together; {}", too_many_items(what, limit), measure::ADVICE)
}

/// Returns the error of an argument of a host function that is too large.
pub(crate) fn too_large_as_text(what: &str, limit: usize) -> String {
    format!("{what} is larger than {} as JSON ({STRING_SIZE})", size::shown(limit))
}

/// Returns whether a value fits into `limit` bytes of JSON.
pub(crate) fn is_within(value: &impl Serialize, limit: usize) -> bool {
    /// Counts the written bytes, and fails beyond the limit.
    struct ByteBudget(usize);
    impl io::Write for ByteBudget {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(ByteBudget(limit), value).is_ok()
}

/// Cuts a log line or an error message to its maximum length. Messages are stored on the object, whose annotations may have 256 KiB
/// in total, and lines wait in memory for a slow reader of the log.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let all = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.shrink_to_fit();
        text += "… (";
        text += &all.to_string();
        text += " bytes in all)";
    }
    text
}

/// Cuts the structured fields of such a line. A truncated value would be misread, so each is shown completely or not at all.
pub(crate) fn cut_fields(fields: Map<String, Value>) -> Map<String, Value> {
    if is_within(&fields, TEXT_BYTES_MAX) {
        return fields;
    }
    let reason = format!("more than {} as JSON", size::shown(TEXT_BYTES_MAX));
    Map::from_iter([("fields_left_out".to_owned(), Value::String(reason))])
}

/// The maximum length of one line in container runtimes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

const CPU_LIMIT: &str = "settings.execution.cpu_limit";
const MEMORY_LIMIT: &str = "settings.sandbox.memory_limit";
const CALL_DEPTH: &str = "settings.sandbox.call_depth";
const COROUTINES: &str = "settings.sandbox.coroutines";
const STRING_SIZE: &str = "settings.sandbox.string_size";
const RESULT_SIZE: &str = "settings.sandbox.result_size";
