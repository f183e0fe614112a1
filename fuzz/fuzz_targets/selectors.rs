//! Label and field selectors, in unparsed queries.
#![no_main]

use kopf_apiserver::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::select(&String::from_utf8_lossy(data));
});
