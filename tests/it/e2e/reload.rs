//! Scripts that are edited while the operator runs and objects change, on the real server.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::namespace::{Namespace, is_settled};
use super::operator::{Ended, Operator, ours};

/// The number of edits of a run; every third is broken.
const EDITS: usize = 45;
/// The number of objects that are created meanwhile, a few after each edit.
const OBJECTS: usize = 90;

/// Returns the script of this edit: two handlers, so that an edit can fall between them, and the number of the edit in the results.
fn script(edit: usize) -> String {
    format!(
        "-- edit {edit}\n\
         local edit = {edit}\n\
         kopf.on_create('kopfexamples', {{ id = 'first' }}, function(ctx) return {{ edit = edit }} end)\n\
         kopf.on_create('kopfexamples', {{ id = 'second' }}, function(ctx) return {{ edit = edit }} end)\n"
    )
}

/// Returns the text that is saved at this edit: mostly good scripts, and some that are half-written or do not load.
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

/// A directory for one test, which is removed at its end.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(namespace: &Namespace) -> Self {
        let path = std::env::temp_dir().join(&namespace.name);
        fs::create_dir_all(&path).expect("a directory for the test");
        Directory(path)
    }

    /// Saves as most editors do: renames a new file over the old one.
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

/// Returns how often each handler of this object was invoked.
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
    // The last edit has taken effect, sooner or later.
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
    // The last result has a separate request, after the record of its handler.
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

/// The number of objects that an edit would change.
const TOUCHED: usize = 100;

/// Returns a script with a function that is called for all objects, with or without a typing error.
fn marking(field: &str) -> String {
    let event = format!(
        "kopf.on_event('kopfexamples', {{ id = 'mark' }}, function(ctx)\n    \
             if not ctx.status.mark then ctx.patch.{field}.mark = 'set' end\n\
         end)\n"
    );
    format!("{}{event}", script(1))
}

/// Returns the resource versions of all objects, by kubectl.
async fn versions(namespace: &Namespace) -> Vec<String> {
    let path = "jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion}{'\\n'}{end}";
    let told = namespace.kubectl(&["get", "kopfexamples", "-o", path]).await;
    told.lines().map(str::to_owned).collect()
}

/// Checks that an edit with a typing error changes none of many handled objects, and the edit without it all of them.
async fn refuses_a_typing_error(
    namespace: &Namespace,
    operator: Operator,
    save: impl AsyncFn(&str),
) {
    operator.until_says("Starting the watch-stream for kopfexamples").await;
    let names: Vec<String> = (0..TOUCHED).map(|it| format!("object-{it}")).collect();
    let all: Vec<Value> = names.iter().map(|name| object(name)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string();
    namespace.try_kubectl(&["create", "-f", "-"], &list).await.expect("created");
    let is_complete = |it: &Value| is_settled(it) && edit_in(it, "second").is_some();
    for name in &names {
        namespace.until_object(name, "it is handled", is_complete).await;
    }
    let before = versions(namespace).await;
    assert_eq!(before.len(), TOUCHED);
    save(&marking("staus")).await;
    operator.until_says("there is no ctx.patch.staus").await;
    operator.until_says("add the comment `-- kopf: allow(unknown-member)`").await;
    assert_eq!(versions(namespace).await, before);
    // The handler that the first edit adds would be called at once, like that of the second one.
    save(&marking("status")).await;
    operator.until_says("generation 2,").await;
    let is_marked = |it: &Value| it.pointer("/status/mark") == Some(&json!("set"));
    for name in &names {
        namespace.until_object(name, "it is marked", is_marked).await;
    }
    let ended = operator.stop().await;
    ended.assert_code(0);
    assert!(!ended.output.contains("inconsistencies"), "{}", ended.output);
    ended.assert_count("rejected; generation 1 keeps running", 1);
}

#[tokio::test]
async fn a_typing_error_in_a_file_is_refused_before_an_object_is_touched() {
    let Some(namespace) = Namespace::for_test("reload-typo").await else { return };
    let directory = Directory::new(&namespace);
    directory.save(&script(1));
    let operator = start(&namespace, &directory.script());
    refuses_a_typing_error(&namespace, operator, async |text| directory.save(text)).await;
}

#[tokio::test]
async fn a_typing_error_in_a_mounted_configmap_is_refused_before_an_object_is_touched() {
    let Some(namespace) = Namespace::for_test("reload-typo-mount").await else { return };
    let directory = Directory::new(&namespace);
    let volume = directory.0.join("volume");
    fs::create_dir_all(&volume).expect("a directory");
    let version = std::cell::Cell::new(0);
    // As the kubelet does: a new directory, and a symlink that is switched to it.
    let mount = |text: &str| {
        version.set(version.get() + 1);
        let name = format!("..v{}", version.get());
        fs::create_dir_all(volume.join(&name)).expect("a directory");
        fs::write(volume.join(&name).join("handlers.lua"), text).expect("the text is written");
        std::os::unix::fs::symlink(&name, volume.join("..data_tmp")).expect("a symlink");
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).expect("a symlink");
    };
    mount(&script(1));
    std::os::unix::fs::symlink("..data/handlers.lua", volume.join("handlers.lua"))
        .expect("a symlink");
    let operator = start(&namespace, &volume);
    refuses_a_typing_error(&namespace, operator, async |text| mount(text)).await;
}

#[tokio::test]
async fn a_typing_error_in_a_configmap_is_refused_before_an_object_is_touched() {
    let Some(namespace) = Namespace::for_test("reload-typo-map").await else { return };
    let apply = async |text: &str| {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"},
            "data": {"handlers.lua": text},
        });
        namespace.try_kubectl(&["apply", "-f", "-"], &map.to_string()).await.expect("applied");
    };
    apply(&script(1)).await;
    let place = format!("{}/scripts", namespace.name);
    let args = ["--standalone", "--verbose", "--from-configmap", &place, "-n", &namespace.name];
    let operator = Operator::start(&mut super::operator::kopf(&namespace.kubeconfig(), &args));
    refuses_a_typing_error(&namespace, operator, apply).await;
}

#[tokio::test]
async fn a_typing_error_at_the_start_ends_the_operator() {
    let Some(namespace) = Namespace::for_test("start-typo").await else { return };
    let directory = Directory::new(&namespace);
    directory.save(&marking("staus"));
    let operator = start(&namespace, &directory.script());
    let ended = operator.ended().await;
    ended.assert_code(1);
    assert!(ended.output.contains(":6:43: there is no ctx.patch.staus"), "{}", ended.output);
}
