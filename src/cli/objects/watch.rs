//! `kopf status --watch`: the table again whenever it changes, until Ctrl+C.

use std::{fmt::Write as _, io::IsTerminal as _, time::Duration};

use futures::{Stream, StreamExt as _};
use tokio::time::sleep;

use super::{
    args::StatusArgs,
    output::{print, rendered},
    session::ObjectSession,
};
use crate::cli::{
    report::{Exit, Report},
    run,
    shared_args::OutputFormat,
    signals::StopSignal,
};

/// The pause between two reads of the objects.
const PAUSE: Duration = Duration::from_secs(2);
/// Moves the cursor to the start of a terminal and clears it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Prints the state of the objects until a signal.
pub(super) async fn run(args: &StatusArgs, session: ObjectSession) -> Result<Exit, Report> {
    let signals = run::listen()?;
    let is_screen = args.output == OutputFormat::Text && std::io::stdout().is_terminal();
    follow(args, session, signals, is_screen).await
}

async fn follow(
    args: &StatusArgs,
    mut session: ObjectSession,
    mut signals: impl Stream<Item = StopSignal> + Unpin,
    is_screen: bool,
) -> Result<Exit, Report> {
    let (mut last, mut problem) = (String::new(), String::new());
    loop {
        let text = rendered(&session, args.output);
        let seen = without_countdown(&text);
        if is_screen {
            let problem = if problem.is_empty() { String::new() } else { format!("\n{problem}\n") };
            print(&format!("{CLEAR}{text}{problem}"));
        } else if seen != last {
            let gap = if last.is_empty() || args.output == OutputFormat::Json { "" } else { "\n" };
            print(&format!("{gap}{text}"));
        }
        last = seen;
        tokio::select! {
            biased; // the end first
            _ = signals.next() => return Ok(Exit::Success),
            () = sleep(PAUSE) => {}
        }
        let refreshed = tokio::select! {
            biased; // the end first: the server may not respond
            _ = signals.next() => return Ok(Exit::Success),
            refreshed = session.refresh(&args.objects) => refreshed,
        };
        let now = refreshed.err().map(|it| format!("warning: {}", it.message)).unwrap_or_default();
        if !now.is_empty() && now != problem && !is_screen {
            tracing::warn!(target: "kopf.client", "{}; trying again.", now.trim_start_matches("warning: "));
        }
        problem = now;
    }
}

/// Returns the output without the seconds until the next attempt, which always change.
fn without_countdown(text: &str) -> String {
    let mut seen = String::new();
    for line in text.lines() {
        let words = line.split_whitespace();
        let kept = words.filter(|it| !it.bytes().all(|it| it.is_ascii_digit()));
        let _always_fits = writeln!(seen, "{}", kept.collect::<Vec<_>>().join(" "));
        // Attempts are numbers, too, and each of them is a change.
        let attempts =
            line.split("  ").map(str::trim).filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
        seen.extend(attempts);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::without_countdown;

    #[test]
    fn an_attempt_is_a_change_and_a_countdown_is_not() {
        let row = |attempts: u32, next: &str| {
            format!(
                "kopfexamples/a -n default  made  retrying  {attempts}         {next}  not yet\n"
            )
        };
        assert_eq!(without_countdown(&row(3, "in 26 s")), without_countdown(&row(3, "in 4 s ")));
        assert_ne!(without_countdown(&row(3, "in 26 s")), without_countdown(&row(4, "in 26 s")));
        assert_ne!(without_countdown(&row(3, "in 26 s")), without_countdown(&row(3, "due    ")));
    }
}
