//! Keeps all objects in a store of kube-rs, for `scripts/bench-scale`: prints `HANDLED` when it has seen the number of objects in the first
//! argument, and again after each number of events in the second argument.

use std::pin::pin;

use anyhow::Context as _;
use futures::TryStreamExt as _;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt as _, reflector, watcher},
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let [objects, events] = numbers()?;
    // An error means that a provider was already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::try_default().await?;
    let kind = GroupVersionKind::gvk("kopf.dev", "v1", "KopfExample");
    let resource = ApiResource::from_gvk_with_plural(&kind, "kopfexamples");
    let api = Api::<DynamicObject>::all_with(client, &resource);
    let writer = reflector::store::Writer::new(resource);
    let _store = writer.as_reader();
    let seen = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    let mut seen = pin!(seen.applied_objects());
    let mut count = 0;
    while seen.try_next().await?.is_some() {
        count += 1;
        if count == objects || (count > objects && (count - objects) % events == 0) {
            println!("HANDLED");
        }
    }
    Ok(())
}

fn numbers() -> anyhow::Result<[u64; 2]> {
    let given = std::env::args().skip(1).map(|it| it.parse()).collect::<Result<Vec<u64>, _>>()?;
    <[u64; 2]>::try_from(given).ok().context("usage: reflector OBJECTS EVENTS")
}
