//! Fernet: AES-128-CBC and HMAC-SHA-256 with a timestamp, compatible with Python's `cryptography`.

use aes::Aes128;
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use cbc::cipher::{
    BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _, block_padding::Pkcs7,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::scripting::functions::{
    Call,
    outcome::{Datum, Failure, Outcome},
    random,
};

/// Writes padding, which other implementations may omit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const VERSION: u8 = 0x80;
/// The bytes of the version and the timestamp, which precede the initialization vector.
const HEAD: usize = 9;
const IV: usize = 16;
const MAC: usize = 32;

struct Key {
    signing: [u8; 16],
    encryption: [u8; 16],
}

impl Key {
    fn read(call: &Call) -> Result<Self, Failure> {
        let decoded = BASE64.decode(call.text("key").trim()).ok();
        let halves = decoded.filter(|it| it.len() == 32).and_then(|it| {
            let (signing, encryption) = it.split_at_checked(16)?;
            Some(Key { signing: signing.try_into().ok()?, encryption: encryption.try_into().ok()? })
        });
        halves.ok_or_else(|| {
            "`key`: expected 32 bytes in URL-safe Base64, as crypto.fernet_key returns them".into()
        })
    }

    fn mac(&self) -> Result<Hmac<Sha256>, Failure> {
        Hmac::new_from_slice(&self.signing).map_err(|it| Failure::Plain(it.to_string()))
    }
}

/// Implements `crypto.fernet_key`: generates a key.
pub(super) fn key(_call: &Call) -> Outcome {
    let mut key = [0; 32];
    random::fill(&mut key)?;
    Ok(Value::from(BASE64.encode(key)).into())
}

/// Implements `crypto.fernet_encrypt`: returns a token.
pub(super) fn encrypt(call: &Call) -> Outcome {
    let key = Key::read(call)?;
    let mut iv = [0; IV];
    random::fill(&mut iv)?;
    let now = u64::try_from(call.surroundings.clock.now().as_second()).unwrap_or_default();
    let mut token = vec![VERSION];
    token.extend(now.to_be_bytes());
    token.extend(iv);
    let cipher = cbc::Encryptor::<Aes128>::new(&key.encryption.into(), &iv.into());
    token.extend(cipher.encrypt_padded_vec::<Pkcs7>(call.bytes("data")));
    let mac = key.mac()?.chain_update(&token).finalize().into_bytes();
    token.extend(mac);
    Ok(Value::from(BASE64.encode(token)).into())
}

/// Implements `crypto.fernet_decrypt`: returns the content of a token.
pub(super) fn decrypt(call: &Call) -> Outcome {
    let key = Key::read(call)?;
    let invalid = || {
        Failure::from(
            "`token`: is not a Fernet token of this key: it was made with another key, or changed",
        )
    };
    let token = BASE64.decode(call.text("token").trim()).map_err(|_problem| invalid())?;
    let signed = token.len().checked_sub(MAC).filter(|it| *it >= HEAD + IV);
    let (signed, mac) = signed.and_then(|it| token.split_at_checked(it)).ok_or_else(invalid)?;
    if signed.first() != Some(&VERSION) {
        return Err(invalid());
    }
    key.mac()?.chain_update(signed).verify_slice(mac).map_err(|_problem| invalid())?;
    let (head, content) = signed.split_at_checked(HEAD).ok_or_else(invalid)?;
    let (iv, content) = content.split_first_chunk::<IV>().ok_or_else(invalid)?;
    let made = head.get(1..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
    check_age(call, made.unwrap_or_default())?;
    let cipher = cbc::Decryptor::<Aes128>::new(&key.encryption.into(), &(*iv).into());
    let data = cipher.decrypt_padded_vec::<Pkcs7>(content).map_err(|_problem| invalid())?;
    Ok(Datum::Bytes(data))
}

/// Rejects a token that is too old or from the future.
fn check_age(call: &Call, made: u64) -> Result<(), Failure> {
    /// Maximum clock skew in seconds, as in Python.
    const AHEAD_MAX: u64 = 60;
    let Some(ttl) = call.duration("ttl") else { return Ok(()) };
    let now = u64::try_from(call.surroundings.clock.now().as_second()).unwrap_or_default();
    if made > now.saturating_add(AHEAD_MAX) {
        return Err("`token`: was made in the future".into());
    }
    let age = now.saturating_sub(made);
    if age > ttl.as_secs() {
        return Err(format!(
            "`token`: has expired: it is {age} s old, `ttl` is {} s",
            ttl.as_secs()
        )
        .into());
    }
    Ok(())
}
