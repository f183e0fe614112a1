//! Values of the host, passed through scripts in both languages and back: equal, or rejected with the same message.
#![no_main]

use kopf::testing::seam::{Seam, value_of};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SEAM: Seam = Seam::default();
}

fuzz_target!(|data: &[u8]| {
    let value = value_of(data);
    SEAM.with(|seam| seam.check(&value)).unwrap_or_else(|problem| panic!("{problem}"));
});
