//! Key pairs: generated, or read from PEM. ring signs, and generates what it can; RSA keys come from `rsa`.

use std::fmt;

use getrandom::SysRng;
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    PublicKeyData, SignatureAlgorithm,
};
use rsa::{
    pkcs1::DecodeRsaPrivateKey as _,
    pkcs8::{
        EncodePrivateKey as _, ObjectIdentifier, PrivateKeyInfoRef,
        der::{Any, Encode as _, asn1::OctetStringRef},
        spki::AlgorithmIdentifier,
    },
};
use x509_parser::{prelude::FromDer as _, public_key::PublicKey, x509::SubjectPublicKeyInfo};

use crate::scripting::functions::{outcome::Failure, random};

/// The kinds of keys, as scripts name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scripting::functions) enum KeyKind {
    Ed25519,
    P256,
    P384,
    /// With this number of bits.
    Rsa(usize),
}

const KINDS: [(&str, KeyKind); 6] = [
    ("ed25519", KeyKind::Ed25519),
    ("p256", KeyKind::P256),
    ("p384", KeyKind::P384),
    ("rsa2048", KeyKind::Rsa(2048)),
    ("rsa3072", KeyKind::Rsa(3072)),
    ("rsa4096", KeyKind::Rsa(4096)),
];

/// The bytes of PKCS#8 before the seed of an Ed25519 key. ring writes the second version of the format, which other programs do not read.
const ED25519_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const CURVES: [ObjectIdentifier; 2] = [
    ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"),
    ObjectIdentifier::new_unwrap("1.3.132.0.34"),
];

/// Keys from elsewhere have no more than a few blocks.
const BLOCKS_MAX: usize = 64;

impl KeyKind {
    /// Returns the kind with this name.
    pub(super) fn named(parameter: &str, name: &str) -> Result<Self, Failure> {
        let found = KINDS.iter().find(|(it, _)| *it == name).map(|(_, it)| *it);
        found.ok_or_else(|| {
            let known: Vec<_> = KINDS.iter().map(|(it, _)| format!("{it:?}")).collect();
            format!("`{parameter}`: expected {}, got {name:?}", known.join(", ")).into()
        })
    }

    /// Returns the kind of a public key.
    fn of(key: &SubjectPublicKeyInfo<'_>) -> Option<Self> {
        if key.algorithm.algorithm == x509_parser::oid_registry::OID_SIG_ED25519 {
            return Some(KeyKind::Ed25519);
        }
        match key.parsed().ok()? {
            PublicKey::RSA(it) => Some(KeyKind::Rsa(it.key_size())),
            PublicKey::EC(it) => match it.key_size() {
                256 => Some(KeyKind::P256),
                384 => Some(KeyKind::P384),
                _ => None,
            },
            PublicKey::DSA(_)
            | PublicKey::GostR3410(_)
            | PublicKey::GostR3410_2012(_)
            | PublicKey::Unknown(_) => None,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyKind::Rsa(bits) => write!(f, "rsa{bits}"),
            KeyKind::Ed25519 => f.write_str("ed25519"),
            KeyKind::P256 => f.write_str("p256"),
            KeyKind::P384 => f.write_str("p384"),
        }
    }
}

/// A public key in two encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::scripting::functions) struct Public {
    pub(in crate::scripting::functions) kind: KeyKind,
    /// The key as `SubjectPublicKeyInfo`, DER.
    pub(super) info: Vec<u8>,
    /// The key inside of it, in ring's format.
    pub(in crate::scripting::functions) raw: Vec<u8>,
}

impl Public {
    /// Reads a `SubjectPublicKeyInfo`; `None` if its kind is not supported.
    pub(super) fn of_info(info: &SubjectPublicKeyInfo<'_>) -> Option<Self> {
        let raw = info.subject_public_key.data.to_vec();
        Some(Public { kind: KeyKind::of(info)?, info: info.raw.to_vec(), raw })
    }

    fn of(key: &KeyPair) -> Option<Self> {
        let info = key.subject_public_key_info();
        Self::of_info(&SubjectPublicKeyInfo::from_der(&info).ok()?.1)
    }
}

impl PublicKeyData for Public {
    fn der_bytes(&self) -> &[u8] {
        &self.raw
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match self.kind {
            KeyKind::Ed25519 => &PKCS_ED25519,
            KeyKind::P256 => &PKCS_ECDSA_P256_SHA256,
            KeyKind::P384 => &PKCS_ECDSA_P384_SHA384,
            KeyKind::Rsa(_) => &PKCS_RSA_SHA256,
        }
    }
}

/// A key pair that can sign.
pub(in crate::scripting::functions) struct SigningKey {
    pub(super) pair: KeyPair,
    pub(in crate::scripting::functions) public: Public,
}

impl SigningKey {
    /// Generates a key pair.
    pub(super) fn generate(kind: KeyKind) -> Result<Self, Failure> {
        let pair = match kind {
            KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            KeyKind::Ed25519 => {
                let mut pkcs8 = ED25519_PREFIX.to_vec();
                let mut seed = [0; 32];
                random::fill(&mut seed)?;
                pkcs8.extend_from_slice(&seed);
                KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8.into(), &PKCS_ED25519)
            }
            KeyKind::Rsa(bits) => {
                let key = rsa::PrivateKey::new(&mut SysRng, bits);
                let pkcs8 = key.ok().and_then(|it| it.to_pkcs8_der().ok());
                let pkcs8 = pkcs8.ok_or("the key cannot be generated")?.as_bytes().to_vec();
                KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8.into(), &PKCS_RSA_SHA256)
            }
        };
        Self::of(pair).ok_or_else(|| "the key cannot be generated".into())
    }

    fn of(pair: Result<KeyPair, rcgen::Error>) -> Option<Self> {
        let pair = pair.ok()?;
        let public = Public::of(&pair)?;
        Some(SigningKey { pair, public })
    }

    /// Reads a private key. The error does not contain any of it.
    pub(in crate::scripting::functions) fn read(
        parameter: &str,
        text: &str,
    ) -> Result<Self, Failure> {
        let expected = "expected an unencrypted private key in PEM (`-----BEGIN PRIVATE KEY-----`)";
        let misfit =
            |found: &str| Failure::Plain(format!("`{parameter}`: {expected}, got {found}"));
        let blocks = blocks(text);
        let Some(block) = blocks.iter().find(|it| it.tag().ends_with("PRIVATE KEY")) else {
            return Err(misfit(&shown(&blocks)));
        };
        let broken = || {
            misfit(
                "an unsupported or damaged key: RSA keys need 2048 to 4096 bits, curves must be P-256 or P-384",
            )
        };
        let read = |pkcs8: Vec<u8>| Self::of(KeyPair::try_from(pkcs8));
        let content = block.contents();
        match block.tag() {
            "PRIVATE KEY" => read(content.to_vec()).ok_or_else(broken),
            "RSA PRIVATE KEY" if block.headers().get("Proc-Type").is_none() => {
                let key = rsa::PrivateKey::from_pkcs1_der(content).ok();
                let pkcs8 = key.and_then(|it| it.to_pkcs8_der().ok());
                pkcs8.and_then(|it| read(it.as_bytes().to_vec())).ok_or_else(broken)
            }
            "EC PRIVATE KEY" if block.headers().get("Proc-Type").is_none() => {
                CURVES.iter().find_map(|it| read(of_sec1(content, it)?)).ok_or_else(broken)
            }
            "OPENSSH PRIVATE KEY" => {
                Err(misfit("an OpenSSH key: convert it with `ssh-keygen -p -m PKCS8 -f FILE`"))
            }
            _ => Err(misfit("an encrypted key: decrypt it with `openssl pkey -in FILE`")),
        }
    }

    /// Returns the private key as PKCS#8, DER.
    pub(in crate::scripting::functions) fn pkcs8(&self) -> &[u8] {
        self.pair.serialized_der()
    }

    /// Returns the private key as PEM.
    pub(super) fn pem(&self) -> String {
        self.pair.serialize_pem()
    }
}

/// Converts a key from OpenSSL's older format.
fn of_sec1(content: &[u8], curve: &ObjectIdentifier) -> Option<Vec<u8>> {
    let parameters = Any::encode_from(curve).ok()?;
    let algorithm =
        AlgorithmIdentifier { oid: EC_PUBLIC_KEY, parameters: Some((&parameters).into()) };
    PrivateKeyInfoRef::new(algorithm, OctetStringRef::new(content).ok()?).to_der().ok()
}

/// Reads a public key: on its own, from a certificate, or of a private key.
pub(in crate::scripting::functions) fn read_public(
    parameter: &str,
    text: &str,
) -> Result<Public, Failure> {
    let blocks = blocks(text);
    let misfit = |found: &str| {
        Failure::Plain(format!(
            "`{parameter}`: expected a public key, a certificate or a private key in PEM, got {found}"
        ))
    };
    let unsupported = || misfit("a key of an unsupported kind");
    match blocks.first().map(|it| (it.tag(), it.contents())) {
        Some(("PUBLIC KEY", content)) => {
            let info = SubjectPublicKeyInfo::from_der(content).ok();
            info.and_then(|(_, it)| Public::of_info(&it)).ok_or_else(unsupported)
        }
        Some(("CERTIFICATE", content)) => {
            let read = x509_parser::parse_x509_certificate(content).ok();
            read.and_then(|(_, it)| Public::of_info(it.public_key())).ok_or_else(unsupported)
        }
        Some((tag, _)) if tag.ends_with("PRIVATE KEY") || tag == "EC PARAMETERS" => {
            SigningKey::read(parameter, text).map(|it| it.public)
        }
        Some(_) | None => Err(misfit(&shown(&blocks))),
    }
}

/// Returns the blocks of a PEM; none if it is not a PEM.
pub(super) fn blocks(text: &str) -> Vec<pem::Pem> {
    let mut blocks = pem::parse_many(text).unwrap_or_default();
    blocks.truncate(BLOCKS_MAX);
    blocks
}

/// Describes what was found in place of what was expected, without its content.
pub(super) fn shown(blocks: &[pem::Pem]) -> String {
    /// The known labels; others could be anything.
    const KNOWN: [&str; 7] = [
        "CERTIFICATE",
        "CERTIFICATE REQUEST",
        "PUBLIC KEY",
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
    ];
    match blocks.first().map(pem::Pem::tag) {
        Some(tag) if KNOWN.contains(&tag) => format!("a PEM with `{tag}`"),
        Some(_) => "a different PEM".into(),
        None => "a string that is not PEM".into(),
    }
}
