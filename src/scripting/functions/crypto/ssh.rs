//! The formats of OpenSSH: a line of `authorized_keys`, and private keys.

use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use pem::{EncodeConfig, LineEnding, Pem};
use rsa::{pkcs1::RsaPublicKeyRef, pkcs8::PrivateKeyInfoRef};

use super::keys::{KeyKind, Public, SigningKey};
use crate::scripting::functions::{outcome::Failure, random};

/// Returns the line of `authorized_keys`, without a comment.
pub(super) fn public(key: &Public) -> String {
    format!("{} {}", name(key.kind), STANDARD.encode(blob(key)))
}

fn name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Ed25519 => "ssh-ed25519",
        KeyKind::P256 => "ecdsa-sha2-nistp256",
        KeyKind::P384 => "ecdsa-sha2-nistp384",
        KeyKind::Rsa(_) => "ssh-rsa",
    }
}

/// Returns a public key in the encoding of RFC 4253.
fn blob(key: &Public) -> Vec<u8> {
    let mut blob = Vec::new();
    add(&mut blob, name(key.kind).as_bytes());
    match key.kind {
        KeyKind::Ed25519 => add(&mut blob, &key.raw),
        KeyKind::P256 => {
            add(&mut blob, b"nistp256");
            add(&mut blob, &key.raw);
        }
        KeyKind::P384 => {
            add(&mut blob, b"nistp384");
            add(&mut blob, &key.raw);
        }
        KeyKind::Rsa(_) => {
            if let Ok(it) = RsaPublicKeyRef::try_from(key.raw.as_slice()) {
                add_number(&mut blob, it.public_exponent.as_bytes());
                add_number(&mut blob, it.modulus.as_bytes());
            }
        }
    }
    blob
}

/// Returns the private key in a form that every SSH program reads: OpenSSH's for Ed25519, because only recent programs read its
/// PEM, and PEM for the others.
pub(super) fn private(key: &SigningKey) -> Result<String, Failure> {
    /// The parts of an unencrypted key are padded to a multiple of this.
    const BLOCK: usize = 8;
    if key.public.kind != KeyKind::Ed25519 {
        return Ok(key.pem());
    }
    // In PKCS#8, the seed is a string in a string.
    let info = PrivateKeyInfoRef::try_from(key.pkcs8()).ok();
    let seed = info.and_then(|it| it.private_key.as_bytes().get(2..34).map(<[u8]>::to_vec));
    let seed = seed.ok_or("the key cannot be written for SSH")?;
    let mut check = [0; 4];
    random::fill(&mut check)?;
    let mut section = [check, check].concat();
    add(&mut section, name(key.public.kind).as_bytes());
    add(&mut section, &key.public.raw);
    add(&mut section, &[seed.as_slice(), &key.public.raw].concat());
    add(&mut section, b"");
    section.extend((1..).take(section.len().next_multiple_of(BLOCK) - section.len()));
    let mut content = b"openssh-key-v1\0".to_vec();
    for part in [b"none".as_slice(), b"none", b""] {
        add(&mut content, part);
    }
    content.extend(1_u32.to_be_bytes());
    add(&mut content, &blob(&key.public));
    add(&mut content, &section);
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    Ok(pem::encode_config(&Pem::new("OPENSSH PRIVATE KEY", content), config))
}

fn add(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(u32::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
    to.extend_from_slice(bytes);
}

/// Adds a positive number; a leading one bit would make it negative.
fn add_number(to: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.first().is_some_and(|it| it & 0x80 != 0) {
        add(to, &[&[0], bytes].concat());
    } else {
        add(to, bytes);
    }
}
