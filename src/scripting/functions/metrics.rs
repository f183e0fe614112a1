//! `metrics`: numbers of the script, which Prometheus reads at `/metrics`.

use serde_json::Value;

use super::Call;
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome},
        types::{Library, Parameter, Type, immediate, optional, required},
    },
    values::text::shown,
};
use crate::telemetry::{SeriesChange, SeriesLabels};

const NAME: Parameter = required(
    "name",
    Type::Name,
    "Lowercase letters, digits and `_`, at most 100 bytes; anything else is an error. It is prefixed with `kopf_script_` and the name of the script's file.",
);
const LABELS: Parameter = optional(
    "labels",
    Type::Map,
    "Names and values: at most 20 labels, each value at most 200 bytes; more is an error. Use few different values: a script may have 1000 series.",
);
const HELP: Parameter = optional(
    "help",
    Type::Text,
    "One line of documentation, at most 1000 bytes; a longer one is an error.",
);
/// Maximum bytes of the help line.
const HELP_MAX: usize = 1000;
/// The default buckets, in seconds, because most histograms measure durations.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub(super) const LIBRARY: Library = Library {
    name: "metrics",
    doc: "Prometheus metrics of the script, served at /metrics. They are kept during a reload, and removed with the script.",
    functions: &[
        immediate(
            "counter",
            "Increases a counter: `metrics.counter(\"backups_total\", 1, {labels = {result = \"ok\"}})`.",
            &[NAME, optional("by", Type::Number, "The increment, at least 0; default: 1.")],
            Type::Nothing,
            |call| {
                let by = call.number("by").unwrap_or(1.0);
                if by < 0.0 {
                    return Err(format!("`by`: expected a number of at least 0, got {by}").into());
                }
                change(call, SeriesChange::Count(by))
            },
        )
        .with(&[LABELS, HELP]),
        immediate(
            "gauge",
            "Sets a gauge, a number that can go up and down: `metrics.gauge(\"queue_length\", 5)`.",
            &[NAME, required("value", Type::Number, "The current number.")],
            Type::Nothing,
            |call| change(call, SeriesChange::Set(call.number("value").unwrap_or_default())),
        )
        .with(&[LABELS, HELP]),
        immediate(
            "gauge_add",
            "Increases or decreases a gauge.",
            &[NAME, required("by", Type::Number, "The difference.")],
            Type::Nothing,
            |call| change(call, SeriesChange::Add(call.number("by").unwrap_or_default())),
        )
        .with(&[LABELS, HELP]),
        immediate(
            "histogram",
            "Adds an observation to a histogram: `metrics.histogram(\"backup_seconds\", took)`.",
            &[NAME, required("value", Type::Number, "The value.")],
            Type::Nothing,
            |call| {
                let buckets = buckets(call)?;
                change(call, SeriesChange::Observe(call.number("value").unwrap_or_default(), buckets))
            },
        )
        .with(&[
            LABELS,
            HELP,
            optional("buckets", Type::List, "Upper bounds, ascending, at most 50, more are an error; default: from 0.005 to 10."),
        ]),
    ],
};

fn change(call: &Call, change: SeriesChange) -> Outcome {
    let name = call.text("name");
    if !is_name(name) {
        return Err(format!(
            "`name`: expected lowercase letters, digits and `_`, beginning with a letter, got \"{name}\""
        )
        .into());
    }
    let labels = labels(call)?;
    let help = call.text("help");
    if help.len() > HELP_MAX {
        return Err(format!("`help`: longer than {HELP_MAX} bytes").into());
    }
    // The page adds the suffix to each counter.
    let name = match change {
        SeriesChange::Count(_) => name.strip_suffix("_total").unwrap_or(name),
        SeriesChange::Set(_) | SeriesChange::Add(_) | SeriesChange::Observe(..) => name,
    };
    call.surroundings.series.change(name, help, labels, change)?;
    Ok(Value::Null.into())
}

fn is_name(text: &str) -> bool {
    /// Longer names are data.
    const BYTES_MAX: usize = 100;
    let fits = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    text.len() <= BYTES_MAX
        && text.bytes().all(fits)
        && text.bytes().next().is_some_and(|it| it.is_ascii_lowercase())
}

fn labels(call: &Call) -> Result<SeriesLabels, Failure> {
    /// Longer values are data.
    const BYTES_MAX: usize = 200;
    /// A series with more labels is data.
    const COUNT_MAX: usize = 20;
    let mut labels = SeriesLabels::new();
    if call.map("labels").is_some_and(|it| it.len() > COUNT_MAX) {
        return Err(format!("`labels`: more than {COUNT_MAX}").into());
    }
    for (name, value) in call.map("labels").into_iter().flatten() {
        if !is_name(name) || name == "le" {
            return Err(format!("`labels`: \"{name}\" is not a valid label name").into());
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(
                    format!("`labels.{name}`: expected a string, got {}", shown(value)).into()
                );
            }
        };
        if value.len() > BYTES_MAX {
            return Err(format!("`labels.{name}`: longer than {BYTES_MAX} bytes").into());
        }
        labels.push((name.clone(), value));
    }
    labels.sort();
    Ok(labels)
}

fn buckets(call: &Call) -> Result<Vec<f64>, Failure> {
    /// Each of them is a series.
    const COUNT_MAX: usize = 50;
    if !call.has("buckets") {
        return Ok(BUCKETS.to_vec());
    }
    let bounds: Option<Vec<f64>> = call.list("buckets").iter().map(Value::as_f64).collect();
    let is_right =
        |it: &Vec<f64>| !it.is_empty() && it.len() <= COUNT_MAX && it.is_sorted_by(|a, b| a < b);
    bounds.filter(is_right).ok_or_else(|| {
        let got = shown(call.value("buckets"));
        format!("`buckets`: expected at most {COUNT_MAX} ascending numbers, got {got}").into()
    })
}
