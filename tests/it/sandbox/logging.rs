//! Lines of the log have a bound, the same in both languages.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use kopf::logic::outcome::Ended;
use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

use super::counting::in_both;
use crate::lua::Script;

/// What runtimes of containers take as one line.
const LINE_MAX: usize = 16 * 1024;

/// The message and the fields of each line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

#[derive(Clone, Default)]
struct Line {
    message: String,
    extra: String,
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().push(line);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "extra" => self.extra = format!("{value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "extra" => value.clone_into(&mut self.extra),
            _ => {}
        }
    }
}

/// Takes down the lines of this thread while the guard lives.
fn capture(log: &Log) -> DefaultGuard {
    /// With one subscriber only, tracing asks that of whoever logs first, which may be another test without any.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    tracing::dispatcher::set_default(&Dispatch::new(
        tracing_subscriber::registry().with(log.clone()),
    ))
}

#[test]
fn a_long_line_is_cut_and_its_large_fields_are_left_out() {
    let play = async |script: Script| {
        let log = Log::default();
        let capturing = capture(&log);
        let ended = script.call("talks").await.ended;
        drop(capturing);
        assert_eq!(ended, Ended::Returned(None));
        let lines = log.0.lock().clone();
        let long: Vec<_> = lines.iter().filter(|it| it.message.starts_with("xxx")).collect();
        assert_eq!(long.len(), 4, "{}", lines.len());
        for line in long {
            assert!(line.message.ends_with("… (100000 bytes in all)"), "{}", line.message.len());
            assert!(line.message.len() < LINE_MAX + 100, "{}", line.message.len());
        }
        let fields: Vec<_> = lines.iter().filter(|it| it.message == "fields").collect();
        assert_eq!(fields.len(), 2);
        for line in fields {
            assert_eq!(line.extra, r#"{"fields_left_out":"more than 16 KiB as JSON"}"#);
        }
    };
    in_both(
        (
            "kopf.on_update('kopfexamples', { id = 'talks' }, function(ctx)
            local text = string.rep('x', 100000)
            ctx.logger:info(text)
            ctx.logger:error(text, { a = 1 })
            log.warning(text)
            log.info(text, { a = text })
            ctx.logger:info('fields', { a = text })
            log.info('fields', { a = text })
        end)",
            "kopf::on_update(`kopfexamples`, #{ id: `talks` }, |ctx| {
            let text = strings::repeated(`x`, 100000);
            ctx.logger.info(text);
            ctx.logger.error(text, #{ a: 1 });
            log::warning(text);
            log::info(text, #{ a: text });
            ctx.logger.info(`fields`, #{ a: text });
            log::info(`fields`, #{ a: text });
        });",
        ),
        64 << 20,
        play,
    );
}
