//! The native kinds against answers recorded from the real server.

use super::{definition, kinds, quantity::Quantity};

#[test]
fn every_kind_has_a_schema_in_each_of_its_versions() {
    for kind in kinds() {
        let native = kind.native.expect("all kinds are native");
        for version in &kind.def.versions {
            let name = native.schema_of(version);
            assert!(definition(&name).is_some(), "no schema {name}");
            assert!(super::facts::go_type(&name).is_some(), "no type {name}");
        }
    }
}

#[test]
fn quantities_are_written_in_their_canonical_form() {
    for (text, canonical) in [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("0.1Mi", "104857600m"),
        ("512", "512"),
        ("-5", "-5"),
        ("0", "0"),
        ("0.0000000001", "1n"),
        ("99999999999999999999999999", "9223372036854775807"),
        ("1E", "1E"),
        ("12345", "12345"),
    ] {
        assert_eq!(
            Quantity::parse(text).map(Quantity::canonical).as_deref(),
            Ok(canonical),
            "{text}"
        );
    }
    for text in ["", "abc", "1.2.3", "5x", "1Kim", "."] {
        assert!(Quantity::parse(text).is_err(), "{text}");
    }
}
