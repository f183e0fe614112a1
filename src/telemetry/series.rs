//! The metrics that a script defines itself: under its own prefix, bounded, and removed with the script.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak, atomic::AtomicU64},
};

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::logic::text::size;

/// Maximum number of combinations of names and labels per script.
pub const SERIES_MAX: usize = 1_000;

/// Maximum number of bytes that all series of one script may take on the page.
const PAGE_MAX: usize = 1 << 20;

/// Label names and values, sorted by name.
pub type SeriesLabels = Vec<(String, String)>;

/// The series of all scripts, by prefix. A table exists as long as its [`ScriptSeries`].
#[derive(Clone, Debug, Default)]
pub(super) struct AllSeries(Arc<Mutex<BTreeMap<String, Weak<Mutex<SeriesTable>>>>>);

/// The series of one script. Clones share them.
#[derive(Clone, Default)]
pub struct ScriptSeries {
    prefix: String,
    table: Arc<Mutex<SeriesTable>>,
}

#[derive(Default)]
struct SeriesTable {
    families: BTreeMap<String, SeriesFamily>,
    series: usize,
    /// The approximate bytes of their lines.
    bytes: usize,
}

struct SeriesFamily {
    help: String,
    numbers: FamilyMetric,
    /// The number of lines of one series.
    lines: usize,
    known: std::collections::BTreeSet<SeriesLabels>,
}

#[derive(Clone)]
enum FamilyMetric {
    Counter(Family<SeriesLabels, Counter<f64, AtomicU64>>),
    Gauge(Family<SeriesLabels, Gauge<f64, AtomicU64>>),
    Histogram(Family<SeriesLabels, Histogram, Buckets>),
}

#[derive(Clone)]
struct Buckets(Arc<[f64]>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// A change of one number.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesChange {
    /// Increments a counter by this number.
    Count(f64),
    /// Sets a gauge to this number.
    Set(f64),
    /// Increments or decrements a gauge.
    Add(f64),
    /// Adds a value to a histogram. The upper bounds, ascending, are those of the first call.
    Observe(f64, Vec<f64>),
}

impl AllSeries {
    /// Returns the series of the script with this prefix: the same ones as long as they have an owner.
    pub(super) fn of_script(&self, prefix: String) -> ScriptSeries {
        let mut all = self.lock();
        all.retain(|_, it| it.strong_count() > 0);
        let table = all.get(&prefix).and_then(Weak::upgrade).unwrap_or_default();
        all.insert(prefix.clone(), Arc::downgrade(&table));
        ScriptSeries { prefix, table }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Mutex<SeriesTable>>>> {
        self.0.lock()
    }

    /// Adds all series to a page.
    pub(super) fn register(&self, page: &mut Registry) {
        let all: Vec<_> =
            self.lock().iter().map(|(it, table)| (it.clone(), table.upgrade())).collect();
        for (prefix, table) in all {
            let Some(table) = table else { continue };
            let table = table.lock();
            for (name, SeriesFamily { help, numbers, .. }) in &table.families {
                let name = format!("{prefix}_{name}");
                match numbers.clone() {
                    FamilyMetric::Counter(it) => page.register(name, help, it),
                    FamilyMetric::Gauge(it) => page.register(name, help, it),
                    FamilyMetric::Histogram(it) => page.register(name, help, it),
                }
            }
        }
    }
}

impl ScriptSeries {
    /// Returns the prefix: names on the page begin with it and `_`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Changes a metric. The first change of a name determines its kind.
    ///
    /// # Errors
    /// Fails if the metric is of another kind, or there would be too many series.
    pub fn change(
        &self,
        name: &str,
        help: &str,
        labels: SeriesLabels,
        change: SeriesChange,
    ) -> Result<(), String> {
        let mut table = self.table.lock();
        let SeriesTable { families, series, bytes } = &mut *table;
        let is_new = families.get(name).is_none_or(|it| !it.known.contains(&labels));
        if is_new && *series >= SERIES_MAX {
            return Err(format!(
                "the script already has {SERIES_MAX} series: use labels with few values, not names of objects"
            ));
        }
        let lines = families.get(name).map_or_else(|| change.lines(), |it| it.lines);
        let line = self.prefix.len() + name.len() + text_of(&labels) + LINE;
        let mut more = if is_new { lines.saturating_mul(line) } else { 0 };
        if !families.contains_key(name) {
            more += help.len() + 2 * (self.prefix.len() + name.len() + LINE);
        }
        if bytes.saturating_add(more) > PAGE_MAX {
            return Err(format!(
                "the metrics of this script would take more than {} on the page: use fewer labels, buckets or series",
                size::shown(PAGE_MAX)
            ));
        }
        let named = families.entry(name.to_owned()).or_insert_with(|| SeriesFamily {
            help: if help.is_empty() { "Defined by a script".into() } else { help.into() },
            numbers: FamilyMetric::of(&change),
            lines,
            known: std::collections::BTreeSet::new(),
        });
        match (&named.numbers, change) {
            (FamilyMetric::Counter(it), SeriesChange::Count(by)) => {
                it.get_or_create(&labels).inc_by(by);
            }
            (FamilyMetric::Gauge(it), SeriesChange::Set(to)) => {
                it.get_or_create(&labels).set(to);
            }
            (FamilyMetric::Gauge(it), SeriesChange::Add(by)) => {
                it.get_or_create(&labels).inc_by(by);
            }
            (FamilyMetric::Histogram(it), SeriesChange::Observe(value, _)) => {
                it.get_or_create(&labels).observe(value);
            }
            (numbers, _) => return Err(format!("`{name}` is already a {}", numbers.kind())),
        }
        if named.known.insert(labels) {
            *series += 1;
        }
        *bytes += more;
        Ok(())
    }
}

/// The bytes of a line besides its names and values: suffixes, quotes, the bound of a bucket, and the number.
const LINE: usize = 64;

/// Returns the bytes of the labels as written. A line break or a quote in a value takes two bytes.
fn text_of(labels: &SeriesLabels) -> usize {
    labels.iter().map(|(name, value)| name.len() + 2 * value.len() + 4).sum()
}

impl SeriesChange {
    /// Returns the number of lines of a series that begins with this change.
    fn lines(&self) -> usize {
        match self {
            SeriesChange::Count(_) | SeriesChange::Set(_) | SeriesChange::Add(_) => 1,
            // One per bound, and those of infinity, the sum and the count.
            SeriesChange::Observe(_, bounds) => bounds.len() + 3,
        }
    }
}

impl FamilyMetric {
    fn of(change: &SeriesChange) -> Self {
        match change {
            SeriesChange::Count(_) => FamilyMetric::Counter(Family::default()),
            SeriesChange::Set(_) | SeriesChange::Add(_) => FamilyMetric::Gauge(Family::default()),
            SeriesChange::Observe(_, bounds) => {
                let buckets = Buckets(bounds.as_slice().into());
                FamilyMetric::Histogram(Family::new_with_constructor(buckets))
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            FamilyMetric::Counter(_) => "counter",
            FamilyMetric::Gauge(_) => "gauge",
            FamilyMetric::Histogram(_) => "histogram",
        }
    }
}

impl fmt::Debug for ScriptSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)
    }
}

impl fmt::Debug for SeriesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} series", self.series)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::PAGE_MAX;
    use crate::telemetry::{Metrics, SERIES_MAX, SeriesChange};

    fn page(metrics: &Metrics) -> String {
        let (mut page, mut text) = (Registry::default(), String::new());
        metrics.register_scripts(&mut page);
        encode(&mut text, &page).unwrap();
        text
    }

    #[test]
    fn series_of_a_script_have_its_prefix_and_end_with_it() {
        let metrics = Metrics::default();
        let script = metrics.of_script("dir/My-app.lua");
        let labels = || vec![("result".to_owned(), "ok".to_owned())];
        script.change("backups", "Backups", labels(), SeriesChange::Count(2.0)).unwrap();
        script.change("queue", "", Vec::new(), SeriesChange::Set(3.0)).unwrap();
        script.change("queue", "", Vec::new(), SeriesChange::Add(-1.0)).unwrap();
        script
            .change("seconds", "", Vec::new(), SeriesChange::Observe(0.3, vec![0.1, 1.0]))
            .unwrap();
        let text = page(&metrics);
        for line in [
            "# HELP kopf_script_my_app_backups Backups.",
            "kopf_script_my_app_backups_total{result=\"ok\"} 2.0",
            "kopf_script_my_app_queue{} 2.0",
            "kopf_script_my_app_seconds_bucket{le=\"0.1\"} 0",
            "kopf_script_my_app_seconds_bucket{le=\"1.0\"} 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let text = script.change("queue", "", Vec::new(), SeriesChange::Count(1.0)).unwrap_err();
        assert_eq!(text, "`queue` is already a gauge");
        // The next generation of the script continues the series.
        let next = metrics.of_script("dir/My-app.lua");
        drop(script);
        next.change("backups", "", labels(), SeriesChange::Count(1.0)).unwrap();
        assert!(page(&metrics).contains("backups_total{result=\"ok\"} 3.0"));
        drop(next);
        assert_eq!(page(&metrics), "# EOF\n");
    }

    #[test]
    fn a_page_is_not_longer_than_counted() {
        let metrics = Metrics::default();
        let script = metrics.of_script("a.lua");
        let value = "\"\n".repeat(100);
        let refused = (0..SERIES_MAX).find_map(|number| {
            let number = ("number".to_owned(), number.to_string());
            let labels = vec![("long".to_owned(), value.clone()), number];
            let bounds: Vec<_> = (0..50).map(f64::from).collect();
            script.change("it", "", labels, SeriesChange::Observe(1.0, bounds)).err()
        });
        assert!(refused.unwrap().contains("more than 1 MiB on the page"));
        let length = page(&metrics).len();
        assert!((PAGE_MAX / 2..=PAGE_MAX).contains(&length), "{length}");
    }

    #[test]
    fn the_number_of_series_per_script_is_limited() {
        let script = Metrics::default().of_script("a.lua");
        let set = |value: usize| {
            let labels = vec![("name".to_owned(), value.to_string())];
            script.change("it", "", labels, SeriesChange::Set(1.0))
        };
        for value in 0..SERIES_MAX {
            set(value).unwrap();
        }
        assert!(set(SERIES_MAX).unwrap_err().contains("already has 1000 series"));
        set(0).unwrap();
    }
}
