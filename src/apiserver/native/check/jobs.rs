//! Validation of jobs and cron jobs.

use serde_json::Value;

use super::{
    FieldValue, Problems, immutable, maybe_one_of, meta, names, not_negative, one_of, pods, status,
};
use crate::{object, refusal::ValidationProblem};

pub(in crate::native) fn job(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    generated(&mut out, new, &spec);
    self::spec(&mut out, &spec);
    let selector = spec.get("selector");
    if selector.is_set() {
        meta::selector(&mut out, &selector);
    } else {
        out.push(selector.required(""));
    }
    let labels = spec.get("template").get("metadata").get("labels");
    let mut broken = Problems::new();
    meta::selector(&mut broken, &selector);
    let selects = selector.is_set() && meta::selects(selector.value, labels.value);
    if broken.is_empty() && !selects {
        let detail = "`selector` does not match template `labels`";
        out.push(labels.invalid(detail));
    }
    if let Some(old) = old {
        let old = FieldValue::root(old).get("spec");
        immutable(&mut out, &spec.get("completions"), &old.get("completions"));
        immutable(&mut out, &spec.get("completionMode"), &old.get("completionMode"));
        immutable(&mut out, &spec.get("podReplacementPolicy"), &old.get("podReplacementPolicy"));
        if selector.value != old.get("selector").value {
            out.push(selector.invalid("field is immutable"));
        }
        let template = spec.get("template");
        if template.value != old.get("template").value {
            out.push(template.invalid("field is immutable"));
        }
    }
    status::job(&mut out, new, old);
    out
}

/// Checks that the template of a job has the labels that the server generated for this job.
fn generated(out: &mut Problems, job: &Value, spec: &FieldValue<'_>) {
    if spec.get("manualSelector").flag() || !spec.get("selector").is_set() {
        return;
    }
    let labels = spec.get("template").get("metadata").get("labels");
    let (uid, name) = (object::meta(job, "uid"), object::meta(job, "name"));
    let expected = [
        ("batch.kubernetes.io/controller-uid", uid),
        ("controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
        ("job-name", name),
    ];
    for (key, value) in expected {
        let path = labels.path.clone();
        match labels.value.get(key) {
            None => {
                out.push(ValidationProblem::required(
                    format!("{path}[{key}]"),
                    format!("must be '{value}'"),
                ));
            }
            Some(found) if found != value => {
                let path = format!("{path}[{key}]");
                let detail = format!("must be '{value}'");
                out.push(ValidationProblem::invalid(path, labels.value.clone(), detail));
            }
            Some(_) => {}
        }
    }
    let selector = spec.get("selector");
    let own: Value = expected.into_iter().collect();
    if !meta::selects(selector.value, &own) {
        out.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn spec(out: &mut Problems, it: &FieldValue<'_>) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        not_negative(out, &it.get(field));
    }
    let mode = it.get("completionMode");
    maybe_one_of(out, &mode, &["NonIndexed", "Indexed"]);
    let per_index = it.get("backoffLimitPerIndex");
    not_negative(out, &per_index);
    if per_index.is_set() && mode.text() != "Indexed" {
        out.push(per_index.invalid("requires indexed completion mode"));
    }
    let completions = it.get("completions");
    if mode.text() == "Indexed" && !completions.is_set() {
        out.push(completions.required("when completion mode is Indexed"));
    }
    let replacement = it.get("podReplacementPolicy");
    maybe_one_of(out, &replacement, &["Failed", "TerminatingOrFailed"]);
    pods::template(out, &it.get("template"));
    let policy = it.get("template").get("spec").get("restartPolicy");
    match policy.text() {
        "OnFailure" | "Never" => {}
        "" | "Always" => out.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        _ => out.push(policy.unsupported(&["OnFailure", "Never"])),
    }
}

pub(in crate::native) fn cron_job(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let spec = FieldValue::root(new).get("spec");
    let schedule = spec.get("schedule");
    let has_zone = schedule.text().starts_with("TZ=") || schedule.text().starts_with("CRON_TZ=");
    if schedule.is_empty() {
        out.push(schedule.required(""));
    } else if has_zone && old.is_none() {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        out.push(schedule.invalid(detail));
    } else if let Err(detail) = self::schedule(schedule.text()) {
        out.push(schedule.invalid(detail));
    }
    let zone = spec.get("timeZone");
    if zone.is_set() && jiff::tz::TimeZone::get(zone.text()).is_err() {
        out.push(zone.invalid(format!("unknown time zone {}", zone.text())));
    }
    not_negative(&mut out, &spec.get("startingDeadlineSeconds"));
    one_of(&mut out, &spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.get("jobTemplate").get("spec");
    self::spec(&mut out, &job);
    let selector = job.get("selector");
    if selector.is_set() {
        out.push(selector.invalid("`selector` will be auto-generated"));
    }
    if job.get("manualSelector").flag() {
        out.push(job.get("manualSelector").unsupported(&["nil", "false"]));
    }
    not_negative(&mut out, &spec.get("successfulJobsHistoryLimit"));
    not_negative(&mut out, &spec.get("failedJobsHistoryLimit"));
    if old.is_none() && object::meta(new, "name").len() > 52 {
        let name = FieldValue::root(new).get("metadata").get("name");
        out.push(name.invalid("must be no more than 52 characters"));
    }
    out
}

/// The five fields of a schedule: minimum, maximum, names of values.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const MACROS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Parses a schedule of cron. The errors are those of the real server.
fn schedule(text: &str) -> Result<(), String> {
    let text = match text.strip_prefix("TZ=") {
        Some(rest) => rest.split_once(' ').map_or("", |it| it.1).trim(),
        None => text,
    };
    if text.starts_with('@') {
        return if MACROS.contains(&text) {
            Ok(())
        } else if let Some(duration) = text.strip_prefix("@every ") {
            let good = duration.starts_with(|it: char| it.is_ascii_digit());
            let wrong =
                || format!("failed to parse duration {text}: time: invalid duration {duration:?}");
            if good { Ok(()) } else { Err(wrong()) }
        } else {
            Err(format!("unrecognized descriptor: {text}"))
        };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        field.split(',').filter(|it| !it.is_empty()).try_for_each(|it| range(it, bounds))?;
    }
    Ok(())
}

/// Parses `*`, `5` or `1-5`, each with an optional `/2`.
fn range(text: &str, (least, most, words): (u32, u32, &[&str])) -> Result<(), String> {
    let (span, step) = match text.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {text}")),
        Some((span, step)) => (span, Some(step)),
        None => (text, None),
    };
    let value = |it: &str| {
        let word = words.iter().zip(least..).find(|word| it.eq_ignore_ascii_case(word.0));
        word.map_or_else(|| number(it), |word| Ok(word.1))
    };
    let (from, to) = if matches!(span, "*" | "?") {
        (least, most)
    } else if let Some((from, to)) = span.split_once('-') {
        if to.contains('-') {
            return Err(format!("too many hyphens: {text}"));
        }
        (value(from)?, value(to)?)
    } else {
        let from = value(span)?;
        (from, if step.is_some() { most } else { from })
    };
    let step = step.map_or(Ok(1), number)?;
    if from < least {
        return Err(format!("beginning of range ({from}) below minimum ({least}): {text}"));
    }
    if to > most {
        return Err(format!("end of range ({to}) above maximum ({most}): {text}"));
    }
    if from > to {
        return Err(format!("beginning of range ({from}) beyond end of range ({to}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number(text: &str) -> Result<u32, String> {
    // The message of Go, independent of the error of Rust.
    text.parse().ok().ok_or_else(|| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}
