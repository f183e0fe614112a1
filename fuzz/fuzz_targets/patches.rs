//! Patches of all types on an object with and without a schema, and the validation of the results.
#![no_main]

use kopf_apiserver::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    fuzzing::patch(*kind, body);
});
