//! Reads the schedules of `kopf.every` and `kopf.cron`.

use std::{sync::Arc, time::Duration};

use super::{
    super::handler::{Background, InitialDelay, Kind, Times},
    Argument, DeclareError,
    values::{DURATION, Options, duration, function, value},
};
use crate::logic::schedules::{Cron, CronError, due::Missed};

/// The shortest interval: each run is two requests.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Maximum length of an id, which is stored with the slots.
const ID_MAX: usize = 100;

/// Reads the schedule of `kopf.every` or `kopf.cron`, its only positional argument.
pub(super) fn apply(
    background: &mut Background,
    kind: Kind,
    (positional, id): (&[Argument], &str),
    options: &Options<'_>,
) -> Result<(), DeclareError> {
    if id.len() > ID_MAX {
        let message = format!("kopf.{}: the id is longer than {ID_MAX} bytes", kind.name());
        return Err(DeclareError::new(message, "the option `id` sets a shorter one"));
    }
    if kind == Kind::Cron {
        let text = match positional {
            [one] => value(one).and_then(|it| it.as_str()),
            _ => None,
        };
        let text = text.ok_or_else(|| {
            let form = "kopf.cron(\"0 3 * * *\", OPTIONS, FUNCTION); OPTIONS can be omitted";
            DeclareError::new("kopf.cron: the first argument must be a cron expression", form)
        })?;
        let zone = options.text("timezone")?;
        let cron =
            Cron::parse(text, zone.as_deref()).map_err(|it| declare_error(&it, "kopf.cron"))?;
        background.times = Some(Times::Cron(Arc::new(cron)));
        return Ok(());
    }
    let interval = match positional {
        [one] => duration(one),
        _ => None,
    };
    let interval = interval.ok_or_else(|| {
        let form = "kopf.every(\"15m\", OPTIONS, FUNCTION); OPTIONS can be omitted";
        DeclareError::new(format!("kopf.every: the first argument must be {DURATION}"), form)
    })?;
    if interval < INTERVAL_MIN {
        let message = format!("kopf.every: the interval must be at least {INTERVAL_MIN:?}");
        return Err(DeclareError::new(message, "for a loop without pauses, use a daemon"));
    }
    if let Some(InitialDelay::Computed(_)) = background.initial_delay {
        let message = format!("option `initial_delay` must be {DURATION}");
        return Err(DeclareError::new(
            message,
            "functions of `initial_delay` are for daemons and timers",
        ));
    }
    background.interval = Some(interval);
    Ok(())
}

/// Reads the option `schedule` of timers.
pub(super) fn times(options: &Options<'_>) -> Result<Option<Times>, DeclareError> {
    let Some(given) =
        options.read("schedule", "a cron expression, or a function", |it| match function(it) {
            Some(function) => Some(Err(function)),
            None => Some(Ok(value(it)?.as_str()?.to_owned())),
        })?
    else {
        return Ok(None);
    };
    if let Some(other) = ["interval", "idle", "sharp"].into_iter().find(|it| options.has(it)) {
        let message = format!("the options `schedule` and `{other}` cannot be combined");
        return Err(DeclareError::new(message, "remove one of them"));
    }
    let zone = options.text("timezone")?;
    let cron = |text: &str| {
        Cron::parse(text, zone.as_deref()).map_err(|it| declare_error(&it, "option `schedule`"))
    };
    match given {
        Ok(text) => Ok(Some(Times::Cron(Arc::new(cron(&text)?)))),
        Err(function) => {
            // The zone is checked now, the expression when it is known.
            drop(cron("@daily")?);
            Ok(Some(Times::Computed(function, zone)))
        }
    }
}

/// Reads the option `missed`.
pub(super) fn missed(options: &Options<'_>) -> Result<Missed, DeclareError> {
    let missed =
        options.read("missed", "\"skip\" or \"once\"", |it| match value(it)?.as_str()? {
            "skip" => Some(Missed::Skip),
            "once" => Some(Missed::Once),
            _ => None,
        })?;
    Ok(missed.unwrap_or_default())
}

fn declare_error(error: &CronError, place: &str) -> DeclareError {
    DeclareError::new(format!("{place}: {}", error.message), error.hint.clone())
}
