//! Micro-benchmarks of the hot path: the work for every event, before any handler is called.

use std::{collections::BTreeSet, hint::black_box};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kopf::{
    logic::{
        background::indexing::{Contribution, IndexItem, IndexKey, IndexTable, Owner},
        change::cause,
        object::{Header, Object, diffbase, reason::EventType},
    },
    settings::PersistenceSettings,
};
use serde_json::{Map, Value, json};

/// About 4 KiB, a quarter of it managed fields: a typical size of a custom object.
fn body() -> Value {
    let containers: Vec<Value> = (0..8)
        .map(|n| {
            json!({
                "name": format!("container-{n}"), "image": format!("registry.example.com/image-{n}:v1.{n}"),
                "env": [{"name": "MODE", "value": "production"}, {"name": "LEVEL", "value": "info"}],
                "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}}, "ports": [{"containerPort": 8080 + n}],
            })
        })
        .collect();
    let managed: Map<String, Value> = (0..24)
        .map(|n| (format!("f:some-managed-field-{n}"), json!({".": {}, "f:x": {}})))
        .collect();
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {
            "name": "example", "namespace": "default", "uid": "0d4e4a4c-6c1b-4e5e-9d1e-3a1f0d7a0001",
            "resourceVersion": "123456", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "example", "tier": "backend"}, "annotations": {"owner": "team"},
            "finalizers": ["kopf.zalando.org/KopfFinalizerMarker"],
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": managed}],
        },
        "spec": {"replicas": 3, "ratio": 0.75, "containers": containers},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn parse(body: &Value) -> Object {
    Object::parse(Bytes::from(body.to_string()))
        .unwrap_or_else(|_| Object::from_value(body.clone()))
}

/// The object after it was handled: the usual case.
fn handled(persistence: &PersistenceSettings) -> Value {
    let mut body = body();
    if let Ok(change) = examine(persistence, &parse(&body)) {
        let mut patch = Map::new();
        diffbase::store(&persistence.diffbase_storage, &body, &change.new, &mut patch);
        json_patch::merge(&mut body, &Value::Object(patch));
    }
    body
}

fn examine(
    persistence: &PersistenceSettings,
    object: &Object,
) -> Result<cause::Change, kopf::logic::object::corrupt::CorruptState> {
    cause::examine(persistence, object, Some(EventType::Modified), false, &BTreeSet::new())
}

fn reading(criterion: &mut Criterion) {
    let raw = Bytes::from(body().to_string());
    let mut group = criterion.benchmark_group("object");
    group.throughput(Throughput::Bytes(raw.len() as u64));
    group.bench_function("header", |it| it.iter(|| Object::parse(black_box(raw.clone()))));
    group.bench_function("header and body", |it| {
        it.iter(|| Object::parse(black_box(raw.clone())).map(|it| it.body().is_object()));
    });
    group.finish();
}

fn causes(criterion: &mut Criterion) {
    let persistence = PersistenceSettings::default();
    let (fresh, handled) = (parse(&body()), parse(&handled(&persistence)));
    for (name, object) in [("fresh", &fresh), ("handled", &handled)] {
        object.body();
        criterion.bench_function(&format!("cause of a {name} object"), |it| {
            it.iter(|| examine(&persistence, black_box(object)));
        });
    }
}

fn owner(number: usize) -> Owner {
    Owner::of(&Header { uid: Some(format!("uid-{number}")), ..Header::default() })
}

/// A key that only this object has, and a key that all objects share.
fn contribution(number: usize, value: usize) -> Contribution {
    let value = IndexItem::from(Value::from(value));
    let own = (IndexKey::text(&format!("key-{number}")), value.clone());
    Contribution::Replace(vec![own, (IndexKey::Null, value)])
}

/// An event must cost the same whatever the size of the table.
fn indexing(criterion: &mut Criterion) {
    for size in [1_000, 100_000] {
        let fill = || {
            let mut table = IndexTable::default();
            (0..size).for_each(|it| table.apply(&owner(it), contribution(it, it)));
            table
        };
        let mut group = criterion.benchmark_group(format!("index of {size} objects"));
        group.sample_size(10).throughput(Throughput::Elements(size as u64));
        group.bench_function("filling", |it| it.iter(fill));
        group.sample_size(100).throughput(Throughput::Elements(1));
        let mut table = fill();
        let mut turn = 0;
        group.bench_function("one event", |it| {
            it.iter(|| {
                turn += 1;
                table.apply(&owner(turn % size), contribution(turn % size, turn));
            });
        });
        group.bench_function("an object is removed and added", |it| {
            it.iter(|| {
                turn += 1;
                table.apply(&owner(turn % size), Contribution::Remove);
                table.apply(&owner(turn % size), contribution(turn % size, turn));
            });
        });
        let key = IndexKey::text(&format!("key-{}", size / 2));
        group.bench_function("one lookup", |it| it.iter(|| table.get(black_box(&key))));
        group.bench_function("lookup of all values", |it| {
            it.iter(|| table.get(black_box(&IndexKey::Null)));
        });
        group.finish();
    }
}

criterion_group!(hot_path, reading, causes, indexing);
criterion_main!(hot_path);
