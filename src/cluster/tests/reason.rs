//! Formatting of library errors.

use std::io;

use crate::cluster::reason::{is_about_certificates, one_line, reason};

#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Layer {
    text: &'static str,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

fn layer(text: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Layer {
    Layer { text, source: Some(source.into()) }
}

#[test]
fn wrappers_and_repetitions_are_left_out() {
    let cause = layer("tcp connect error", io::Error::other("refused"));
    let error = layer("client error (Connect)", cause);
    assert_eq!(reason(&error), "tcp connect error: refused");
    assert_eq!(reason(&layer("read: refused", io::Error::other("refused"))), "read: refused");
    assert_eq!(
        reason(&Layer { text: "client error (Other)", source: None }),
        "client error (Other)"
    );
}

#[test]
fn a_certificate_error_is_found_among_nested_causes() {
    let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    let nested = io::Error::other(io::Error::other(unknown));
    assert!(is_about_certificates(&layer("client error (Connect)", nested)));
    let other = io::Error::other(rustls::Error::HandshakeNotComplete);
    assert!(!is_about_certificates(&layer("client error (Connect)", other)));
}

#[test]
fn a_text_is_one_line_and_truncated_between_characters() {
    assert_eq!(one_line(" a\n\tb ", 9), "a b");
    assert_eq!(one_line("üüüüü", 4), "ü...");
}
