//! Lua scripts through the checker, and through the requests of an editor at some position: both end, and neither panics.
#![no_main]

use kopf::{
    checker::{
        self, Knowledge,
        editor::{EditorRequest, respond},
    },
    scripting::Source,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((place, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let source = Source::alone("x.lua", text.as_ref());
    let knowledge = Knowledge::default();
    let failed = |why: &str| assert!(!why.contains("failed"), "{why}");
    checker::check(std::slice::from_ref(&source), &knowledge).unchecked.iter().for_each(|it| failed(it));
    let at = text.len() * usize::from(*place) / 255;
    for request in [EditorRequest::Findings, EditorRequest::Completions(at), EditorRequest::Definition(at)] {
        respond(&source, &knowledge, request).unchecked.iter().for_each(|it| failed(it));
    }
});
