//! Lines as they are written, for events of the program.

use std::{sync::Arc, time::Duration};

use expect_test::{Expect, expect};
use parking_lot::Mutex;
use serde_json::json;
use tracing::Level;

use super::subscriber;
use crate::call::{Logger, LoggerKind};
use crate::cli::{
    args::{ColorWhen, LogFormat},
    options::{LogOptions, Verbosity},
};
use crate::logic::{
    handlers::{
        failing::FailedAttempt,
        function::{Function, ScriptId},
        handler::Kind,
        outcome::{self, CallEnd, Effort, LogLevel, LogLine, Raised, RaisedKind},
    },
    object::ObjectRef,
};
use crate::ports::Clock;
use crate::telemetry::LogControl as _;
use crate::testing;

/// Checks what `act` logs. The paused clock always shows the same time.
fn check(options: LogOptions, act: impl FnOnce(), expected: &Expect) {
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = {
        let lines = Arc::clone(&lines);
        move |line: &str| lines.lock().push_str(line)
    };
    let clock = Clock::starting_at("2026-11-21T04:10:37.849026Z".parse().expect("a timestamp"));
    tracing::subscriber::with_default(subscriber(options, clock, Box::new(sink)), act);
    expected.assert_eq(&lines.lock());
}

fn options(format: LogFormat) -> LogOptions {
    let prefix = format != LogFormat::Json;
    LogOptions {
        verbosity: Verbosity::Normal,
        format,
        prefix,
        refkey: "object".into(),
        color: ColorWhen::Never,
        unhandled: false,
    }
}

fn logger(namespace: Option<&str>) -> Logger {
    let object = ObjectRef {
        api_version: "kopf.dev/v1".into(),
        kind: "KopfExample".into(),
        name: "kopf-example-1".into(),
        uid: "b995".into(),
        namespace: namespace.map(str::to_owned),
    };
    Logger::of_object(LoggerKind::Full, Arc::new(object))
}

fn typical_lines() {
    let logger = logger(Some("default"));
    logger.log(LogLevel::Debug, "unseen");
    logger.log(LogLevel::Info, "Handler 'create_fn' succeeded.");
    let failure = LogLine { level: LogLevel::Error, text: "It failed.".into(), with_trace: true };
    logger.line(&failure, Some("a.lua:1: oops\n  in create_fn\n"));
    Logger::of_activity().log(LogLevel::Warning, "Activity");
    tracing::info!(target: "kopf::reactor::streams::more", attempt = 3, reason = %"gone", "reconnecting");
    tracing::info!(target: "hyper::client", "unseen");
    tracing::warn!(target: "hyper::client", "odd");
}

#[tokio::test(start_paused = true)]
async fn no_message_can_forge_a_line_or_move_the_cursor() {
    let forged =
        "name\n[2026-01-01 00:00:00,000] kopf.objects [INFO    ] all is well\r\u{1b}[2J\tend";
    let lines = move || logger(None).log(LogLevel::Info, forged);
    check(
        options(LogFormat::Plain),
        lines,
        &expect![[r"
            [kopf-example-1] name
                [2026-01-01 00:00:00,000] kopf.objects [INFO    ] all is well\r\u{1b}[2J	end
        "]],
    );
}

#[tokio::test(start_paused = true)]
async fn plain_lines_are_messages_with_the_object() {
    check(
        options(LogFormat::Plain),
        typical_lines,
        &expect![[r"
            [default/kopf-example-1] Handler 'create_fn' succeeded.
            [default/kopf-example-1] It failed.
                a.lua:1: oops
                  in create_fn
            Activity
            reconnecting attempt=3 reason=gone
            odd
        "]],
    );
}

#[tokio::test(start_paused = true)]
async fn json_lines_have_their_keys_in_order() {
    check(
        options(LogFormat::Json),
        typical_lines,
        &expect![[r#"
            {"message": "Handler 'create_fn' succeeded.", "timestamp": "2026-11-21T04:10:37.849026+00:00", "object": {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "kopf-example-1", "uid": "b995", "namespace": "default"}, "severity": "info", "logger": "objects"}
            {"message": "It failed.", "exc_info": "a.lua:1: oops\n  in create_fn", "timestamp": "2026-11-21T04:10:37.849026+00:00", "object": {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "kopf-example-1", "uid": "b995", "namespace": "default"}, "severity": "error", "logger": "objects"}
            {"message": "Activity", "timestamp": "2026-11-21T04:10:37.849026+00:00", "severity": "warn", "logger": "activities"}
            {"message": "reconnecting", "attempt": 3, "reason": "gone", "timestamp": "2026-11-21T04:10:37.849026+00:00", "severity": "info", "logger": "reactor.streams.more"}
            {"message": "odd", "timestamp": "2026-11-21T04:10:37.849026+00:00", "severity": "warn", "logger": "hyper.client"}
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn fields_of_scripts_come_after_the_message_and_replace_nothing() {
    let log = || {
        let fields = json!({"severity": "mine", "took": [1, 2], "message": "mine"});
        let fields = fields.as_object().expect("a map");
        logger(None).with_fields(LogLevel::Info, "done", fields);
    };
    let json = LogOptions { refkey: "ref".into(), prefix: true, ..options(LogFormat::Json) };
    check(
        json,
        log,
        &expect![[r#"
            {"message": "[kopf-example-1] done", "took": [1, 2], "timestamp": "2026-11-21T04:10:37.849026+00:00", "ref": {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "kopf-example-1", "uid": "b995", "namespace": null}, "severity": "info", "logger": "objects"}
        "#]],
    );
    let no_prefix = LogOptions { prefix: false, ..options(LogFormat::Plain) };
    check(no_prefix, log, &expect![["done\n"]]);
}

#[tokio::test(start_paused = true)]
async fn full_lines_have_fixed_columns_before_the_message() {
    let at = "2026-11-21T04:10:28.317999Z".parse().expect("a timestamp");
    let mut record = super::LogRecord::new("kopf::reactor::streams::more", Level::WARN);
    record.message = "text".into();
    let line = super::line::format(&record, &options(LogFormat::Full), at);
    // The hour is local time, which depends on the machine.
    let (date, rest) = line.split_at("[2026-11-2".len());
    assert_eq!(date, "[2026-11-2");
    let columns = rest.get("1 04:10:28".len()..).expect("a full line");
    assert_eq!(columns, ",317] reactor.streams.more [WARNING ] text\n");
    let record = super::LogRecord::new("kopf.objects", Level::INFO);
    let line = super::line::format(&record, &options(LogFormat::Full), at);
    assert!(line.ends_with("] objects    [INFO    ] \n"), "{line}");
}

#[test]
fn the_time_of_a_line_is_its_own_also_after_an_earlier_or_a_later_one() {
    let record = super::LogRecord::new("kopf.objects", Level::INFO);
    for (at, expected) in [
        ("2026-11-21T04:10:28.317999Z", ":28,317]"),
        ("2026-11-21T04:10:28.999999Z", ":28,999]"),
        ("2026-11-21T04:10:29.000000Z", ":29,000]"),
        ("2026-11-21T04:10:28.004Z", ":28,004]"),
    ] {
        let at = at.parse().expect("a timestamp");
        let line = super::line::format(&record, &options(LogFormat::Full), at);
        // The hour is local time, and in some places the minute.
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn control_characters_of_every_range_are_escaped() {
    for (text, expected) in [
        ("a\u{85}b", "a\\u{85}b"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("\u{7f}", "\\u{7f}"),
        ("\u{1b}[2J", "\\u{1b}[2J"),
        ("é £ \u{a0} 日本 🎉", "é £ \u{a0} 日本 🎉"),
    ] {
        let mut record = super::LogRecord::new("kopf.objects", Level::INFO);
        record.message = text.into();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let line = super::line::format(&record, &options(LogFormat::Plain), at);
        assert_eq!(line, format!("{expected}\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn verbosity_chooses_levels_and_libraries() {
    let log = || {
        tracing::trace!(target: "kopf.objects", "own trace");
        tracing::debug!(target: "kopf.objects", "own debug");
        tracing::info!(target: "kopf.objects", "own info");
        tracing::warn!(target: "kopf.objects", "own warning");
        tracing::debug!(target: "tower", "library debug");
        tracing::info!(target: "tower", "library info");
        tracing::warn!(target: "tower", "library warning");
        tracing::error!(target: "kube_client::client", "client error");
    };
    let with = |verbosity| LogOptions { verbosity, ..options(LogFormat::Plain) };
    check(with(Verbosity::Quiet), log, &expect![["own warning\nlibrary warning\n"]]);
    check(with(Verbosity::Normal), log, &expect![["own info\nown warning\nlibrary warning\n"]]);
    let verbose = expect![["own debug\nown info\nown warning\nlibrary warning\n"]];
    check(with(Verbosity::Verbose), log, &verbose);
    let debug = expect![[
        "own debug\nown info\nown warning\nlibrary debug\nlibrary info\nlibrary warning\nclient error\n"
    ]];
    check(with(Verbosity::Debug), log, &debug);
}

#[test]
fn changes_without_a_handler_are_logged_by_dev_and_verbose_logs() {
    let log = || logger(None).unhandled("a: 1 → 2; no handler for updates");
    let with =
        |unhandled, verbosity| LogOptions { verbosity, unhandled, ..options(LogFormat::Plain) };
    let line = expect![["[kopf-example-1] a: 1 → 2; no handler for updates\n"]];
    check(with(true, Verbosity::Normal), log, &line);
    check(with(false, Verbosity::Verbose), log, &line);
    check(with(true, Verbosity::Quiet), log, &expect![[""]]);
    check(with(false, Verbosity::Normal), log, &expect![[""]]);
    let kopf = LogOptions { unhandled: true, ..options(LogFormat::Kopf) };
    check(kopf, log, &expect![[""]]);
}

#[tokio::test(start_paused = true)]
async fn loggers_have_short_names_and_in_its_format_those_of_kopf() {
    let at = "2026-11-21T04:10:28.317999Z".parse().expect("a timestamp");
    for (target, shown, in_kopf) in [
        ("kopf.reactor", "reactor   ", "kopf._core.reactor.r"),
        ("kopf.auth", "auth      ", "kopf._core.engines.a"),
        ("kopf.watch", "watch     ", "kopf._cogs.clients.w"),
        ("kopf.objects", "objects   ", "kopf.objects        "),
        ("kopf.dev", "dev       ", "kopf.dev            "),
        ("kopf.access", "access    ", "aiohttp.access      "),
        ("kube_client::client", "kube_client.client", "kube_client.client  "),
    ] {
        let record = super::LogRecord::new(target, Level::INFO);
        for (format, name) in [(LogFormat::Full, shown), (LogFormat::Kopf, in_kopf)] {
            let line = super::line::format(&record, &options(format), at);
            assert!(line.contains(&format!("] {name} [INFO    ] ")), "{line}");
        }
    }
    for (format, name) in
        [(LogFormat::Full, "activities.startup"), (LogFormat::Kopf, "kopf.activities.star")]
    {
        let lines = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&lines);
        let sink = Box::new(move |line: &str| sink.lock().push_str(line));
        let clock = Clock::starting_at(at);
        tracing::subscriber::with_default(subscriber(options(format), clock, sink), || {
            Logger::of_activity().named("startup").log(LogLevel::Info, "text");
        });
        let lines = lines.lock();
        assert!(lines.ends_with(&format!("] {name} [INFO    ] text\n")), "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn colors_change_no_column() {
    let colored = |format| LogOptions { color: ColorWhen::Always, ..options(format) };
    let warn = || tracing::warn!(target: "kopf.dev", "text");
    check(colored(LogFormat::Plain), warn, &expect![["\u{1b}[33mtext\u{1b}[0m\n"]]);
    let at = "2026-11-21T04:10:28.317999Z".parse().expect("a timestamp");
    let mut record = super::LogRecord::new("kopf.dev", Level::WARN);
    record.message = "text".into();
    let line = super::line::format(&record, &colored(LogFormat::Full), at);
    assert!(line.starts_with("\u{1b}[2m[2026-"), "{line:?}");
    let end = "] dev       \u{1b}[0m [\u{1b}[1m\u{1b}[33mWARNING \u{1b}[0m] text\n";
    assert!(line.ends_with(end), "{line:?}");
    let log = || Logger::of_activity().log(LogLevel::Info, "text");
    check(
        colored(LogFormat::Json),
        log,
        &expect![[r#"
            {"message": "text", "timestamp": "2026-11-21T04:10:37.849026+00:00", "severity": "info", "logger": "activities"}
        "#]],
    );
}

#[test]
fn colors_follow_the_conventions_of_terminals() {
    use ColorWhen::{Always, Auto, Never};
    let decide = |when, variables: &[(&str, &str)], is_terminal| {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        super::color::decide(when, &lookup, is_terminal)
    };
    assert_eq!(decide(Auto, &[], true), Always);
    assert_eq!(decide(Auto, &[], false), Never);
    assert_eq!(decide(Auto, &[("NO_COLOR", "1")], true), Never);
    assert_eq!(decide(Auto, &[("NO_COLOR", "")], true), Always);
    assert_eq!(decide(Auto, &[("CLICOLOR_FORCE", "1")], false), Always);
    assert_eq!(decide(Auto, &[("CLICOLOR_FORCE", "0")], false), Never);
    assert_eq!(decide(Auto, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true), Never);
    assert_eq!(decide(Auto, &[("CLICOLOR", "0")], true), Never);
    assert_eq!(decide(Auto, &[("TERM", "dumb")], true), Never);
    assert_eq!(decide(Always, &[("NO_COLOR", "1")], false), Always);
    assert_eq!(decide(Never, &[("CLICOLOR_FORCE", "1")], true), Never);
}

/// Returns all lines from a pipe until its other end is closed.
fn read_all(mut reader: std::io::PipeReader) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text).expect("a string");
    text
}

#[test]
fn lines_that_are_read_come_in_order_at_once() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let output = super::output::LogOutput::new(writer);
    let long = format!("{}\n", "x".repeat(10_000));
    for line in ["one\n", &long, "two\n", "three\n"] {
        output.line(line);
    }
    output.flush();
    drop(output);
    assert_eq!(read_all(reader), format!("one\n{long}two\nthree\n"));
}

#[test]
fn an_unread_pipe_loses_lines_but_does_not_block_the_operator() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let output = super::output::LogOutput::new(writer);
    // More than the pipe and the queue hold together; none of these calls may wait.
    let lines = 20_000;
    for number in 0..lines {
        output.line(&format!("{number:063}\n"));
    }
    // Now the lines are read; the writer ends when all of them are written.
    drop(output);
    let text = read_all(reader);
    let mut lost = 0;
    let mut last = None;
    let mut seen = 0;
    for line in text.lines() {
        if let Some(note) = line.strip_prefix("kopf: ") {
            lost += note.split(' ').next().and_then(|it| it.parse::<i32>().ok()).expect("a number");
        } else {
            let number: i32 = line.trim_start_matches('0').parse().unwrap_or(0);
            assert!(last < Some(number), "the order is kept");
            last = Some(number);
            seen += 1;
        }
    }
    assert!(lost > 0, "the queue has a bound");
    assert_eq!(seen + lost, lines);
}

fn failed_attempt() {
    let mut handler =
        testing::handler_of_examples(Kind::Create, Function::new(ScriptId(0), 0, "make"));
    handler.limits.retries = Some(5);
    let before = Effort { retries: 1, ..Effort::default() };
    let kind = RaisedKind::Temporary(Some(Duration::from_secs(30)));
    let raised = Raised { kind, message: "no secret".into(), trace: None };
    let (outcome, line) =
        outcome::after(&handler, CallEnd::Raised(raised), before, Duration::from_mins(1));
    let attempt = FailedAttempt::of(&handler, before, &outcome).expect("it has failed");
    for level in [30, 10] {
        logger(Some("default")).failed(&line, None, (&handler, &attempt), level);
    }
}

#[tokio::test(start_paused = true)]
async fn lines_of_failed_attempts_are_in_our_own_words_except_in_the_format_of_kopf() {
    check(
        options(LogFormat::Plain),
        failed_attempt,
        &expect![[r"
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
        "]],
    );
    check(
        options(LogFormat::Json),
        failed_attempt,
        &expect![[r#"
            {"message": "Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret", "timestamp": "2026-11-21T04:10:37.849026+00:00", "object": {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "kopf-example-1", "uid": "b995", "namespace": "default"}, "severity": "warn", "logger": "objects", "handler": "make", "script": "test", "attempt": 2}
        "#]],
    );
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = {
        let lines = Arc::clone(&lines);
        move |line: &str| lines.lock().push_str(line)
    };
    let clock = Clock::starting_at("2026-11-21T04:10:37.849026Z".parse().expect("a timestamp"));
    let kopf = subscriber(options(LogFormat::Kopf), clock, Box::new(sink));
    tracing::subscriber::with_default(kopf, failed_attempt);
    let lines = lines.lock().clone();
    let wanted = "[ERROR   ] [default/kopf-example-1] Handler 'make' failed temporarily: no secret";
    assert_eq!(lines.matches(wanted).count(), 2, "{lines}");
}

#[tokio::test(start_paused = true)]
async fn lines_that_repeat_are_counted() {
    check(
        options(LogFormat::Plain),
        || (0..40).for_each(|_| failed_attempt()),
        &expect![[r"
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
            [default/kopf-example-1] Handler 'make' failed temporarily (attempt 2 of 5), retrying in 30 s: no secret
        "]],
    );
}

#[test]
fn levels_change_while_the_log_is_written_also_for_one_script() {
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&lines);
    let write = Box::new(move |line: &str| sink.lock().push_str(line));
    let writer = Arc::new(super::LogWriter::new(options(LogFormat::Plain), Clock::system(), write));
    let log = || {
        tracing::debug!(target: "kopf.watch", "debug");
        tracing::event!(target: "kopf.objects", Level::DEBUG, call.script = "a.lua", message = "debug of a");
        tracing::event!(target: "kopf.objects", Level::INFO, call.script = "b.lua", message = "info of b");
        tracing::error!(target: "kopf.watch", "error");
        tracing::warn!(target: "tower", "library");
        std::mem::take(&mut *lines.lock())
    };
    // With only one subscriber, `tracing` would use its cached decision.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    tracing::subscriber::with_default(super::registry(Arc::clone(&writer)), || {
        assert_eq!(log(), "info of b\nerror\nlibrary\n");
        writer.set_level(Some("a.lua"), "debug").expect("a level");
        assert_eq!(log(), "debug of a\ninfo of b\nerror\nlibrary\n");
        writer.set_level(None, "error").expect("a level");
        assert_eq!(log(), "debug of a\nerror\nlibrary\n");
        writer.set_level(Some("a.lua"), "default").expect("a level");
        writer.set_level(None, "debug").expect("a level");
        assert_eq!(log(), "debug\ndebug of a\ninfo of b\nerror\nlibrary\n");
        writer.set_level(None, "default").expect("a level");
        assert_eq!(log(), "info of b\nerror\nlibrary\n");
        assert!(writer.set_level(None, "loud").is_err());
        for number in 0..100 {
            writer.set_level(Some(&number.to_string()), "info").expect("a level");
        }
        assert!(writer.set_level(Some("one more"), "info").is_err());
        assert_eq!(writer.levels().scripts.len(), 100);
    });
}
