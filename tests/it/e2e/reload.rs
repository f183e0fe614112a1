//! Scripts that are edited while the operator runs and objects change, on the real server.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::namespace::{Namespace, is_settled};
use super::operator::{Ended, Operator, ours};

/// Edits of a run; every third is broken.
const EDITS: usize = 45;
/// Objects that are created meanwhile, a few after each edit.
const OBJECTS: usize = 90;

/// A script of this edit: two handlers, so that an edit can fall between them, and the number of the edit in the results.
fn script(edit: usize) -> String {
    format!(
        "-- edit {edit}\n\
         local edit = {edit}\n\
         kopf.on_create('kopfexamples', {{ id = 'first' }}, function(ctx) return {{ edit = edit }} end)\n\
         kopf.on_create('kopfexamples', {{ id = 'second' }}, function(ctx) return {{ edit = edit }} end)\n"
    )
}

/// What is saved at this edit: mostly good scripts, and some that are half-written or do not load.
fn saved(edit: usize) -> String {
    let whole = script(edit);
    match edit % 6 {
        2 => whole.get(..whole.len() * 2 / 3).expect("ASCII").to_owned(),
        5 => format!("{whole}\nerror('not today')\n"),
        _ => whole,
    }
}

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": name}, "spec": {"field": "value"},
    })
}

/// A directory for one test, removed at its end.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(namespace: &Namespace) -> Self {
        let path = std::env::temp_dir().join(&namespace.name);
        fs::create_dir_all(&path).expect("a directory for the test");
        Directory(path)
    }

    /// Saves as most editors do: a new file takes the place of the old one.
    fn save(&self, text: &str) {
        let (file, new) = (self.script(), self.0.join(".handlers.lua.new"));
        fs::write(&new, text).expect("the text is written");
        fs::rename(&new, file).expect("the file is replaced");
    }

    fn script(&self) -> std::path::PathBuf {
        self.0.join("handlers.lua")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left_for_the_system = fs::remove_dir_all(&self.0);
    }
}

/// How often each handler of this object was invoked.
fn invocations(ended: &Ended, namespace: &Namespace, name: &str) -> [usize; 2] {
    ["first", "second"].map(|handler| {
        ended.count(&format!("[{}/{name}] Handler '{handler}' is invoked", namespace.name))
    })
}

fn edit_in(object: &Value, handler: &str) -> Option<u64> {
    object.pointer(&format!("/status/{handler}/edit"))?.as_u64()
}

fn start(namespace: &Namespace, script: &Path) -> Operator {
    ours(namespace, script)
}

#[tokio::test]
async fn edits_under_load_lose_no_object_and_repeat_no_handler() {
    let Some(namespace) = Namespace::for_test("reload-load").await else { return };
    let directory = Directory::new(&namespace);
    directory.save(&script(0));
    let operator = start(&namespace, &directory.script());
    operator.until_says("Starting the watch-stream for kopfexamples").await;
    let names: Vec<_> = (0..OBJECTS).map(|it| format!("object-{it}")).collect();
    for (edit, names) in (1..=EDITS).zip(names.chunks(OBJECTS / EDITS)) {
        directory.save(&saved(edit));
        for name in names {
            namespace.create(&object(name)).await;
        }
    }
    let last = EDITS + 1;
    directory.save(&script(last));
    operator.until_says(" rejected; generation ").await;
    for name in &names {
        namespace.until_object(name, "the creation is complete", is_settled).await;
    }
    // The last edit has come into effect, sooner or later.
    let mut tries = 0;
    loop {
        let name = format!("fence-{tries}");
        namespace.create(&object(&name)).await;
        let fence = namespace.until_object(&name, "the fence is complete", is_settled).await;
        if edit_in(&fence, "second") == u64::try_from(last).ok() {
            break;
        }
        tries += 1;
        assert!(tries < 50, "the last edit has no effect:\n{}", operator.output());
    }
    let ended = operator.stop().await;
    ended.assert_code(0);
    for name in &names {
        let count = invocations(&ended, &namespace, name);
        assert_eq!(count, [1, 1], "{name}:\n{}", ended.output);
    }
}

#[tokio::test]
async fn a_configmap_is_edited_through_the_api() {
    let Some(namespace) = Namespace::for_test("reload-configmap").await else { return };
    let map = |edit| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"},
            "data": {"handlers.lua": script(edit)},
        })
    };
    let apply = async |edit: usize| {
        namespace
            .try_kubectl(&["apply", "-f", "-"], &map(edit).to_string())
            .await
            .expect("applied");
    };
    apply(1).await;
    let place = format!("{}/scripts", namespace.name);
    let args = ["--standalone", "--verbose", "--from-configmap", &place, "-n", &namespace.name];
    let operator = Operator::start(&mut super::operator::kopf(&namespace.kubeconfig(), &args));
    namespace.create(&object("before")).await;
    // The last result comes with a request of its own, after the record of its handler.
    let is_complete = |it: &Value| is_settled(it) && edit_in(it, "second").is_some();
    let before = namespace.until_object("before", "it is handled", is_complete).await;
    assert_eq!(edit_in(&before, "second"), Some(1));
    apply(2).await;
    operator.until_says("generation 2,").await;
    namespace.create(&object("after")).await;
    let after = namespace.until_object("after", "it is handled", is_complete).await;
    assert_eq!(edit_in(&after, "second"), Some(2));
    operator.stop().await.assert_code(0);
}
