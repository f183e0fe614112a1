//! The state of objects, as a table or as JSON, and where it is printed.

use std::{fmt::Write as _, io::Write as _};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::session::ObjectSession;
use crate::cli::shared_args::OutputFormat;
use crate::logic::{
    change::repair::{self, HandlerState, UnfinishedProgress},
    object::Object,
    text::printable::printable,
};
use crate::ports::Clock;

/// Returns the state of the objects, for people or for programs.
pub(super) fn rendered(session: &ObjectSession, output: OutputFormat) -> String {
    let all: Vec<_> = session.objects.iter().map(|it| (it, repair::states(it.body()))).collect();
    match output {
        OutputFormat::Text => table(session, &all),
        OutputFormat::Json => format!("{}\n", printable(listed(session, &all).to_string())),
    }
}

fn table(session: &ObjectSession, all: &[(&Object, Vec<HandlerState>)]) -> String {
    let mut rows =
        vec![["OBJECT", "HANDLER", "STATE", "ATTEMPTS", "NEXT", "MESSAGE"].map(String::from)];
    let now = Clock::system().now();
    for (object, states) in all {
        rows.extend(states.iter().map(|state| row(session.shown(object), state, now)));
        rows.extend(repair::suspended(object.body()).map(|reason| {
            let [all, none] = ["*", "-"].map(str::to_owned);
            let state = "suspended".to_owned();
            [session.shown(object), all, state, none.clone(), none, plain(reason)]
        }));
    }
    let failing = |wanted: UnfinishedProgress| {
        all.iter().filter(|(_, states)| states.iter().any(|it| it.state == wanted)).count()
    };
    let counts = format!(
        "{} objects: {} failed, {} retrying\n",
        all.len(),
        failing(UnfinishedProgress::Failed),
        failing(UnfinishedProgress::Retrying)
    );
    if rows.len() == 1 {
        return counts;
    }
    format!("{}{counts}", aligned(&rows))
}

/// Returns the rows as lines with aligned columns.
pub(super) fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|it| it.get(column)).map(|it| it.chars().count()).max().unwrap_or(0)
    };
    // The last column needs none.
    let widths: Vec<_> = (1..COLUMNS).map(|it| width(it - 1)).collect();
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _always_fits = write!(text, "{cell:width$}  ");
        }
        text.push_str(row.last().map(String::as_str).unwrap_or_default());
        text.push('\n');
    }
    text
}

fn row(object: String, state: &HandlerState, now: Timestamp) -> [String; 6] {
    let name = match state.state {
        UnfinishedProgress::Waiting => "waiting",
        UnfinishedProgress::Retrying => "retrying",
        UnfinishedProgress::Failed => "failed",
    };
    let seconds = state.time.as_deref().and_then(|it| repair::seconds_until(it, now));
    let next = match (state.state, seconds) {
        (UnfinishedProgress::Failed, _) => "-".to_owned(),
        (_, Some(seconds)) if seconds > 0 => format!("in {seconds} s"),
        (_, _) => "due".to_owned(),
    };
    let attempts = state.attempts.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let message = plain(state.message.as_deref().unwrap_or_default());
    [object, plain(&state.handler), name.to_owned(), attempts, next, message]
}

/// Returns a message of a script, which must not move the cursor or forge rows.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

fn listed(session: &ObjectSession, all: &[(&Object, Vec<HandlerState>)]) -> Value {
    let objects = all.iter().map(|(object, states)| {
        let header = object.header();
        let suspended = repair::suspended(object.body());
        json!({
            "namespace": header.namespace,
            "name": header.name,
            "suspended": suspended,
            "handlers": states,
        })
    });
    json!({ "resource": session.resource.to_string(), "objects": objects.collect::<Value>() })
}

/// Prints to stdout. A closed stdout is ignored.
pub(super) fn print(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}
