//! Handles creations like the scripts of `scripts/bench`: a log line, a PATCH with the last handled state, a PATCH with the result.
//!
//! Runs on tokio's runtime of several threads, as operators written by hand do; with the argument `current-thread` on a single one.

use anyhow::Context as _;
use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;

/// The annotation that marks an object as handled.
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";
/// Maximum number of objects that are handled concurrently.
const CONCURRENCY: usize = 64;

fn main() -> anyhow::Result<()> {
    let is_single = std::env::args().nth(1).is_some_and(|it| it == "current-thread");
    let mut runtime = if is_single {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    runtime.enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    // An error means that a provider was already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::try_default().await?;
    let kind = GroupVersionKind::gvk("kopf.dev", "v1", "KopfExample");
    let resource = ApiResource::from_gvk_with_plural(&kind, "kopfexamples");
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
    objects
        .for_each_concurrent(CONCURRENCY, async |object| {
            let handled = match object {
                Ok(object) => handle(&client, &resource, object).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = handled {
                eprintln!("{error:#}");
            }
        })
        .await;
    Ok(())
}

async fn handle(
    client: &Client,
    resource: &ApiResource,
    object: DynamicObject,
) -> anyhow::Result<()> {
    if object.annotations().contains_key(LAST_HANDLED) {
        return Ok(());
    }
    let name = object.name_any();
    let namespace = object.namespace().context("a namespaced object")?;
    println!("HANDLED");
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, resource);
    let essence = json!({ "spec": object.data.get("spec") }).to_string();
    let (parameters, remember) = (
        PatchParams::default(),
        json!({ "metadata": { "annotations": { LAST_HANDLED: essence } } }),
    );
    api.patch(&name, &parameters, &Patch::Merge(remember)).await?;
    let result = json!({ "status": { "create": { "name": name } } });
    api.patch_status(&name, &parameters, &Patch::Merge(result)).await?;
    eprintln!("[{namespace}/{name}] Handler 'create' succeeded.");
    eprintln!("[{namespace}/{name}] Creation is processed: 1 succeeded; 0 failed.");
    Ok(())
}
