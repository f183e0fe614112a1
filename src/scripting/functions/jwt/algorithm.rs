//! The algorithms of tokens, and the keys that they accept.

use ring::{
    hmac,
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair, UnparsedPublicKey},
};

use crate::scripting::functions::{
    crypto::keys::{self, KeyKind, SigningKey},
    outcome::Failure,
};

/// An algorithm (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hs(Size),
    Rs(Size),
    Ps(Size),
    Es256,
    Es384,
    EdDsa,
}

/// The size of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    S256,
    S384,
    S512,
}

const ALGORITHMS: [(&str, Algorithm); 12] = [
    ("HS256", Algorithm::Hs(Size::S256)),
    ("HS384", Algorithm::Hs(Size::S384)),
    ("HS512", Algorithm::Hs(Size::S512)),
    ("RS256", Algorithm::Rs(Size::S256)),
    ("RS384", Algorithm::Rs(Size::S384)),
    ("RS512", Algorithm::Rs(Size::S512)),
    ("PS256", Algorithm::Ps(Size::S256)),
    ("PS384", Algorithm::Ps(Size::S384)),
    ("PS512", Algorithm::Ps(Size::S512)),
    ("ES256", Algorithm::Es256),
    ("ES384", Algorithm::Es384),
    ("EdDSA", Algorithm::EdDsa),
];

impl Algorithm {
    /// Returns the algorithm with this name in a header.
    pub(super) fn find(name: &str) -> Option<Self> {
        ALGORITHMS.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
    }

    /// Returns the algorithm that a script names.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        Self::find(name).ok_or_else(|| {
            let known: Vec<_> = ALGORITHMS.iter().map(|(it, _)| *it).collect();
            format!("`alg`: expected one of {}, got {name:?}", known.join(", ")).into()
        })
    }

    pub(super) fn name(self) -> &'static str {
        ALGORITHMS.iter().find(|(_, it)| *it == self).map_or("", |(it, _)| *it)
    }

    /// Returns the default algorithm for a key.
    fn default_of(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Ed25519 => Algorithm::EdDsa,
            KeyKind::P256 => Algorithm::Es256,
            KeyKind::P384 => Algorithm::Es384,
            KeyKind::Rsa(_) => Algorithm::Rs(Size::S256),
        }
    }

    /// Returns whether it accepts keys of this kind.
    fn fits(self, kind: KeyKind) -> bool {
        match self {
            Algorithm::Hs(_) => false,
            Algorithm::Rs(_) | Algorithm::Ps(_) => matches!(kind, KeyKind::Rsa(_)),
            Algorithm::Es256 => kind == KeyKind::P256,
            Algorithm::Es384 => kind == KeyKind::P384,
            Algorithm::EdDsa => kind == KeyKind::Ed25519,
        }
    }

    /// Rejects a key of another kind.
    fn check(self, kind: KeyKind) -> Result<(), Failure> {
        if self.fits(kind) {
            return Ok(());
        }
        Err(format!("`key`: a key of the kind {kind} cannot be used for {}", self.name()).into())
    }
}

/// The content of the argument `key`.
enum Material<'a> {
    /// A key in PEM format.
    Pem(&'a str),
    Secret(&'a [u8]),
}

impl<'a> Material<'a> {
    /// Reads the argument. Anything that looks like PEM is read as PEM: a public key must never be mistaken for a secret.
    fn of(key: &'a [u8]) -> Result<Self, Failure> {
        let has = |part: &[u8]| key.windows(part.len()).any(|it| it == part);
        if has(b"-----BEGIN") || has(b"ssh-rsa ") || has(b"ssh-ed25519 ") || has(b"ecdsa-sha2-") {
            let text = std::str::from_utf8(key).ok();
            return text
                .map(Material::Pem)
                .ok_or_else(|| "`key`: expected a key in PEM, got bytes".into());
        }
        if key.is_empty() {
            return Err("`key`: expected a key, got an empty string".into());
        }
        Ok(Material::Secret(key))
    }
}

fn mac(size: Size) -> hmac::Algorithm {
    match size {
        Size::S256 => hmac::HMAC_SHA256,
        Size::S384 => hmac::HMAC_SHA384,
        Size::S512 => hmac::HMAC_SHA512,
    }
}

fn no_pem(algorithm: Algorithm) -> Failure {
    format!("`key`: expected a key in PEM for {}, got a shared secret", algorithm.name()).into()
}

fn no_secret(algorithm: Algorithm) -> Failure {
    format!("`key`: expected a shared secret for {}, got a key in PEM", algorithm.name()).into()
}

/// Signs tokens with a private key or a secret.
pub(super) enum Signer {
    Secret(Algorithm, hmac::Key),
    Key(Algorithm, Box<SigningKey>),
}

impl Signer {
    pub(super) fn read(key: &[u8], wanted: Option<Algorithm>) -> Result<Self, Failure> {
        match (Material::of(key)?, wanted) {
            (Material::Secret(secret), None) => {
                let algorithm = Algorithm::Hs(Size::S256);
                Ok(Signer::Secret(algorithm, hmac::Key::new(mac(Size::S256), secret)))
            }
            (Material::Secret(secret), Some(algorithm @ Algorithm::Hs(size))) => {
                Ok(Signer::Secret(algorithm, hmac::Key::new(mac(size), secret)))
            }
            (Material::Secret(_), Some(other)) => Err(no_pem(other)),
            (Material::Pem(_), Some(algorithm @ Algorithm::Hs(_))) => Err(no_secret(algorithm)),
            (Material::Pem(text), wanted) => {
                let key = SigningKey::read("key", text)?;
                let algorithm = wanted.unwrap_or(Algorithm::default_of(key.public.kind));
                algorithm.check(key.public.kind)?;
                Ok(Signer::Key(algorithm, Box::new(key)))
            }
        }
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        match self {
            Signer::Secret(algorithm, _) | Signer::Key(algorithm, _) => *algorithm,
        }
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let (algorithm, key) = match self {
            Signer::Secret(_, key) => return Ok(hmac::sign(key, message).as_ref().to_vec()),
            Signer::Key(algorithm, key) => (*algorithm, key.pkcs8()),
        };
        let signed = match algorithm {
            Algorithm::Hs(_) => None,
            Algorithm::Rs(Size::S256) => rsa(&signature::RSA_PKCS1_SHA256, key, message),
            Algorithm::Rs(Size::S384) => rsa(&signature::RSA_PKCS1_SHA384, key, message),
            Algorithm::Rs(Size::S512) => rsa(&signature::RSA_PKCS1_SHA512, key, message),
            Algorithm::Ps(Size::S256) => rsa(&signature::RSA_PSS_SHA256, key, message),
            Algorithm::Ps(Size::S384) => rsa(&signature::RSA_PSS_SHA384, key, message),
            Algorithm::Ps(Size::S512) => rsa(&signature::RSA_PSS_SHA512, key, message),
            Algorithm::Es256 => ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, key, message),
            Algorithm::Es384 => ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, key, message),
            Algorithm::EdDsa => {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).ok();
                key.map(|it| it.sign(message).as_ref().to_vec())
            }
        };
        signed.ok_or_else(|| "`key`: cannot sign".into())
    }
}

fn rsa(
    encoding: &'static dyn signature::RsaEncoding,
    key: &[u8],
    message: &[u8],
) -> Option<Vec<u8>> {
    let key = RsaKeyPair::from_pkcs8(key).ok()?;
    let mut signed = vec![0; key.public().modulus_len()];
    key.sign(encoding, &SystemRandom::new(), message, &mut signed).ok()?;
    Some(signed)
}

fn ecdsa(
    algorithm: &'static signature::EcdsaSigningAlgorithm,
    key: &[u8],
    message: &[u8],
) -> Option<Vec<u8>> {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(algorithm, key, &random).ok()?;
    Some(key.sign(&random, message).ok()?.as_ref().to_vec())
}

/// Verifies tokens with a public key or a secret.
pub(super) enum Verifier {
    Secret(hmac::Key),
    Key(UnparsedPublicKey<Vec<u8>>),
}

impl Verifier {
    pub(super) fn read(key: &[u8], algorithm: Algorithm) -> Result<Self, Failure> {
        let text = match (Material::of(key)?, algorithm) {
            (Material::Secret(secret), Algorithm::Hs(size)) => {
                return Ok(Verifier::Secret(hmac::Key::new(mac(size), secret)));
            }
            (Material::Secret(_), other) => return Err(no_pem(other)),
            (Material::Pem(text), _) => text,
        };
        let verification: &dyn signature::VerificationAlgorithm = match algorithm {
            Algorithm::Hs(_) => return Err(no_secret(algorithm)),
            Algorithm::Rs(Size::S256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Rs(Size::S384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::Rs(Size::S512) => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::Ps(Size::S256) => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::Ps(Size::S384) => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::Ps(Size::S512) => &signature::RSA_PSS_2048_8192_SHA512,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Algorithm::EdDsa => &signature::ED25519,
        };
        let public = keys::read_public("key", text)?;
        algorithm.check(public.kind)?;
        Ok(Verifier::Key(UnparsedPublicKey::new(verification, public.raw)))
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Verifier::Secret(key) => hmac::verify(key, message, signature).is_ok(),
            Verifier::Key(key) => key.verify(message, signature).is_ok(),
        }
    }
}
