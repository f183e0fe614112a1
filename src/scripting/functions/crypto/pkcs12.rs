//! PKCS#12: the keystores and truststores of Java programs.

use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain};
use sha2::{Digest as _, Sha256};

use super::keys::{self, Public, SigningKey};
use crate::scripting::functions::{
    Call,
    outcome::{Datum, Failure, Outcome},
};

/// Longer chains are mistakes.
const CERTIFICATES_MAX: usize = 64;
/// The number that OpenSSL and Java use; more than enough for a random password.
const ITERATIONS: u32 = 10_000;

/// Implements `crypto.pkcs12`: returns a keystore or a truststore.
pub(super) fn pkcs12(call: &Call) -> Outcome {
    let mut certificates = read(call, "cert")?;
    let name = call.some_text("name").unwrap_or("kopf");
    if name.chars().any(|it| u32::from(it) > 0xffff) {
        return Err("`name`: expected characters of the basic plane, which PKCS#12 has".into());
    }
    let mut store = KeyStore::new();
    match call.some_text("key") {
        Some(pem) => {
            let key = SigningKey::read("key", pem)?;
            check_pair(call, &key)?;
            certificates.extend(if call.has("ca") { read(call, "ca")? } else { Vec::new() });
            let id = Sha256::digest(&key.public.info).to_vec();
            let private = PrivateKey::from_der(key.pkcs8()).map_err(|it| failed(&it))?;
            let chain = PrivateKeyChain::new(id, private, certificates);
            store.add_entry(name, KeyStoreEntry::PrivateKeyChain(chain));
        }
        None if call.has("ca") => {
            return Err(
                "`ca` needs `key`; without a key, all certificates of `cert` are trusted".into()
            );
        }
        None => {
            let count = certificates.len();
            for (place, certificate) in certificates.into_iter().enumerate() {
                let alias =
                    if count == 1 { name.to_owned() } else { format!("{name}-{}", place + 1) };
                store.add_entry(&alias, KeyStoreEntry::Certificate(certificate));
            }
        }
    }
    let writer = store.writer(call.text("password"));
    let writer = writer.encryption_iterations(ITERATIONS).mac_iterations(ITERATIONS);
    Ok(Datum::Bytes(writer.write().map_err(|it| failed(&it))?))
}

/// Rejects a key that belongs to another certificate.
fn check_pair(call: &Call, key: &SigningKey) -> Result<(), Failure> {
    super::parsed::with_certificate("cert", call.text("cert"), |it, _| {
        if Public::of_info(it.public_key()).as_ref() == Some(&key.public) {
            return Ok(());
        }
        Err("`key`: does not belong to the first certificate of `cert`".into())
    })
}

/// Reads all certificates of a PEM.
fn read(call: &Call, parameter: &str) -> Result<Vec<Certificate>, Failure> {
    let blocks = keys::blocks(call.text(parameter));
    let certificates: Vec<_> = blocks.iter().filter(|it| it.tag() == "CERTIFICATE").collect();
    if certificates.is_empty() || certificates.len() > CERTIFICATES_MAX {
        let got = keys::shown(&blocks);
        return Err(format!(
            "`{parameter}`: expected 1 to {CERTIFICATES_MAX} certificates in PEM, got {got}"
        )
        .into());
    }
    let read = certificates.into_iter().map(|it| Certificate::from_der(it.contents()));
    read.collect::<Result<_, _>>()
        .map_err(|_problem| Failure::Plain(format!("`{parameter}`: a certificate cannot be read")))
}

/// Returns an error of the crate, which is about the format, never about the content.
fn failed(error: &p12_keystore::error::Error) -> Failure {
    format!("the keystore cannot be written: {error}").into()
}
