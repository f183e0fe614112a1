//! What a script can access, with grants and without.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{Call, Given, Surroundings, find};
use crate::logic::access::grants::{Access, Permission};
use crate::scripting::functions::{
    outcome::{Datum, Failure},
    types::Body,
};
use crate::settings::Sandbox;

/// A directory that is removed at the end of its test.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-reach-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(path.join("granted")).unwrap();
        TemporaryDirectory(path.canonicalize().unwrap())
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn surroundings(&self) -> Arc<Surroundings> {
        granted(Permission::Read, &self.path("granted"))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn granted(what: Permission, rule: &str) -> Arc<Surroundings> {
    let mut access = Access::default();
    access.allow(what, rule, Path::new("/")).unwrap();
    let variables = [("APP_A", "1"), ("APP_B", ""), ("SECRET", "x")];
    let variables: BTreeMap<_, _> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let limits = Sandbox { string_size: 1000, ..Sandbox::default() };
    Arc::new(Surroundings {
        access,
        environment: Arc::new(variables),
        limits,
        ..Surroundings::default()
    })
}

/// Calls a function as an engine does.
fn call(here: &Arc<Surroundings>, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let (library, function) = name.split_once('.').unwrap();
    let library = find(library).unwrap();
    let function = library.functions.iter().find(|it| it.name == function).unwrap();
    let arguments = arguments.iter().cloned().map(|it| Given::Datum(Datum::Json(it))).collect();
    let ready = Call::new((library, function), arguments, Arc::clone(here), None);
    let outcome = ready.and_then(|ready| match function.body {
        Body::Immediate(body) => ready.compute(body, &(Rc::new(|| false) as _)),
        Body::Waiting(body) => {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(body(ready))
        }
        Body::Script | Body::Faking(_) => panic!("{name} is tested in its language"),
        Body::Streaming(_) => panic!("{name} is looped over"),
    });
    match outcome.map_err(|it| it.at(name)) {
        Ok(Datum::Json(it)) => Ok(it),
        Ok(Datum::Bytes(it)) => Ok(json!({ "bytes": it })),
        Ok(Datum::Map(parts)) => Ok(json!({ "parts": parts })),
        Err(Failure::Plain(message)) => Err(message),
        Err(Failure::Answer(answer)) => panic!("an answer of a server: {answer:?}"),
    }
}

fn refused(here: &Arc<Surroundings>, name: &str, path: &str) -> String {
    call(here, name, &[path.into()]).unwrap_err()
}

#[test]
fn granted_variables_are_available() {
    let here = granted(Permission::Env, "APP_*");
    let get = |arguments: Value| call(&here, "env.get", arguments.as_array().unwrap());
    assert_eq!(get(json!(["APP_A"])), Ok(json!("1")));
    assert_eq!(get(json!(["APP_B", "default"])), Ok(json!("")), "empty is not absent");
    assert_eq!(get(json!(["APP_C"])), Ok(Value::Null));
    assert_eq!(get(json!(["APP_C", "default"])), Ok(json!("default")));
    assert_eq!(
        get(json!(["SECRET"])).unwrap_err(),
        "env.get: the variable SECRET is not granted to this script; --allow-env=SECRET would allow it"
    );
    assert_eq!(get(json!(["SECRET", "default"])), Ok(json!("default")));
    let missing = "`name` is missing: expected a non-empty string";
    for (wrong, message) in [
        (json!([]), missing),
        (json!([null]), missing),
        (json!([1]), "`name`: expected a non-empty string, got 1"),
        (json!([""]), "`name`: expected a non-empty string, got \"\""),
        (json!(["APP_A", 1, 2]), "too many arguments, 3: expected env.get(name, [default])"),
    ] {
        assert_eq!(get(wrong), Err(format!("env.get: {message}")));
    }
    assert_eq!(call(&here, "env.all", &[]), Ok(json!({"APP_A": "1", "APP_B": ""})));
    assert_eq!(
        call(&here, "env.all", &[1.into()]),
        Err("env.all: too many arguments, 1: expected env.all()".into())
    );
    assert_eq!(call(&Arc::default(), "env.all", &[]), Ok(json!({})));
}

#[test]
fn files_are_read_if_they_are_granted() {
    let here = TemporaryDirectory::new("read");
    here.write("granted/a.txt", "ä\n");
    here.write("granted/a.json", r#"{"a": [1, 2.5, null]}"#);
    here.write("granted/a.yaml", "a:\n  - 1\n  - 2.5\n  -\n");
    here.write("secret.txt", "x");
    let reach = here.surroundings();
    let read = |name: &str, file: &str| call(&reach, name, &[here.path(file).into()]);
    assert_eq!(read("files.read", "granted/a.txt"), Ok(json!("ä\n")));
    assert_eq!(read("files.read", "granted/../granted/./a.txt"), Ok(json!("ä\n")));
    for name in ["json", "yaml"] {
        let content = read(&format!("files.read_{name}"), &format!("granted/a.{name}"));
        assert_eq!(content, Ok(json!({"a": [1, 2.5, null]})), "{name}");
    }
    assert_eq!(read("files.list", "granted"), Ok(json!(["a.json", "a.txt", "a.yaml"])));
    assert_eq!(read("files.exists", "granted/a.txt"), Ok(json!(true)));
    assert_eq!(read("files.exists", "granted"), Ok(json!(true)));
    assert_eq!(read("files.exists", "granted/b.txt"), Ok(json!(false)));
    assert_eq!(read("files.exists", "granted/a.txt/b"), Ok(json!(false)));
    let denied = |path: &str| {
        format!("reading {path} is not granted to this script; --allow-read={path} would allow it")
    };
    let secret = here.path("secret.txt");
    for name in ["files.read", "files.read_json", "files.read_yaml", "files.list", "files.exists"] {
        for file in ["secret.txt", "granted/../secret.txt"] {
            assert_eq!(read(name, file), Err(format!("{name}: {}", denied(&secret))), "{file}");
        }
        assert_eq!(
            read(name, "nothing"),
            Err(format!("{name}: {}", denied(&here.path("nothing"))))
        );
    }
}

#[test]
fn links_lead_only_to_what_is_granted() {
    let here = TemporaryDirectory::new("links");
    here.write("secret.txt", "x");
    fs::create_dir(here.0.join("granted/..2026")).unwrap();
    here.write("granted/..2026/key", "value");
    symlink("..2026", here.0.join("granted/..data")).unwrap();
    symlink("..data/key", here.0.join("granted/key")).unwrap();
    symlink("../secret.txt", here.0.join("granted/leak")).unwrap();
    symlink("/", here.0.join("granted/root")).unwrap();
    symlink("granted", here.0.join("alias")).unwrap();
    let reach = here.surroundings();
    assert_eq!(call(&reach, "files.read", &[here.path("granted/key").into()]), Ok(json!("value")));
    let names = call(&reach, "files.list", &[here.path("granted").into()]);
    assert_eq!(names, Ok(json!(["key", "leak", "root"])), "without the plumbing");
    let secret = here.path("secret.txt");
    for name in ["files.read", "files.exists"] {
        let leak = here.path("granted/leak");
        assert_eq!(
            refused(&reach, name, &leak),
            format!(
                "{name}: {leak} resolves to {secret}: reading {secret} is not granted to this script; \
                 --allow-read={secret} would allow it"
            )
        );
        let message = refused(&reach, name, &here.path("granted/root/etc/passwd"));
        assert!(message.contains("resolves to /etc/passwd: "), "{message}");
    }
    // The granted directory may be a link itself.
    let by_alias = granted(Permission::Read, &here.path("alias"));
    assert_eq!(call(&by_alias, "files.read", &[here.path("alias/key").into()]), Ok(json!("value")));
    let message = refused(&by_alias, "files.read", &here.path("granted/key"));
    assert!(message.contains("not granted"), "by its other name it is not: {message}");
}

#[test]
fn unreadable_files_are_reported() {
    let here = TemporaryDirectory::new("odd");
    here.write("granted/large", &"x".repeat(1001));
    here.write("granted/wrong", "{\n  \"a\": [\n");
    fs::write(here.0.join("granted/binary"), [0xff]).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(here.0.join("granted/socket")).unwrap();
    let reach = here.surroundings();
    for (name, file, part) in [
        (
            "files.read",
            "large",
            "is larger than 1000 bytes, the limit of settings.sandbox.string_size",
        ),
        ("files.read", "binary", "is not UTF-8"),
        ("files.read", "socket", "is not a regular file"),
        ("files.read", "", "is a directory; use files.list"),
        ("files.read", "none", " does not exist"),
        ("files.read", "large/x", " does not exist"),
        ("files.list", "none", " does not exist"),
        ("files.list", "large", " does not exist"),
        ("files.read_json", "wrong", "is invalid JSON: EOF while parsing a list at line 3"),
        ("files.read_yaml", "wrong", "is invalid YAML: "),
    ] {
        let message = refused(&reach, name, &here.path(&format!("granted/{file}")));
        assert!(message.contains(part), "{name} {file}: {message}");
    }
    drop(socket);
    for arguments in [vec![], vec![json!(1)], vec![json!("")], vec![json!("a"), json!("b")]] {
        call(&reach, "files.read", &arguments).unwrap_err();
    }
}

#[test]
fn a_misspelled_function_is_reported_with_the_right_name() {
    let files = find("files").unwrap();
    assert_eq!(files.unknown("red"), "there is no files.red; did you mean `files.read`?");
    assert_eq!(files.unknown("zzz"), "there is no files.zzz");
}
