//! The content and order of indexes, and how the results of index handlers change them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Contribution, IndexFailures, IndexItem, IndexKey, IndexPosition, IndexTable, Owner};
use crate::logic::{
    handlers::outcome::{Failure, Outcome},
    object::Header,
};

fn owner(uid: &str) -> Owner {
    Owner::of(&Header { uid: Some(uid.into()), ..Header::default() })
}

fn result(value: Value) -> Contribution {
    Contribution::take(&mut Outcome { last: true, result: Some(value), ..Outcome::default() })
}

fn keys(table: &IndexTable) -> Vec<Value> {
    let next = |place: Option<IndexPosition>| table.after(place);
    let mut keys = Vec::new();
    let mut found = next(None);
    while let Some((place, key)) = found {
        keys.push(key.to_value());
        found = next(Some(place));
    }
    keys
}

fn values(table: &IndexTable, key: &IndexKey) -> Vec<Value> {
    table.get(key).iter().flat_map(|it| it.iter()).map(returned).collect()
}

fn returned(item: &IndexItem) -> Value {
    Value::clone(item.value().expect("the value of a function"))
}

#[test]
fn values_and_keys_stay_in_the_order_in_which_they_came() {
    let mut table = IndexTable::default();
    for (uid, value) in [("c", 1), ("a", 2), ("b", 3)] {
        table.apply(&owner(uid), result(json!({ "z": value, uid: value })));
    }
    table.apply(&owner("a"), result(json!({ "z": 20, "a": 20 })));
    assert_eq!(values(&table, &IndexKey::text("z")), [json!(1), json!(20), json!(3)]);
    assert_eq!(keys(&table), [json!("c"), json!("z"), json!("a"), json!("b")]);
    let all: Vec<_> = table.values().iter().map(returned).collect();
    assert_eq!(json!(all), json!([1, 1, 20, 3, 20, 3]));
}

#[test]
fn a_key_without_values_is_gone() {
    let mut table = IndexTable::default();
    table.apply(&owner("a"), result(json!({ "k": 1, "l": 1 })));
    table.apply(&owner("b"), result(json!({ "k": 2 })));
    table.apply(&owner("a"), Contribution::Remove);
    assert_eq!((keys(&table), table.len()), (vec![json!("k")], 1));
    table.apply(&owner("b"), result(json!({})));
    assert!(table.is_empty() && keys(&table).is_empty() && table.values().is_empty());
    table.apply(&owner("b"), Contribution::Remove);
    assert!(table.is_empty());
}

#[test]
fn a_list_taken_before_a_change_stays_as_it_was() {
    let mut table = IndexTable::default();
    table.apply(&owner("a"), result(json!(1)));
    table.apply(&owner("b"), result(json!(2)));
    let before = table.get(&IndexKey::Null).expect("values");
    assert!(
        Arc::ptr_eq(&before, &table.get(&IndexKey::Null).expect("values")),
        "nothing is copied"
    );
    table.apply(&owner("a"), Contribution::Remove);
    assert_eq!(before.len(), 2);
    assert_eq!(values(&table, &IndexKey::Null), [json!(2)]);
}

#[test]
fn numbers_of_one_value_are_one_key_and_no_texts() {
    assert_eq!(IndexKey::of(&json!(1)), IndexKey::of(&json!(1.0)));
    let different = [json!(1), json!("1"), json!(true), json!(1.5), json!(null), json!([1])];
    for (index, one) in different.iter().enumerate() {
        assert_eq!(IndexKey::of(one).to_value(), *one);
        for other in different.iter().skip(index + 1) {
            assert_ne!(IndexKey::of(one), IndexKey::of(other));
        }
    }
    assert_eq!(IndexKey::of(&json!(u64::MAX)).to_value(), json!(u64::MAX));
    assert_eq!(IndexKey::of(&json!(1e300)).to_value(), json!(1e300));
}

#[test]
fn of_one_key_returned_twice_the_later_value_wins() {
    let entries = vec![(json!(1), json!("a")), (json!(1.0), json!("b"))];
    let mut outcome = Outcome { last: true, entries: Some(entries), ..Outcome::default() };
    let mut table = IndexTable::default();
    table.apply(&owner("a"), Contribution::take(&mut outcome));
    assert_eq!(values(&table, &IndexKey::Integer(1)), [json!("b")]);
}

#[test]
fn objects_are_told_apart_by_uids_of_any_form() {
    let uuid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
    let others = [uuid.replace("0a", "0b"), uuid.to_uppercase(), "u1".to_owned()];
    assert_eq!(owner(uuid), owner(uuid));
    let all: BTreeSet<_> = others.iter().map(|it| owner(it)).chain([owner(uuid)]).collect();
    assert_eq!(all.len(), others.len() + 1);
}

#[test]
fn the_values_of_a_key_share_its_text_and_those_of_the_operator_are_not_for_functions() {
    let mut table = IndexTable::default();
    let packed = |it: &str| IndexItem::Packed(it.as_bytes().into());
    for uid in ["a", "b"] {
        let entry = (IndexKey::text("parent"), packed(uid));
        table.apply(&owner(uid), Contribution::Replace(vec![entry]));
    }
    let key = |uid: &str| match table.contributed(&owner(uid)).remove(0) {
        (IndexKey::Text(text), item) => (text, item),
        other => panic!("{other:?}"),
    };
    assert!(Arc::ptr_eq(&key("a").0, &key("b").0));
    assert_eq!((key("a").1, key("a").1.value()), (packed("a"), None));
    assert!((500..600).contains(&table.bytes()), "{}", table.bytes());
}

#[test]
fn objects_without_a_uid_are_told_apart_by_their_names() {
    let named = |name: &str| {
        let namespace = Some("ns".into());
        Owner::of(&Header { name: Some(name.into()), namespace, ..Header::default() })
    };
    assert_ne!(named("a"), named("b"));
    assert_eq!(named("a"), named("a"));
}

#[test]
fn a_failure_counts_until_a_success() {
    let start = jiff::Timestamp::UNIX_EPOCH;
    let id: Arc<str> = "idx".into();
    let error = Some(Failure { class: "E".into(), message: "x".into(), code: None });
    let failed = Outcome { error, delay: Some(Duration::from_secs(5)), ..Outcome::default() };
    let later = start + Duration::from_secs(10);
    let mut failures = IndexFailures::default();
    failures.note(&id, &failed, start, start);
    assert!(!failures.is_due("idx", start) && failures.is_due("idx", later));
    assert!(failures.is_due("other", start));
    failures.note(&id, &failed, start, later);
    assert_eq!(failures.effort("idx"), Some((2, start)));
    failures.note(&id, &Outcome { last: true, ..Outcome::default() }, start, later);
    assert!(failures.is_empty());
}

/// Does not measure, but a quadratic implementation would take minutes here.
#[test]
fn a_large_table_costs_no_more_for_each_event() {
    let mut table = IndexTable::default();
    let owners: Vec<_> = (0..50_000).map(|it| owner(&it.to_string())).collect();
    for (number, owner) in owners.iter().enumerate() {
        table.apply(owner, result(json!({ "all": number, number.to_string(): "x" })));
    }
    for owner in owners.iter().step_by(2) {
        table.apply(owner, Contribution::Remove);
    }
    assert_eq!(table.len(), 25_001);
    assert_eq!(table.get(&IndexKey::text("all")).map(|it| it.len()), Some(25_000));
}

#[test]
fn outdated_values_serve_until_their_object_is_indexed_again_or_they_are_swept() {
    let owner = |uid: &str| Owner::of(&Header { uid: Some(uid.into()), ..Header::default() });
    let put = |value: i64| Contribution::Replace(vec![(IndexKey::text("k"), json!(value).into())]);
    let mut table = IndexTable::default();
    for (uid, value) in [("a", 1), ("b", 2), ("c", 3)] {
        table.apply(&owner(uid), put(value));
    }
    table.retire();
    table.apply(&owner("a"), put(10));
    table.apply(&owner("b"), Contribution::Keep);
    let values = |table: &IndexTable| table.values().iter().map(returned).collect::<Vec<_>>();
    assert_eq!(values(&table), [json!(10), json!(3)], "what was there before is not kept");
    table.apply(&owner("a"), Contribution::Keep);
    assert!(!table.sweep());
    assert_eq!(values(&table), [json!(10)]);
    table.retire();
    assert!(!table.sweep());
    assert!(table.is_empty());
}
