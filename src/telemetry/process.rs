//! The resources that the process uses, with the names that Prometheus clients have.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

/// The usage of the process at this moment. Unknown numbers are not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// CPU time since the start, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Memory in use, in bytes.
    pub resident_bytes: Option<u64>,
    /// Address space, in bytes.
    pub virtual_bytes: Option<u64>,
    /// Open files and connections.
    pub open_fds: Option<u64>,
    /// The limit of open files and connections.
    pub max_fds: Option<u64>,
    /// The start, in seconds of Unix time.
    pub start_seconds: Option<f64>,
}

type UsageReader = Arc<dyn Fn() -> ProcessUsage + Send + Sync>;

/// The reader of the usage, called when the page is requested. Clones share it; without a reader, nothing is shown.
#[derive(Clone, Default)]
pub(super) struct ProcessSeries(Arc<Mutex<Option<UsageReader>>>);

impl ProcessSeries {
    /// Sets the function that reads the usage; it must be quick.
    pub(super) fn read_with(&self, read: impl Fn() -> ProcessUsage + Send + Sync + 'static) {
        *self.0.lock() = Some(Arc::new(read));
    }

    /// Adds the numbers to a page.
    pub(super) fn register(&self, page: &mut Registry) {
        let Some(read) = self.0.lock().clone() else { return };
        let usage = read();
        let sizes = [
            ("process_resident_memory", "Memory in use", usage.resident_bytes),
            ("process_virtual_memory", "Address space", usage.virtual_bytes),
        ];
        for (name, help, bytes) in sizes {
            if let Some(bytes) = bytes {
                page.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(bytes));
            }
        }
        let counts = [
            ("process_open_fds", "Open files and connections", usage.open_fds),
            ("process_max_fds", "The limit of open files and connections", usage.max_fds),
        ];
        for (name, help, count) in counts {
            if let Some(count) = count {
                page.register(name, help, ConstGauge::new(count));
            }
        }
        if let Some(seconds) = usage.start_seconds {
            let help = "The start of the process in Unix time";
            let gauge = ConstGauge::new(seconds);
            page.register_with_unit("process_start_time", help, Unit::Seconds, gauge);
        }
        if let Some(seconds) = usage.cpu_seconds {
            let counter = ConstCounter::new(seconds);
            page.register_with_unit(
                "process_cpu",
                "CPU time of the process",
                Unit::Seconds,
                counter,
            );
        }
    }
}

impl fmt::Debug for ProcessSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the usage of the process")
    }
}
