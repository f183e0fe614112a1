//! Lines of the log have a maximum length, the same in both languages.

use kopf::{logic::handlers::outcome::CallEnd, testing::LogCapture};

use super::counting::in_both;
use crate::scripting::engines::Script;

/// The maximum length of one line in container runtimes.
const LINE_MAX: usize = 16 * 1024;

#[test]
fn a_long_line_is_cut_and_its_large_fields_are_left_out() {
    let play = async |script: Script| {
        let log = LogCapture::of("");
        let ended = script.call("talks").await.ended;
        assert_eq!(ended, CallEnd::Returned(None));
        let lines = log.lines();
        let long: Vec<_> = lines.iter().filter(|it| it.message.starts_with("xxx")).collect();
        assert_eq!(long.len(), 4, "{}", lines.len());
        for line in long {
            assert!(line.message.ends_with("… (100000 bytes in all)"), "{}", line.message.len());
            assert!(line.message.len() < LINE_MAX + 100, "{}", line.message.len());
        }
        let fields: Vec<_> = lines.iter().filter(|it| it.message == "fields").collect();
        assert_eq!(fields.len(), 2);
        for line in fields {
            let extra = line.field("extra").unwrap_or_default();
            assert_eq!(extra, r#"{"fields_left_out":"more than 16 KiB as JSON"}"#);
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
