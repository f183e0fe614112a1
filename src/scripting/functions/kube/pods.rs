//! `kube.exec`, `kube.copy_to` and `kube.copy_from`: commands in the containers of pods.

use std::{io::Read as _, path::Path, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time;

use super::{
    client::{KubeClient, failed, option, text},
    reading::pod,
    watching::TIMEOUT_DEFAULT,
};
use crate::logic::{access::kube::KubeVerb, text::duration};
use crate::ports::{BoxFuture, ContainerCommand, Demand, Executed, Verb};
use crate::scripting::functions::{
    Call,
    outcome::{Datum, Failure, Outcome},
};

/// Maximum size of a command, which is part of the URL of its request.
const COMMAND_BYTES_MAX: usize = 32 << 10;
const ARGUMENTS_MAX: usize = 1000;
const PATH_BYTES_MAX: usize = 4096;
/// Maximum overhead of an archive with one file.
const ARCHIVE_BYTES_MAX: usize = 64 << 10;
const MODE: i64 = 0o644;

/// Implements `kube.exec`: runs a command in a container.
pub(super) fn exec(call: Call) -> BoxFuture<'static, Outcome> {
    // The call itself creates its input, so that its CPU time counts, and the operator's thread does not wait for it.
    let command = command(&call);
    let stdin = call.some_text("stdin").map(|it| Bytes::from(it.to_owned()));
    Box::pin(async move {
        let output_max = call.surroundings.limits.string_size;
        let Executed { stdout, stderr, code } =
            run(&call, Input { command: command?, stdin, output_max }).await?;
        let (stdout, stderr) = (text(stdout.into()).await?, text(stderr.into()).await?);
        Ok(json!({ "stdout": stdout, "stderr": stderr, "code": code }).into())
    })
}

/// Implements `kube.copy_to`: writes a file with `tar` in the container.
pub(super) fn copy_to(call: Call) -> BoxFuture<'static, Outcome> {
    // The call itself creates it, as in `exec`.
    let packed = place(&call).and_then(|(directory, name)| Ok((directory, archive(&call, &name)?)));
    Box::pin(async move {
        let (directory, archive) = packed?;
        let stdin = Some(archive);
        let command = tar(["-xmf", "-", "-C", &directory]);
        let output_max = call.surroundings.limits.string_size;
        let executed = run(&call, Input { command, stdin, output_max }).await?;
        succeeded(&executed)?;
        Ok(Value::Null.into())
    })
}

/// Implements `kube.copy_from`: reads a file with `tar` in the container.
pub(super) fn copy_from(call: Call) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        let (directory, name) = place(&call)?;
        // A name may begin with a dash.
        let command = tar(["-cf", "-", "-C", &directory, &format!("./{name}")]);
        let limit = call.surroundings.limits.string_size;
        let output_max = limit.saturating_add(ARCHIVE_BYTES_MAX);
        let executed = run(&call, Input { command, stdin: None, output_max }).await?;
        succeeded(&executed)?;
        Ok(Datum::Bytes(only_file(&executed.stdout, &name, limit)?))
    })
}

/// A command with its input.
struct Input {
    command: Vec<String>,
    stdin: Option<Bytes>,
    output_max: usize,
}

/// Runs a command in the pod that a call names.
async fn run(call: &Call, input: Input) -> Result<Executed, Failure> {
    let client = KubeClient::of(call, KubeVerb::Read)?;
    let address = pod(&client, call).await?;
    call.surroundings.check_not_dry(|| "run commands in pods".to_owned())?;
    let Input { command, stdin, output_max } = input;
    let flag = |name| (name, "true".to_owned());
    let mut query: Vec<_> = command.into_iter().map(|it| ("command", it)).collect();
    query.extend(option(call, "container").map(|it| ("container", it.to_owned())));
    query.extend(stdin.is_some().then(|| flag("stdin")));
    query.extend([flag("stdout"), flag("stderr")]);
    let demand = Demand { subresource: Some("exec".into()), query, ..address.demand(Verb::Create) };
    let execution = ContainerCommand { demand, stdin, output_max };
    let timeout = duration::parse(call.value("timeout")).unwrap_or(TIMEOUT_DEFAULT);
    let running = client.kube.with(move |cluster| async move { cluster.exec(execution).await });
    match time::timeout(timeout, running).await {
        Ok(ended) => ended.map_err(|it| client.refused(it)),
        Err(_elapsed) => Err(late(timeout)),
    }
}

fn late(timeout: Duration) -> Failure {
    let seconds = timeout.as_secs_f64();
    failed(
        "Timeout",
        format!(
            "the command did not finish within {seconds} s and may still be running in the container; increase `timeout`"
        ),
    )
}

fn command(call: &Call) -> Result<Vec<String>, Failure> {
    let texts: Option<Vec<&str>> = call.list("command").iter().map(Value::as_str).collect();
    let texts = texts.filter(|it| it.first().is_some_and(|program| !program.is_empty()));
    let texts = texts.ok_or(
        "`command`: expected a list of strings, such as { \"sh\", \"-c\", \"echo hello\" }: the program and its arguments",
    )?;
    let bytes: usize = texts.iter().map(|it| it.len()).sum();
    if texts.len() > ARGUMENTS_MAX || bytes > COMMAND_BYTES_MAX {
        return Err(format!(
            "`command`: expected at most {ARGUMENTS_MAX} strings and {COMMAND_BYTES_MAX} bytes, got {} strings and {bytes} bytes; use `stdin` for the rest",
            texts.len()
        )
        .into());
    }
    Ok(texts.into_iter().map(str::to_owned).collect())
}

fn tar<const N: usize>(arguments: [&str; N]) -> Vec<String> {
    ["tar"].into_iter().chain(arguments).map(str::to_owned).collect()
}

/// Returns the directory and the name of the file that a call names.
fn place(call: &Call) -> Result<(String, String), Failure> {
    let path = call.text("path");
    let is_plain = path.len() <= PATH_BYTES_MAX
        && path.starts_with('/')
        && !path.ends_with('/')
        && !path.contains('\0')
        && !path.split('/').any(|it| it == ".." || it == ".");
    let (directory, name) = path.rsplit_once('/').filter(|_| is_plain).ok_or_else(|| {
        Failure::Plain(format!(
            "`path`: expected the absolute path of a file without `.` and `..`, up to {PATH_BYTES_MAX} bytes, such as \"/etc/app/key.pem\""
        ))
    })?;
    let directory = if directory.is_empty() { "/" } else { directory };
    Ok((directory.to_owned(), name.to_owned()))
}

/// Returns an archive with one file.
fn archive(call: &Call, name: &str) -> Result<Bytes, Failure> {
    let data = call.bytes("data");
    let mode = call.integer("mode").unwrap_or(MODE);
    let mode = u32::try_from(mode).ok().filter(|it| *it <= 0o7777);
    let mode = mode
        .ok_or("`mode`: expected the permissions of a file, such as 420, which is 0644 in octal")?;
    let now = u64::try_from(call.surroundings.clock.now().as_second()).unwrap_or_default();
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(mode);
    header.set_mtime(now);
    header.set_size(u64::try_from(data.len()).unwrap_or(u64::MAX));
    let unpackable = |it: std::io::Error| Failure::Plain(format!("`path`: cannot be packed: {it}"));
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, name, data).map_err(unpackable)?;
    Ok(archive.into_inner().map_err(unpackable)?.into())
}

/// Returns the only file of an archive. The container decides what is in it, so links, other names and more files are rejected.
fn only_file(archive: &[u8], name: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    let broken = |it: std::io::Error| {
        failed("Malformed", format!("the archive of the container cannot be read: {it}"))
    };
    let mut archive = tar::Archive::new(archive);
    let mut found = None;
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let path = entry.path().map_err(broken)?.into_owned();
        if !kind.is_file() {
            let what = if kind.is_dir() { "a directory" } else { "a link or a device" };
            return Err(failed(
                "NotAFile",
                format!("`path`: is {what}; pass the path of a regular file"),
            ));
        }
        let is_wanted = path.strip_prefix("./").unwrap_or(&path) == Path::new(name);
        if !is_wanted || found.is_some() {
            let message = "the container sent a different file than the requested one".to_owned();
            return Err(failed("Malformed", message));
        }
        if entry.size() > u64::try_from(limit).unwrap_or(u64::MAX) {
            let message = format!(
                "`path`: the file is larger than {limit} bytes (settings.sandbox.string_size)"
            );
            return Err(failed("TooLarge", message));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(broken)?;
        found = Some(content);
    }
    found.ok_or_else(|| failed("Malformed", "the container sent no file".into()))
}

/// Rejects a command that has failed.
fn succeeded(executed: &Executed) -> Result<(), Failure> {
    if executed.code == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&executed.stderr);
    let said = said.trim().lines().last().unwrap_or_default().to_owned();
    Err(failed(
        "ExitCode",
        format!("`tar` in the container has failed with exit code {}: {said}", executed.code),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(entries: &[(tar::EntryType, &str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (kind, name, data) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(data.len() as u64);
            // Names that the crate itself would reject.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            if !kind.is_file() {
                header.set_link_name("/etc/shadow").unwrap();
            }
            header.set_cksum();
            archive.append(&header, *data).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn only_the_wanted_file_is_taken_from_an_archive() {
        use tar::EntryType::{Directory, Link, Regular, Symlink};
        let read = |entries: &[(tar::EntryType, &str, &[u8])]| {
            only_file(&packed(entries), "key", 8).map_err(Failure::into_message)
        };
        assert_eq!(read(&[(Regular, "./key", b"\xff\0x")]), Ok(b"\xff\0x".to_vec()));
        assert_eq!(read(&[(Regular, "key", b"")]), Ok(Vec::new()));
        for (kind, shown) in [(Symlink, "a link"), (Link, "a link"), (Directory, "a directory")] {
            assert!(read(&[(kind, "./key", b"")]).unwrap_err().contains(shown), "{kind:?}");
        }
        for name in ["../key", "/key", "./other", "a/key"] {
            assert!(
                read(&[(Regular, name, b"x")]).unwrap_err().contains("different file"),
                "{name}"
            );
        }
        let two: [(_, _, &[u8]); 2] = [(Regular, "key", b"1"), (Regular, "key", b"2")];
        assert!(read(&two).unwrap_err().contains("different file"));
        assert!(read(&[(Regular, "key", b"123456789")]).unwrap_err().contains("larger than 8"));
        assert!(read(&[]).unwrap_err().contains("no file"));
        assert!(only_file(b"rubbish", "key", 8).is_err());
    }
}
