//! `kube.run`: a program in a separate container, as a Job. The name of the Job is derived from what it runs, so after a restart it
//! is found instead of run twice.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{self, Instant};

use super::{
    client::{KubeClient, ObjectAddress, failed, object, option, text},
    faked,
};
use crate::logic::{
    access::kube::{KubeVerb, Reference},
    object::{hierarchy, reference::Ownership},
    text::size,
};
use crate::ports::{BoxFuture, Demand, ErrorClass, Verb};
use crate::scripting::functions::{
    Call,
    hash::hex,
    outcome::{Failure, Outcome},
};

const TIMEOUT: Duration = Duration::from_mins(10);
/// Added to the deadline of the Job, so that its controller can report it first.
const GRACE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);
const JSON: &str = "application/json";
const JOB: (&str, &str) = ("batch/v1", "Job");
const SECRET: (&str, &str) = ("v1", "Secret");
/// The annotation with the digest of what a Job runs.
const ANNOTATION: &str = "kopf.dev/run";
const NAME_BYTES_MAX: usize = 63;
const FILES_MAX: usize = 100;
/// Maximum size of what a Job runs, as JSON: that of a Secret. The requests about it are written on the operator's thread.
const BYTES_MAX: usize = 1 << 20;

/// Implements `kube.run`: runs a Job and returns its result.
pub(super) fn run(call: Call) -> BoxFuture<'static, Outcome> {
    // The call itself creates it, so that its CPU time counts, and the operator's thread does not wait for it.
    let plan = JobPlan::of(&call);
    Box::pin(async move {
        let client = KubeClient::of(&call, KubeVerb::Create)?;
        let mut plan = plan?;
        let job = plan.address(&client, &call, JOB).await?;
        plan.start(&client, &call, &job).await?;
        let ended = plan.end(&client, &job).await?;
        let mut result = plan.result(&client, &call, &ended).await?;
        faked::reveal(&call, &job, &mut result);
        if !call.flag("keep") {
            plan.remove(&client, &call, &job).await?;
        }
        Ok(result.into())
    })
}

/// What a Job runs.
struct JobPlan {
    name: String,
    digest: String,
    job: Value,
    /// The JSON of the Secret with the files.
    secret: Option<Bytes>,
    timeout: Duration,
}

impl JobPlan {
    fn of(call: &Call) -> Result<Self, Failure> {
        let command = call.list("command");
        if command.is_empty() || !command.iter().all(Value::is_string) {
            return Err(
                "`command`: expected a list of strings: the program and its arguments".into()
            );
        }
        let owner = call.present.as_ref().and_then(|it| it.object());
        let owner = owner.map(|it| it.body().clone());
        let timeout = call.duration("timeout").unwrap_or(TIMEOUT);
        let empty = Map::new();
        let (env, files) = (call.map("env").unwrap_or(&empty), call.map("files").unwrap_or(&empty));
        if files.len() > FILES_MAX {
            let given = files.len();
            return Err(format!("`files`: expected at most {FILES_MAX}, got {given}").into());
        }
        let uid = owner.as_ref().and_then(|it| it.pointer("/metadata/uid"));
        let (image, account) = (call.text("image"), call.text("service_account"));
        let what = serde_json::to_string(&(image, command, env, files, account, uid))
            .map_err(|it| Failure::Plain(it.to_string()))?;
        if what.len() > BYTES_MAX {
            let (limit, given) = (size::shown(BYTES_MAX), size::about(what.len()));
            return Err(format!(
                "the program, `env` and `files`: expected at most {limit} as JSON, got {given}; store large files in a volume or in the image"
            )
            .into());
        }
        let digest = hex(Sha256::digest(what).get(..8).unwrap_or_default());
        let name = match call.some_text("name") {
            Some(name) => name.to_owned(),
            None => name_of(owner.as_deref(), &digest),
        };
        let owned = |(version, kind): (&str, &str)| {
            let mut object = json!({
                "apiVersion": version,
                "kind": kind,
                "metadata": { "name": name, "annotations": { ANNOTATION: digest } },
            });
            if let Some(owner) = &owner {
                hierarchy::append_owner_reference(&mut object, owner, Ownership::default())
                    .map_err(|it| Failure::Plain(it.to_string()))?;
            }
            Ok::<_, Failure>(object)
        };
        let mut job = owned(JOB)?;
        set(&mut job, "spec", spec(call, (env, files), &name, timeout)?);
        let secret = if files.is_empty() { None } else { Some(secret(owned(SECRET)?, files)?) };
        let secret = secret.map(|it| it.to_string().into());
        Ok(JobPlan { name, digest, job, secret, timeout })
    }

    /// Returns the address of an object with the name of the Job.
    async fn address(
        &self,
        client: &KubeClient,
        call: &Call,
        kind: (&str, &str),
    ) -> Result<ObjectAddress, Failure> {
        let reference = json!({
            "apiVersion": kind.0,
            "kind": kind.1,
            "metadata": { "name": self.name },
        });
        client.address(Reference::of(&reference)?, option(call, "namespace")).await
    }

    /// Creates the Job with its Secret, unless it exists.
    async fn start(
        &mut self,
        client: &KubeClient,
        call: &Call,
        job: &ObjectAddress,
    ) -> Result<(), Failure> {
        match client.send(job.demand(Verb::Get)).await {
            Ok(answer) => return self.recognize(&object(answer).await?, job),
            Err(error) if error.class == ErrorClass::Missing => {}
            Err(error) => return Err(client.refused(error)),
        }
        if let Some(secret) = &self.secret {
            let address = self.address(client, call, SECRET).await?;
            self.create(client, &address, secret.clone()).await?;
        }
        faked::begin(call, job, &mut self.job).await?;
        self.create(client, job, self.job.to_string().into()).await
    }

    /// Creates an object, unless an identical one exists.
    async fn create(
        &self,
        client: &KubeClient,
        address: &ObjectAddress,
        object: Bytes,
    ) -> Result<(), Failure> {
        let content = Some((JSON, object));
        let demand = Demand { name: None, content, ..address.demand(Verb::Create) };
        match client.send(demand).await {
            Ok(_) => Ok(()),
            Err(error) if error.answer.as_ref().is_some_and(|it| it.reason == "AlreadyExists") => {
                self.recognize(&client.send_for_object(address.demand(Verb::Get)).await?, address)
            }
            Err(error) => Err(client.refused(error)),
        }
    }

    /// Rejects an object that belongs to something else.
    fn recognize(&self, found: &Value, address: &ObjectAddress) -> Result<(), Failure> {
        let annotations = found.pointer("/metadata/annotations");
        let digest = annotations.and_then(|it| it.get(ANNOTATION)?.as_str());
        if digest == Some(&self.digest) {
            return Ok(());
        }
        let message = format!(
            "{} already exists and runs something else; use a different `name`, or delete it",
            address.shown()
        );
        Err(failed("AlreadyExists", message))
    }

    /// Waits until the Job has ended.
    async fn end(&self, client: &KubeClient, job: &ObjectAddress) -> Result<Value, Failure> {
        let deadline = Instant::now() + self.timeout + GRACE;
        loop {
            let present = client.send_for_object(job.demand(Verb::Get)).await?;
            if has(&present, "Complete") {
                return Ok(json!(0));
            }
            if has(&present, "Failed") {
                let conditions = present.pointer("/status/conditions").and_then(Value::as_array);
                let is_late = |it: &Value| it["reason"] == "DeadlineExceeded";
                if conditions.is_some_and(|it| it.iter().any(is_late)) {
                    return Err(self.late(job));
                }
                return Ok(Value::Null);
            }
            if Instant::now() >= deadline {
                return Err(self.late(job));
            }
            time::sleep_until(deadline.min(Instant::now() + PAUSE)).await;
        }
    }

    fn late(&self, job: &ObjectAddress) -> Failure {
        let seconds = self.timeout.as_secs_f64();
        failed(
            "Timeout",
            format!("{} did not finish within {seconds} s; increase `timeout`", job.shown()),
        )
    }

    /// Reads the exit code and the log from the pod of the Job.
    async fn result(
        &self,
        client: &KubeClient,
        call: &Call,
        ended: &Value,
    ) -> Result<Value, Failure> {
        let mut pods = self.address(client, call, ("v1", "Pod")).await?;
        pods.name = None;
        let query = vec![("labelSelector", format!("batch.kubernetes.io/job-name={}", self.name))];
        let listed = client.send_for_object(Demand { query, ..pods.demand(Verb::List) }).await?;
        let items = listed.get("items").and_then(Value::as_array);
        let pod = items.and_then(|it| it.last());
        let states = pod.and_then(|it| it.pointer("/status/containerStatuses/0/state/terminated"));
        let code = states.and_then(|it| it.get("exitCode")).unwrap_or(ended).clone();
        let name = pod.and_then(|it| it.pointer("/metadata/name")?.as_str());
        let mut result = json!({ "code": code, "log": "" });
        let Some(name) = name else {
            let problem = "the pod of the Job is gone: its log cannot be read";
            set(&mut result, "problem", problem.into());
            return Ok(result);
        };
        pods.name = Some(name.to_owned());
        let room = call.surroundings.limits.string_size;
        let query = vec![("limitBytes", room.to_string())];
        let demand = Demand { subresource: Some("log".into()), query, ..pods.demand(Verb::Get) };
        match client.send(demand).await {
            Ok(log) => set(&mut result, "log", text(log).await?.into()),
            // The program has run, but its node may have been removed since.
            Err(error) if error.class != ErrorClass::Denied => {
                let problem = format!("the log cannot be read: {error}");
                set(&mut result, "problem", problem.into());
            }
            Err(error) => return Err(client.refused(error)),
        }
        Ok(result)
    }

    /// Deletes the Job with its pods, and the Secret.
    async fn remove(
        &self,
        client: &KubeClient,
        call: &Call,
        job: &ObjectAddress,
    ) -> Result<(), Failure> {
        let mut spots = vec![job.clone()];
        if self.secret.is_some() {
            spots.push(self.address(client, call, SECRET).await?);
        }
        for address in spots {
            let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
            let content = Some((JSON, options.to_string().into()));
            match client.send(Demand { content, ..address.demand(Verb::Delete) }).await {
                Ok(_) => {}
                Err(error) if error.class == ErrorClass::Missing => {}
                Err(error) => return Err(client.refused(error)),
            }
        }
        Ok(())
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn has(job: &Value, kind: &str) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == kind && it["status"] == "True"))
}

/// Returns a name that is derived from the handled object and from what is run.
fn name_of(owner: Option<&Value>, digest: &str) -> String {
    let name = owner.and_then(|it| it.pointer("/metadata/name")?.as_str()).unwrap_or("run");
    let plain: String = name
        .chars()
        .map(|it| if it.is_ascii_lowercase() || it.is_ascii_digit() { it } else { '-' })
        .take(NAME_BYTES_MAX - 1 - digest.len())
        .collect();
    format!("{}-{digest}", plain.trim_matches('-'))
}

type RunFields<'a> = &'a Map<String, Value>;

fn spec(
    call: &Call,
    (env, files): (RunFields<'_>, RunFields<'_>),
    name: &str,
    timeout: Duration,
) -> Result<Value, Failure> {
    let variables = env.iter().map(|(name, value)| match value {
        Value::String(text) => Ok(json!({ "name": name, "value": text })),
        Value::Number(number) => Ok(json!({ "name": name, "value": number.to_string() })),
        Value::Object(source) => Ok(json!({ "name": name, "valueFrom": source })),
        Value::Null | Value::Bool(_) | Value::Array(_) => Err(Failure::Plain(format!(
            "`env`: {name}: expected a string, a number, or a source such as {{ secretKeyRef = {{ name = \"x\", key = \"y\" }} }}"
        ))),
    });
    let variables = variables.collect::<Result<Vec<_>, _>>()?;
    let mounts: Vec<_> = files
        .keys()
        .enumerate()
        .map(|(place, path)| json!({ "name": "files", "mountPath": path, "subPath": format!("file-{place}"), "readOnly": true }))
        .collect();
    let account = call.some_text("service_account");
    let mut pod = json!({
        "restartPolicy": "Never",
        // Without a service account, a program needs no token.
        "automountServiceAccountToken": account.is_some(),
        "containers": [{
            "name": "run",
            "image": call.text("image"),
            "command": call.list("command"),
            "env": variables,
            "volumeMounts": mounts,
        }],
    });
    if let Some(account) = account {
        set(&mut pod, "serviceAccountName", account.into());
    }
    if !files.is_empty() {
        let volumes = json!([{ "name": "files", "secret": { "secretName": name } }]);
        set(&mut pod, "volumes", volumes);
    }
    Ok(json!({
        "backoffLimit": 0,
        "activeDeadlineSeconds": timeout.as_secs().max(1),
        "template": { "spec": pod },
    }))
}

/// Returns the Secret with the files.
fn secret(mut secret: Value, files: RunFields<'_>) -> Result<Value, Failure> {
    let mut data = Map::new();
    for (place, (path, content)) in files.iter().enumerate() {
        let is_plain = path.starts_with('/') && !path.split('/').any(|it| it == "..");
        let Some(content) = content.as_str().filter(|_| is_plain) else {
            return Err(format!("`files`: file {}: expected an absolute path without `..`, and a string as its content", place + 1).into());
        };
        data.insert(format!("file-{place}"), content.into());
    }
    set(&mut secret, "stringData", Value::Object(data));
    Ok(secret)
}
