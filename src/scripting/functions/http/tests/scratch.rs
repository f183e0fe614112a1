//! The options `to` and `from`: files instead of strings.

use super::*;

const HOST: &str = "127.0.0.1:PORT";
/// More than a response may have in memory by default.
const BULK: usize = 3 << 20;

fn to(path: &str, name: &str) -> String {
    own("get", path, &json!({ "to": name }))
}

fn from(name: &str) -> String {
    own("put", "/length", &json!({ "from": name }))
}

fn granted() -> [&'static str; 2] {
    [HOST, concat!("scratch ", env!("CARGO_MANIFEST_DIR"), "/target")]
}

#[test]
fn scratch_files_that_were_received_can_be_sent() {
    let length = json!({ "length": BULK, "kind": "application/octet-stream" });
    check(
        &granted(),
        &[
            (to("/bulk", "a"), Ok(("size", json!(BULK)))),
            (from("a"), Ok(("json", length.clone()))),
            // Again, and by another name.
            (to("/bulk", "../a b"), Ok(("body", Value::Null))),
            (from("../a b"), Ok(("json", length.clone()))),
            (
                own("post", "/moved?to=/length", &json!({ "from": "a" })),
                Ok(("json", length.clone())),
            ),
            (
                own("put", "/busy", &json!({ "from": "a", "retries": { "attempts": 3 } })),
                Ok(("body", json!("done"))),
            ),
            (to("/echo", "a"), Ok(("ok", json!(true)))),
            (
                from("c d e"),
                Err("`from`: there is no scratch file \"c d e\"; create it with the option `to`"),
            ),
            (from("../a_b"), Err("did you mean `../a b`?")),
            (
                own("put", "/length", &json!({ "from": "a", "body": "x" })),
                Err("`body` and `from`: expected only one of them"),
            ),
        ],
    );
}

#[test]
fn an_incomplete_file_does_not_replace_a_complete_one() {
    let length = json!({ "length": BULK, "kind": "application/octet-stream" });
    let small = json!({ "to": "a", "size": 1000 });
    check(
        &granted(),
        &[
            (to("/bulk", "a"), Ok(("status", json!(200)))),
            (to("/missing", "a"), Ok(("body", json!("gone")))),
            (to("/cut", "a"), Err("127.0.0.1")),
            (own("get", "/pours", &small), Err("the response is larger than 1000 bytes")),
            (
                own("get", "/drips", &json!({ "to": "a", "timeout": 0.2 })),
                Err("no complete response"),
            ),
            (from("a"), Ok(("json", length))),
        ],
    );
}

#[test]
fn the_files_of_a_script_have_limits() {
    let mut calls = vec![
        (to("/bulk", "a"), Ok(("status", json!(200)))),
        (
            to("/bulk", "b"),
            Err(
                "`to`: the scratch files of the script would be larger than 4 MiB (settings.sandbox.scratch_size)",
            ),
        ),
        (to("/pours", "c"), Err("larger than 4 MiB")),
        // What was not kept does not count.
        (to("/large", "b"), Ok(("size", json!(2000)))),
    ];
    calls.extend((0..62).map(|it| (to("/large", &it.to_string()), Ok(("ok", json!(true))))));
    calls.push((to("/large", "more"), Err("`to`: the script has 64 scratch files already")));
    calls.push((to("/large", "b"), Ok(("ok", json!(true)))));
    check_with(&granted(), &calls, 4 << 20);
}

#[test]
fn no_file_is_written_without_a_grant() {
    let denied = "is not granted to this script; --allow-scratch=";
    check(
        &[HOST],
        &[(to("/bulk", "a"), Err(denied)), (from("a"), Err("there is no scratch file"))],
    );
    let nowhere = "scratch /nowhere/at/all";
    check(
        &[HOST, nowhere],
        &[(to("/bulk", "a"), Err("`to`: cannot create a scratch file in /nowhere/at/all: "))],
    );
}
