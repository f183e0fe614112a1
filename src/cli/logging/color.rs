//! Decides about colors of log lines.

use anstyle::{AnsiColor, Effects, Style};
use tracing::Level;

use crate::cli::{args::ColorWhen, environment::Lookup};

/// The style of secondary parts: times, names of loggers, traces.
pub(super) const ASIDE: Style = Style::new().effects(Effects::DIMMED);

/// Returns whether to use colors, by the conventions of terminals: <https://no-color.org> and <https://bixense.com/clicolors>.
pub(super) fn decide(when: ColorWhen, lookup: Lookup<'_>, is_terminal: bool) -> ColorWhen {
    let set = |name: &str| lookup(name).is_some_and(|it| !it.is_empty());
    let is = |name: &str, text: &str| lookup(name).is_some_and(|it| it == text);
    match when {
        ColorWhen::Always | ColorWhen::Never => when,
        ColorWhen::Auto if set("NO_COLOR") => ColorWhen::Never,
        ColorWhen::Auto if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => ColorWhen::Always,
        ColorWhen::Auto if is("CLICOLOR", "0") || is("TERM", "dumb") || !is_terminal => {
            ColorWhen::Never
        }
        ColorWhen::Auto => ColorWhen::Always,
    }
}

/// Returns the style of a level.
pub(super) fn of_level(level: Level) -> Style {
    match level {
        Level::ERROR => AnsiColor::Red.on_default().bold(),
        Level::WARN => AnsiColor::Yellow.on_default().bold(),
        Level::INFO => AnsiColor::Green.on_default(),
        Level::DEBUG | Level::TRACE => AnsiColor::Blue.on_default(),
    }
}

/// Returns the style of a message in a line without its level.
pub(super) fn of_message(level: Level) -> Style {
    match level {
        Level::ERROR => AnsiColor::Red.on_default(),
        Level::WARN => AnsiColor::Yellow.on_default(),
        Level::INFO => Style::new(),
        Level::DEBUG | Level::TRACE => ASIDE,
    }
}
