//! Bodies of writes: JSON and YAML, for native and custom kinds, and the validation of their metadata.
#![no_main]

use kopf_apiserver::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    fuzzing::decode(*kind, body);
});
