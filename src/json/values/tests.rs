//! Cases that the vectors do not cover.

use serde_json::json;

use super::*;

#[test]
fn numbers_and_booleans_are_equal_by_value() {
    assert!(equal(&json!(1), &json!(1.0)));
    assert!(equal(&json!([true, 0]), &json!([1.0, false])));
    assert!(equal(&json!(0.0), &json!(-0.0)));
    assert!(!equal(&json!(1), &json!("1")));
    assert!(!equal(&json!(1), &json!(1.5)));
    assert!(!equal(&json!(null), &json!(false)));
}

#[test]
fn big_integers_are_not_rounded_for_the_comparison() {
    assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
    assert!(equal(&json!(u64::MAX), &json!(u64::MAX)));
    assert!(!equal(&json!(u64::MAX), &json!(1e300)));
}

#[test]
fn the_order_of_keys_does_not_matter() {
    assert!(equal(&json!({"a": 1, "b": {"c": []}}), &json!({"b": {"c": []}, "a": 1})));
    assert!(!equal(&json!({"a": null}), &json!({})));
}

#[test]
fn floats_are_written_as_python_writes_them() {
    let written = |float: f64| encode(&json!(float));
    let cases = [
        (1.0, "1.0"),
        (1.5, "1.5"),
        (-0.0, "-0.0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e-7, "1e-07"),
        (1e15, "1000000000000000.0"),
        (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
        (1e16, "1e+16"),
        (1e22, "1e+22"),
        (1.5e300, "1.5e+300"),
        (0.1 + 0.2, "0.30000000000000004"),
    ];
    for (float, text) in cases {
        assert_eq!(written(float), text);
    }
}

#[test]
fn a_float_survives_being_stored_and_read_again() {
    // Floats that a fast, inexact parser reads as an adjacent float: the essence would always differ from itself.
    for text in ["64.29999999999999", "1.7976931348623157e+308", "0.1", "122.416294033786585"] {
        let once: Value = serde_json::from_str(text).unwrap();
        let twice: Value = serde_json::from_str(&encode(&once)).unwrap();
        assert_eq!(once, twice);
        assert_eq!(once.as_f64(), text.parse().ok());
    }
}

#[test]
fn everything_outside_of_printable_ascii_is_escaped() {
    let value = json!("a\u{7f}é😀\u{1}\"\\/\n");
    assert_eq!(encode(&value), r#""a\u007f\u00e9\ud83d\ude00\u0001\"\\/\n""#);
}

#[test]
fn a_fingerprint_ignores_only_the_order_of_keys() {
    let value = json!({ "a": [1, { "b": "1" }], "c": null });
    assert_eq!(fingerprint(&value), fingerprint(&json!({ "c": null, "a": [1, { "b": "1" }] })));
    let others = [
        json!({ "a": [1, { "b": 1 }], "c": null }),
        json!({ "a": [{ "b": "1" }, 1], "c": null }),
        json!({ "a": [1, { "b": "1" }] }),
        json!({ "c": [1, { "b": "1" }], "a": null }),
    ];
    for other in others {
        assert_ne!(fingerprint(&value), fingerprint(&other), "{other}");
    }
}
