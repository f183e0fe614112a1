//! `crypto`: keys, certificates, keystores and Fernet. Errors say what is wrong, but never show what was passed.

mod certificates;
mod fernet;
pub(super) mod keys;
mod parsed;
mod pkcs12;
mod ssh;

use serde_json::json;

use super::Call;
use crate::scripting::functions::{
    outcome::Outcome,
    types::{Body, Function, Library, Parameter, Type, immediate, optional, required},
};

pub(super) const LIBRARY: Library = Library {
    name: "crypto",
    doc: "Keys, certificates, keystores, and encryption with Fernet. Keys are strings in PEM. Slow functions run in the background, one at a time per script.",
    functions: &[
        Function {
            name: "key",
            doc: "Generates a key pair and returns a map with `kind`, `pem` (the private key, PKCS#8), `public_pem`, `ssh` (the public key, a line of `authorized_keys`) and `ssh_private` (the private key for SSH programs).",
            parameters: &[required(
                "kind",
                Type::Name,
                "\"ed25519\", \"p256\", \"p384\", \"rsa2048\", \"rsa3072\" or \"rsa4096\"; or the PEM of a private key, to be read instead.",
            )
            .secret()],
            options: &[],
            returns: Type::Map,
            body: Body::Waiting(|call| Box::pin(call.heavily(key))),
        },
        Function {
            name: "ca",
            doc: "Creates a CA and returns a map with `cert` and `key` in PEM, for the option `ca` of crypto.certificate.",
            parameters: &[],
            options: &[
                optional("name", Type::Name, "The common name; default: \"kopf\"."),
                ORGANIZATION,
                optional("days", Type::Integer, "Days of validity; default: 3650."),
                KIND,
                KEY,
            ],
            returns: Type::Map,
            body: Body::Waiting(|call| Box::pin(call.heavily(certificates::ca))),
        },
        Function {
            name: "certificate",
            doc: "Creates a certificate for servers and clients and returns a map with `cert`, `key` and `ca` in PEM, such as for the Secret of an Ingress. With a request (`csr`), the map has no `key`.",
            parameters: &[],
            options: &[
                optional("ca", Type::Map, "The CA that signs it: a map with `cert` and `key`, as returned by crypto.ca; default: none (self-signed).").secret(),
                NAMES,
                NAME,
                ORGANIZATION,
                optional("days", Type::Integer, "Days of validity, at most until the CA expires; default: 365."),
                KIND,
                KEY,
                optional("csr", Type::Text, "A certificate request in PEM, whose key and names are used; `names` replaces its names."),
            ],
            returns: Type::Map,
            body: Body::Waiting(|call| Box::pin(call.heavily(certificates::certificate))),
        },
        Function {
            name: "csr",
            doc: "Creates a certificate request and returns a map with `csr` and `key` in PEM. The CertificateSigningRequest of Kubernetes takes `base64.encode(csr)`.",
            parameters: &[],
            options: &[NAMES, NAME, ORGANIZATION, KIND, KEY],
            returns: Type::Map,
            body: Body::Waiting(|call| Box::pin(call.heavily(certificates::csr))),
        },
        immediate(
            "parse",
            "Returns the contents of a certificate: a map with `subject`, `issuer`, `names` (a list), `not_before` and `not_after` (RFC 3339), `serial` (hexadecimal), `is_ca`, `kind` (of its key) and `fingerprint` (SHA-256, hexadecimal).",
            &[required("pem", Type::Text, "The certificate in PEM; of several, the first one is used.").secret()],
            Type::Map,
            parsed::parse,
        ),
        Function {
            name: "pkcs12",
            doc: "Creates a keystore in PKCS#12 (`.p12`) and returns its bytes: with a key and its certificate, or without a key as a truststore, also for Java.",
            parameters: &[
                required(
                    "cert",
                    Type::Text,
                    "The certificate in PEM, followed by those of its chain; without a key, all that are trusted.",
                )
                .secret(),
                required("password", Type::Text, "The password of the store.").secret(),
            ],
            options: &[
                KEY_OF_STORE,
                optional("ca", Type::Text, "More certificates of the chain, in PEM.").secret(),
                optional("name", Type::Name, "The alias; default: \"kopf\"."),
            ],
            returns: Type::Bytes,
            body: Body::Waiting(|call| Box::pin(call.heavily(pkcs12::pkcs12))),
        },
        immediate(
            "fernet_key",
            "Returns a new key for Fernet.",
            &[],
            Type::Text,
            fernet::key,
        ),
        immediate(
            "fernet_encrypt",
            "Encrypts data with Fernet, as the Python package `cryptography` does. Returns the token.",
            &[FERNET_KEY, required("data", Type::Bytes, "A string or bytes.").secret()],
            Type::Text,
            fernet::encrypt,
        ),
        immediate(
            "fernet_decrypt",
            "Decrypts a token of Fernet. Returns the data as bytes: a string in Lua, a blob in Rhai. Raises an error if the token was made with another key or was changed.",
            &[FERNET_KEY, required("token", Type::Text, "The token.").secret()],
            Type::Bytes,
            fernet::decrypt,
        )
        .with(&[optional("ttl", Type::Duration, "Raise an error if the token is older; default: any age.")]),
    ],
};

const NAME: Parameter =
    optional("name", Type::Name, "The common name; default: the first of `names`.");
const NAMES: Parameter = optional(
    "names",
    Type::List,
    "The alternative names: host names, IP addresses, URIs, mail addresses.",
);
const ORGANIZATION: Parameter = optional(
    "organization",
    Type::Name,
    "The organization; in a client certificate of Kubernetes, the group.",
);
const KIND: Parameter =
    optional("kind", Type::Name, "The kind of the new key, as for crypto.key; default: \"p256\".");
const KEY: Parameter =
    optional("key", Type::Text, "The private key in PEM; default: a new one.").secret();
const KEY_OF_STORE: Parameter =
    optional("key", Type::Text, "The private key in PEM; default: none, for a truststore.")
        .secret();
const FERNET_KEY: Parameter =
    required("key", Type::Text, "The key, as crypto.fernet_key returns it.").secret();

/// Implements `crypto.key`: generates a key pair.
fn key(call: &Call) -> Outcome {
    let given = call.text("kind");
    let key = if given.contains("-----BEGIN") {
        keys::SigningKey::read("kind", given)?
    } else {
        keys::SigningKey::generate(keys::KeyKind::named("kind", given)?)?
    };
    let shown = json!({
        "kind": key.public.kind.to_string(),
        "pem": key.pem(),
        "public_pem": key.pair.public_key_pem(),
        "ssh": ssh::public(&key.public),
        "ssh_private": ssh::private(&key)?,
    });
    Ok(shown.into())
}
