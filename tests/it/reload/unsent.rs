//! What becomes of changes that the server has not accepted when the handler that wants them is edited.

use kopf::{
    logic::handlers::{handler::Kind, lifecycle::Lifecycle},
    reactor::Operator,
};
use serde_json::{Value, json};

use super::edited::{Does, EXAMPLES, Edited, Line, environment, on, pass};

/// Labels its object with its code.
fn labels(id: &'static str, code: u64) -> Line {
    on(Kind::Create, id, code).does(Does::Label)
}

/// An operator whose requests fail for a while, since handlers were called.
async fn unsent(lines: &[Line]) -> Edited {
    let env = environment(&["a"], &[]);
    env.refuse(503, "PATCH", "kopfexamples");
    let change = |it: Operator| {
        // Requests are not repeated by the client itself.
        it.settings.lock().networking.error_backoffs.clear();
        Operator { lifecycle: Lifecycle::AllAtOnce, ..it }
    };
    let operator = Edited::with(env, lines, change);
    pass(10).await;
    operator
}

fn labels_of(operator: &Edited) -> Value {
    operator.env.get(EXAMPLES, "ns1/a")["metadata"]["labels"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_edited_handler_is_called_again_instead_and_others_are_not() {
    let mut operator = unsent(&[labels("made", 1), labels("beside", 1)]).await;
    assert_eq!(operator.take(), ["beside.1@1 a", "made.1@1 a"]);
    operator.swap(&[labels("made", 2), labels("beside", 1)]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert_eq!(operator.take(), ["made.2@2 a"]);
    assert_eq!(labels_of(&operator), json!({ "made": "2", "beside": "1" }));
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_leaves_nothing_behind() {
    let mut operator = unsent(&[labels("made", 1), labels("beside", 1)]).await;
    operator.take();
    operator.swap(&[labels("beside", 1)]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert!(operator.take().is_empty());
    assert_eq!(labels_of(&operator), json!({ "beside": "1" }));
    let object = operator.env.get(EXAMPLES, "ns1/a");
    assert_eq!(object["metadata"]["annotations"]["kopf.zalando.org/made"], Value::Null);
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_script_that_is_loaded_again_without_an_edit_of_the_handler_keeps_them() {
    let mut operator = unsent(&[labels("made", 1)]).await;
    operator.take();
    operator.swap(&[labels("made", 1), on(Kind::Update, "other", 1).of("others")]).await;
    operator.env.server.clear_faults();
    pass(100).await;
    assert!(operator.take().is_empty(), "it is recorded, and not called again");
    assert_eq!(labels_of(&operator), json!({ "made": "1" }));
    operator.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_comes_long_before_the_next_try_counts_too() {
    let mut operator = unsent(&[labels("made", 1)]).await;
    // A newer event comes first: what was left is not of it.
    operator.edit(EXAMPLES, "a", 1);
    pass(1).await;
    operator.swap(&[labels("made", 2)]).await;
    operator.swap(&[labels("made", 3)]).await;
    operator.env.server.clear_faults();
    operator.take();
    pass(100).await;
    assert_eq!(operator.take(), ["made.3@3 a"]);
    assert_eq!(labels_of(&operator), json!({ "made": "3" }));
    operator.end().await;
}
