//! Commands in pods, as the tests of an operator respond to them: `fake.exec` at the border of the embedded API server, so that
//! permissions, names and the connection are as on a cluster.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::call::{Faked, Fakes};
use kopf_apiserver::streaming::{Exit, PodProcess, PodStreams, PodTarget};

/// Maximum size of the input of a command; scripts have a lower limit.
const STDIN_MAX: u64 = 64 << 20;
const FIELDS: [&str; 5] = ["stdout", "stderr", "code", "data", "data_base64"];

/// Returns the functions that respond to the commands in pods.
pub(super) fn of_fakes(fakes: &Fakes) -> PodStreams {
    let fakes = fakes.clone();
    PodStreams::default().exec(move |process| {
        let fakes = fakes.clone();
        async move { run(&fakes, process).await.unwrap_or_else(Exit::Failed) }
    })
}

async fn run(fakes: &Fakes, process: PodProcess) -> Result<Exit, String> {
    let PodProcess { target, command, stdin, mut stdout, mut stderr, .. } = process;
    let mut input = Vec::new();
    stdin.take(STDIN_MAX).read_to_end(&mut input).await.map_err(|it| it.to_string())?;
    let wanted = CommandPurpose::of(&command);
    let answer = fakes.respond(Faked::Exec, "", wanted.told(&target, &command, &input)?).await?;
    let answer = answer.ok_or_else(|| {
        let command = Value::from(command.clone());
        format!(
            "no fake responds to {command} in the pod {}: declare fake.exec(FUNCTION) in the test, or give the pod the annotation dev.kopf/exec-stdout",
            target.pod
        )
    })?;
    let ended =
        CommandResult::read(&answer.value, &wanted).map_err(|it| fakes.reject(&answer, &it))?;
    let written = async {
        stdout.write_all(&ended.stdout).await?;
        stderr.write_all(ended.stderr.as_bytes()).await
    };
    // A client that has disconnected does not read the exit code either.
    written.await.map_err(|it| it.to_string())?;
    Ok(Exit::Code(ended.code))
}

/// The purpose of a command.
enum CommandPurpose {
    Command,
    /// `kube.copy_to`: the directory.
    CopyTo(String),
    /// `kube.copy_from`: the directory and the name.
    CopyFrom(String, String),
}

impl CommandPurpose {
    fn of(command: &[String]) -> Self {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["tar", "-xmf", "-", "-C", directory] => {
                CommandPurpose::CopyTo((*directory).to_owned())
            }
            ["tar", "-cf", "-", "-C", directory, file] => match file.strip_prefix("./") {
                Some(name) => CommandPurpose::CopyFrom((*directory).to_owned(), name.to_owned()),
                None => CommandPurpose::Command,
            },
            _ => CommandPurpose::Command,
        }
    }

    /// Returns the command in the form that the function of the test receives.
    fn told(&self, target: &PodTarget, command: &[String], input: &[u8]) -> Result<Value, String> {
        let PodTarget { namespace, pod, container } = target;
        let place = json!({ "pod": pod, "namespace": namespace, "container": container });
        let Value::Object(mut fields) = place else { return Ok(place) };
        match self {
            CommandPurpose::Command => {
                fields.insert("command".into(), command.into());
                if !input.is_empty() {
                    add(&mut fields, "stdin", input);
                }
            }
            CommandPurpose::CopyTo(directory) => {
                let (name, data) = unpack(input).map_err(|it| it.to_string())?;
                fields.insert("copy_to".into(), path(directory, &name).into());
                add(&mut fields, "data", &data);
            }
            CommandPurpose::CopyFrom(directory, name) => {
                fields.insert("copy_from".into(), path(directory, name).into());
            }
        }
        Ok(fields.into())
    }
}

fn path(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// Adds bytes as a string, or as Base64 if they are not valid UTF-8.
fn add(fields: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => fields.insert(name.to_owned(), text.into()),
        Err(_) => fields.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// The result of a command.
struct CommandResult {
    stdout: Vec<u8>,
    stderr: String,
    code: i32,
}

impl CommandResult {
    /// Reads the value that a fake returns.
    fn read(answer: &Value, wanted: &CommandPurpose) -> Result<Self, String> {
        let fields = match answer {
            Value::Object(fields) => fields.clone(),
            Value::String(text) => {
                let name =
                    if matches!(wanted, CommandPurpose::Command) { "stdout" } else { "data" };
                Map::from_iter([(name.to_owned(), text.as_str().into())])
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                return Err(format!("expected a map, a string or nil, got {other}"));
            }
        };
        if let Some(name) = fields.keys().find(|it| !FIELDS.contains(&it.as_str())) {
            let known = FIELDS.join(", ");
            return Err(format!("there is no field `{name}`, only {known}"));
        }
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("`{name}`: expected a string, got {other}")),
        };
        let code = match fields.get("code") {
            None | Some(Value::Null) => 0,
            Some(it) => exit_code(it)
                .ok_or_else(|| format!("`code`: expected a number from 0 to 255, got {it}"))?,
        };
        let data = match (text("data")?, text("data_base64")?) {
            (None, None) => None,
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(encoded)) => Some(
                STANDARD
                    .decode(encoded)
                    .map_err(|it| format!("`data_base64`: invalid Base64: {it}"))?,
            ),
            (Some(_), Some(_)) => return Err("`data` and `data_base64`: expected one".into()),
        };
        let stdout = match (wanted, data) {
            (CommandPurpose::CopyFrom(_, name), Some(data)) => {
                pack(name, &data).map_err(|it| it.to_string())?
            }
            (CommandPurpose::CopyFrom(..), None) if code == 0 => {
                return Err("`data` is missing: the content of the file".into());
            }
            (
                CommandPurpose::Command | CommandPurpose::CopyTo(_) | CommandPurpose::CopyFrom(..),
                _,
            ) => text("stdout")?.unwrap_or_default().into_bytes(),
        };
        Ok(CommandResult { stdout, stderr: text("stderr")?.unwrap_or_default(), code })
    }
}

/// Returns an exit code between 0 and 255; Lua may have it as 1.0.
fn exit_code(value: &Value) -> Option<i32> {
    (0..=255).find(|it| value.as_f64() == Some(f64::from(*it)))
}

/// Returns the only file of an archive.
fn unpack(archive: &[u8]) -> std::io::Result<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let Some(entry) = archive.entries()?.next() else { return Ok(Default::default()) };
    let mut entry = entry?;
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut entry, &mut content)?;
    Ok((entry.path()?.to_string_lossy().into_owned(), content))
}

fn pack(name: &str, data: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(data.len()).unwrap_or(u64::MAX));
    header.set_mode(0o644);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, Path::new(name), data)?;
    archive.into_inner()
}
