//! Keys, certificates, tokens and hashes of scripts, checked by other programs: openssl, ssh-keygen, and Python's `cryptography`.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::check::Directory;
use crate::vectors::say;

/// Creates one of each at the top level of a script, and prints them as JSON.
const MADE: &str = r#"
local keys = {}
for _, kind in { "ed25519", "p256", "p384", "rsa2048" } do keys[kind] = crypto.key(kind) end
local ca = crypto.ca({ name = "Test CA" })
local leaf = crypto.certificate({ ca = ca, names = { "db.ns.svc", "10.0.0.1" }, name = "db", organization = "ops" })
local request = crypto.csr({ names = { "shop.ns" }, name = "shop", kind = "rsa2048" })
local parsed = crypto.parse(leaf.cert)
local fernet = crypto.fernet_key()
print(json.encode({
    keys = keys, ca = ca, leaf = leaf, request = request, parsed = parsed,
    store = base64.encode(crypto.pkcs12(leaf.cert, "changeit", { key = leaf.key, ca = ca.cert, name = "db" })),
    trusted = base64.encode(crypto.pkcs12(ca.cert, "changeit", { name = "root" })),
    fernet = { key = fernet, token = crypto.fernet_encrypt(fernet, "hello") },
    bcrypt = hash.bcrypt("secret", { cost = 5 }), argon2 = hash.argon2("secret", { memory = 256 }),
    tokens = {
        RS256 = jwt.sign({ sub = "a" }, keys.rsa2048.pem), PS256 = jwt.sign({ sub = "a" }, keys.rsa2048.pem, { alg = "PS256" }),
        ES256 = jwt.sign({ sub = "a" }, keys.p256.pem), ES384 = jwt.sign({ sub = "a" }, keys.p384.pem),
        EdDSA = jwt.sign({ sub = "a" }, keys.ed25519.pem),
    },
}))
"#;

/// A directory with the files that the programs read.
struct Files(Directory, PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let directory = Directory::with(test, &[]);
        let path = directory.path("");
        Files(directory, path)
    }

    /// Runs a script and returns what it prints.
    fn script(&self, text: &str) -> Value {
        self.0.write("keys.lua", text);
        let (code, stdout, stderr) = self.0.check(&["keys.lua"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        let line = stdout.lines().chain(stderr.lines()).find(|it| it.starts_with('{'));
        serde_json::from_str(line.expect("a line of JSON")).expect("JSON")
    }

    fn write(&self, name: &str, content: &Value) {
        self.0.write(name, content.as_str().expect("a string"));
    }

    /// Runs a program here; returns its output. If the program is missing, the test is skipped with a message.
    fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.1).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|it| panic!("{program}: {it}"));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {told}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn bytes(&self, name: &str, content: &Value) {
        use base64::Engine as _;
        let engine = base64::prelude::BASE64_STANDARD;
        let bytes = engine.decode(content.as_str().expect("a string")).expect("Base64");
        fs::write(self.1.join(name), bytes).expect("a file");
    }
}

/// Returns whether a program is installed; prints a message if not.
fn is_there(test: &str, program: &str, args: &[&str]) -> bool {
    let found = Command::new(program).args(args).stdin(Stdio::null()).output();
    let found = found.is_ok_and(|it| it.status.success());
    if !found {
        say(&format!("{test}: skipped, there is no {program} for {args:?}"));
    }
    found
}

#[test]
fn openssl_reads_keys_certificates_requests_and_stores_of_scripts() {
    if !is_there("keys", "openssl", &["version"]) {
        return;
    }
    let here = Files::new("keys-openssl");
    let made = here.script(MADE);
    for kind in ["ed25519", "p256", "p384", "rsa2048"] {
        here.write("key.pem", &made["keys"][kind]["pem"]);
        let public = here.run("openssl", &["pkey", "-in", "key.pem", "-pubout"]);
        assert_eq!(
            public,
            made["keys"][kind]["public_pem"].as_str().expect("PEM").trim(),
            "{kind}"
        );
    }
    here.write("ca.pem", &made["ca"]["cert"]);
    here.write("leaf.pem", &made["leaf"]["cert"]);
    assert_eq!(
        here.run("openssl", &["verify", "-x509_strict", "-CAfile", "ca.pem", "leaf.pem"]),
        "leaf.pem: OK"
    );
    let purpose = [
        "verify",
        "-purpose",
        "sslserver",
        "-verify_hostname",
        "db.ns.svc",
        "-CAfile",
        "ca.pem",
        "leaf.pem",
    ];
    assert_eq!(here.run("openssl", &purpose), "leaf.pem: OK");
    let print = here.run(
        "openssl",
        &["x509", "-in", "leaf.pem", "-noout", "-fingerprint", "-sha256", "-serial", "-subject"],
    );
    let plain = print.replace(':', "").to_lowercase();
    let parsed = &made["parsed"];
    for part in ["fingerprint", "serial"] {
        assert!(
            plain.contains(parsed[part].as_str().expect("a string")),
            "{part}: {print} {parsed}"
        );
    }
    here.write("request.pem", &made["request"]["csr"]);
    let request = here
        .run("openssl", &["req", "-in", "request.pem", "-noout", "-verify", "-subject", "-text"]);
    assert!(request.contains("DNS:shop.ns"), "{request}");
    here.bytes("store.p12", &made["store"]);
    let keys =
        here.run("openssl", &["pkcs12", "-in", "store.p12", "-passin", "pass:changeit", "-nodes"]);
    assert!(keys.contains("friendlyName: db") && keys.contains("BEGIN PRIVATE KEY"), "{keys}");
    assert_eq!(keys.matches("BEGIN CERTIFICATE").count(), 2);
    here.bytes("trusted.p12", &made["trusted"]);
    let trusted = here
        .run("openssl", &["pkcs12", "-in", "trusted.p12", "-passin", "pass:changeit", "-nokeys"]);
    assert_eq!(trusted.matches("BEGIN CERTIFICATE").count(), 1);
}

#[test]
fn scripts_read_keys_certificates_and_requests_of_openssl() {
    if !is_there("keys", "openssl", &["version"]) {
        return;
    }
    let here = Files::new("keys-of-openssl");
    for line in [
        "ecparam -name prime256v1 -genkey -out sec1.pem",
        "genpkey -algorithm ed25519 -out ed.pem",
        "genrsa -traditional -out pkcs1.pem 2048",
        "genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-384 -out p384.pem",
        // DER puts a zero before a number whose first bit is set; `openssl x509 -serial` prints no such zero.
        "req -x509 -new -utf8 -key pkcs1.pem -days 10 -out root.pem -subj /O=Äpfel/CN=root -set_serial 0x841120bef7",
        "req -new -key p384.pem -subj /CN=web -addext subjectAltName=DNS:web.ns -out web.csr",
    ] {
        here.run("openssl", &line.split(' ').collect::<Vec<_>>());
    }
    let read = |name: &str| json!(here.0.read(name)).to_string();
    let made = here.script(&format!(
        r#"
local function public(pem) return crypto.key(pem).public_pem end
local ca = {{ cert = {root}, key = {pkcs1} }}
local web = crypto.certificate({{ ca = ca, csr = {csr}, days = 100 }})
local own = crypto.certificate({{ ca = ca, names = {{ "own.ns" }}, kind = "ed25519" }})
print(json.encode({{
    public = {{ sec1 = public({sec1}), ed = public({ed}), pkcs1 = public({pkcs1}), p384 = public({p384}) }},
    web = web, own = own, parsed = crypto.parse({root}),
}}))
"#,
        root = read("root.pem"),
        pkcs1 = read("pkcs1.pem"),
        csr = read("web.csr"),
        sec1 = read("sec1.pem"),
        ed = read("ed.pem"),
        p384 = read("p384.pem"),
    ));
    for kind in ["sec1", "ed", "pkcs1", "p384"] {
        let file = format!("{kind}.pem");
        let public = here.run("openssl", &["pkey", "-in", &file, "-pubout"]);
        assert_eq!(public, made["public"][kind].as_str().expect("PEM").trim(), "{kind}");
    }
    assert_eq!(made["parsed"]["subject"], "O=Äpfel, CN=root");
    assert_eq!(made["parsed"]["serial"], "841120bef7");
    for name in ["web", "own"] {
        here.write("leaf.pem", &made[name]["cert"]);
        assert_eq!(
            here.run("openssl", &["verify", "-CAfile", "root.pem", "leaf.pem"]),
            "leaf.pem: OK"
        );
    }
}

#[test]
fn ssh_keygen_reads_keys_of_scripts() {
    if !is_there("keys", "sh", &["-c", "command -v ssh-keygen"]) {
        return;
    }
    let here = Files::new("keys-ssh");
    let made = here.script(MADE);
    for kind in ["ed25519", "p256", "p384", "rsa2048"] {
        here.write("key", &made["keys"][kind]["ssh_private"]);
        here.run("chmod", &["600", "key"]);
        let public = here.run("ssh-keygen", &["-y", "-f", "key"]);
        let expected = made["keys"][kind]["ssh"].as_str().expect("a line");
        assert_eq!(public.split(' ').take(2).collect::<Vec<_>>().join(" "), expected, "{kind}");
        here.write("key.pub", &made["keys"][kind]["ssh"]);
        here.run("ssh-keygen", &["-l", "-f", "key.pub"]);
    }
}

/// Checks everything in Python, and creates inputs for a script.
const PYTHON: &str = r#"
import base64, json, sys
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key, load_ssh_private_key, load_ssh_public_key, pkcs12

made = json.load(open("made.json"))
keys = made["keys"]
for kind, key in keys.items():
    private = load_pem_private_key(key["pem"].encode(), None)
    assert private.public_key() == load_pem_public_key(key["public_pem"].encode()), kind
    assert private.public_key() == load_ssh_public_key(key["ssh"].encode()), kind
ssh = load_ssh_private_key(keys["ed25519"]["ssh_private"].encode(), None)
assert ssh.public_key() == load_pem_public_key(keys["ed25519"]["public_pem"].encode())

assert Fernet(made["fernet"]["key"]).decrypt(made["fernet"]["token"]) == b"hello"

leaf = x509.load_pem_x509_certificate(made["leaf"]["cert"].encode())
leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(made["ca"]["cert"].encode()))
key, cert, more = pkcs12.load_key_and_certificates(base64.b64decode(made["store"]), b"changeit")
assert cert == leaf and len(more) == 1 and key.public_key() == leaf.public_key()

def part(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

def raw(signature):
    half = len(signature) // 2
    return utils.encode_dss_signature(int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big"))

def public(kind):
    return load_pem_public_key(keys[kind]["public_pem"].encode())

for algorithm, token in made["tokens"].items():
    signed, _, signature = token.rpartition(".")
    signed, signature = signed.encode(), part(signature)
    if algorithm == "RS256":
        public("rsa2048").verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    elif algorithm == "PS256":
        public("rsa2048").verify(signature, signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    elif algorithm == "ES256":
        public("p256").verify(raw(signature), signed, ec.ECDSA(hashes.SHA256()))
    elif algorithm == "ES384":
        public("p384").verify(raw(signature), signed, ec.ECDSA(hashes.SHA384()))
    else:
        public("ed25519").verify(signature, signed)

def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

signer = load_pem_private_key(keys["ed25519"]["pem"].encode(), None)
signed = encoded(b'{"alg":"EdDSA"}') + "." + encoded(b'{"sub":"python"}')
fernet = Fernet.generate_key()
print(json.dumps({
    "token": signed + "." + encoded(signer.sign(signed.encode())), "public": keys["ed25519"]["public_pem"],
    "fernet_key": fernet.decode(), "fernet": Fernet(fernet).encrypt(b"from python").decode(),
}))
"#;

#[expect(clippy::disallowed_methods, reason = "the tests are the outermost layer")]
fn python() -> String {
    let given = std::env::var("KOPF_PYTHON").ok().filter(|it| !it.is_empty());
    given.unwrap_or_else(|| "python3".to_owned())
}

#[test]
fn python_reads_what_scripts_make_and_scripts_read_what_python_makes() {
    let python = python();
    if !is_there("keys", &python, &["-c", "from cryptography.fernet import Fernet"]) {
        return;
    }
    let here = Files::new("keys-python");
    let made = here.script(MADE);
    here.0.write("made.json", &made.to_string());
    here.0.write("check.py", PYTHON);
    let answer: Value =
        serde_json::from_str(&here.run(&python, &["check.py"])).expect("an answer in JSON");
    let back = here.script(&format!(
        "print(json.encode({{ sub = jwt.verify({token}, {public}).sub, data = crypto.fernet_decrypt({key}, {fernet}, {{ ttl = 60 }}) }}))",
        token = answer["token"],
        public = answer["public"],
        key = answer["fernet_key"],
        fernet = answer["fernet"],
    ));
    assert_eq!(back, json!({ "sub": "python", "data": "from python" }));
}
