local checks = require("lib.checks")
local check, fails, fails_with = checks.check, checks.fails, checks.fails_with

-- Keys.
local keys = {}
for _, kind in { "ed25519", "p256", "p384", "rsa2048" } do
    local key = crypto.key(kind)
    keys[kind] = key
    check(key.kind, kind)
    check(strings.starts_with(key.pem, "-----BEGIN PRIVATE KEY-----\n"), true)
    check(strings.starts_with(key.public_pem, "-----BEGIN PUBLIC KEY-----\n"), true)
    local again = crypto.key(key.pem)
    check(again.public_pem, key.public_pem)
    check(again.ssh, key.ssh)
end
check(strings.starts_with(keys.ed25519.ssh, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"), true)
check(strings.starts_with(keys.p256.ssh, "ecdsa-sha2-nistp256 "), true)
check(strings.starts_with(keys.rsa2048.ssh, "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ"), true)
check(strings.starts_with(keys.ed25519.ssh_private, "-----BEGIN OPENSSH PRIVATE KEY-----\n"), true)
check(keys.p256.ssh_private, keys.p256.pem)
fails(function() crypto.key("rsa1024") end, "crypto.key: `kind`: expected \"ed25519\", \"p256\", \"p384\", \"rsa2048\", \"rsa3072\", \"rsa4096\", got \"rsa1024\"")
fails_with(function() crypto.key(keys.p256.public_pem) end, "expected an unencrypted private key in PEM (`-----BEGIN PRIVATE KEY-----`), got a PEM with `PUBLIC KEY`")
fails_with(function() crypto.key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n") end, "got an unsupported or damaged key")

-- Certificates.
local ca = crypto.ca({ name = "my CA", organization = "Example", days = 30 })
local parsed = crypto.parse(ca.cert)
check(parsed.subject, "O=Example, CN=my CA")
check(parsed.issuer, "O=Example, CN=my CA")
check(parsed.is_ca, true)
check(parsed.not_before, "2025-12-31T23:55:00Z")
check(parsed.not_after, "2026-01-31T00:00:00Z")
local names = { "db.ns.svc", "*.example.com", "10.0.0.1", "fe80::1", "spiffe://a/b", "ops@example.com" }
local made = crypto.certificate({ ca = ca, names = names, days = 10 })
parsed = crypto.parse(made.cert)
check(parsed.names, names)
check({ parsed.subject, parsed.issuer }, { "CN=db.ns.svc", "O=Example, CN=my CA" })
check({ parsed.is_ca, parsed.kind, parsed.not_after }, { false, "p256", "2026-01-11T00:00:00Z" })
check(#parsed.fingerprint, 64)
check(made.ca, ca.cert)
check(crypto.key(made.key).kind, "p256")
-- No certificate outlives its CA.
check(crypto.parse(crypto.certificate({ ca = ca, names = { "a" } }).cert).not_after, "2026-01-31T00:00:00Z")
-- Self-signed, with a key of the script.
local own = crypto.certificate({ names = { "a.example.com" }, name = "a", key = keys.rsa2048.pem })
check({ own.ca == own.cert, own.key == keys.rsa2048.pem, crypto.parse(own.cert).kind }, { true, true, "rsa2048" })
-- Requests.
local request = crypto.csr({ name = "shop", organization = "team", names = { "shop.ns" }, kind = "ed25519" })
local signed = crypto.certificate({ ca = ca, csr = request.csr })
check(signed.key, nil)
parsed = crypto.parse(signed.cert)
check({ parsed.subject, parsed.names, parsed.kind }, { "O=team, CN=shop", { "shop.ns" }, "ed25519" })
check(crypto.parse(crypto.certificate({ ca = ca, csr = request.csr, names = { "other" } }).cert).names, { "other" })

fails(function() crypto.certificate({ days = 0 }) end, "crypto.certificate: `days`: expected 1 to 36500, got 0")
fails(function() crypto.certificate({ names = { "a b" } }) end, "crypto.certificate: `names`: item 1: expected a host name, an IP address, a URI or a mail address, in ASCII, got \"a b\"")
fails(function() crypto.certificate({ names = { 5 } }) end, "crypto.certificate: `names`: item 1: expected a host name, an IP address, a URI or a mail address, in ASCII, got 5")
fails(function() crypto.certificate({ csr = request.csr }) end, "crypto.certificate: `csr` needs `ca`, the CA that signs the request")
fails_with(function() crypto.certificate({ ca = ca, csr = request.csr, name = "x" }) end, "`csr` already contains the key and the name")
fails(function() crypto.certificate({ ca = { cert = ca.cert, key = keys.p256.pem } }) end, "crypto.certificate: `ca`: the key does not belong to the certificate")
fails(function() crypto.certificate({ ca = { cert = own.cert, key = own.key } }) end, "crypto.certificate: `ca`: the certificate is not that of a CA")
fails_with(function() crypto.certificate({ ca = { cert = ca.cert } }) end, "`key` is missing or not a string")
fails(function() crypto.certificate({ key = made.key, kind = "p256" }) end, "crypto.certificate: `key`, `kind`: expected one of them, got both")
fails(function() crypto.parse(keys.p256.pem) end, "crypto.parse: `pem`: expected a certificate in PEM (`-----BEGIN CERTIFICATE-----`), got a PEM with `PRIVATE KEY`")
fails_with(function() crypto.parse("secret") end, "got a string that is not PEM")

-- Keystores.
local store = crypto.pkcs12(made.cert, "changeit", { key = made.key, ca = ca.cert, name = "db" })
check(base64.encode(store):sub(1, 2), "MI")
check(base64.encode(crypto.pkcs12(ca.cert .. own.cert, "changeit")):sub(1, 2), "MI")
fails(function() crypto.pkcs12(made.cert, "x", { key = keys.p256.pem }) end, "crypto.pkcs12: `key`: does not belong to the first certificate of `cert`")
fails(function() crypto.pkcs12(made.cert) end, "crypto.pkcs12: `password` is missing: expected a string")

-- Fernet, with the vectors of its specification.
local spec = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4="
check(crypto.fernet_decrypt(spec, "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA=="), "hello")
fails(function() crypto.fernet_decrypt(spec, "gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==", { ttl = 60 }) end, "crypto.fernet_decrypt: `token`: has expired: it is 1268062800 s old, `ttl` is 60 s")
local fernet = crypto.fernet_key()
local token = crypto.fernet_encrypt(fernet, "a\0b")
check(crypto.fernet_decrypt(fernet, token, { ttl = "1m" }), "a\0b")
fails_with(function() crypto.fernet_decrypt(crypto.fernet_key(), token) end, "is not a Fernet token of this key")
fails_with(function() crypto.fernet_decrypt(fernet, "gAAAAA" .. token) end, "is not a Fernet token of this key")
fails(function() crypto.fernet_decrypt("secret", token) end, "crypto.fernet_decrypt: `key`: expected 32 bytes in URL-safe Base64, as crypto.fernet_key returns them")

-- Tokens.
local claims = { sub = "shop", aud = { "a", "b" }, iss = "me", exp = time.now() + 60, nbf = time.now() }
for algorithm, pair in {
    HS256 = { "secret", "secret" }, HS384 = { "secret", "secret" }, HS512 = { "secret", "secret" },
    RS256 = { keys.rsa2048.pem, keys.rsa2048.public_pem }, RS384 = { keys.rsa2048.pem, own.cert }, RS512 = { keys.rsa2048.pem, keys.rsa2048.pem },
    PS256 = { keys.rsa2048.pem, keys.rsa2048.public_pem }, PS384 = { keys.rsa2048.pem, keys.rsa2048.public_pem }, PS512 = { keys.rsa2048.pem, keys.rsa2048.public_pem },
    ES256 = { keys.p256.pem, keys.p256.public_pem }, ES384 = { keys.p384.pem, keys.p384.public_pem }, EdDSA = { keys.ed25519.pem, keys.ed25519.public_pem },
} do
    local signed = jwt.sign(claims, pair[1], { alg = algorithm, kid = "1" })
    check(jwt.verify(signed, pair[2], { alg = algorithm, aud = "b", iss = "me" }).sub, "shop")
    fails_with(function() jwt.verify(strings.replace(signed, ".", ".e", { limit = 1 }), pair[2], { aud = "b" }) end, "the signature is invalid")
end
check(json.decode(base64.decode(strings.split(jwt.sign({}, keys.ed25519.pem), ".")[1])).alg, "EdDSA")
check(json.decode(base64.decode(strings.split(jwt.sign({ exp = 1.5 }, "secret"), ".")[2])).exp, 1)
-- The example of RFC 7515, A.1.
local rfc = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
local shared = base64.decode_bytes("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
check(jwt.verify(rfc, shared, { leeway = 600000000 }).iss, "joe")
fails_with(function() jwt.verify(rfc, shared) end, "jwt.verify: `token`: has expired ")

-- Attacks.
local function forged(header, claims, secret)
    local part = function(it) return base64.encode(json.encode(it), { url = true, padding = false }) end
    local signed = part(header) .. "." .. part(claims)
    local mac = if secret then hash.hmac(secret, signed, { encoding = "bytes" }) else ""
    return signed .. "." .. base64.encode(mac, { url = true, padding = false })
end
check(jwt.verify(forged({ alg = "HS256" }, { a = 1 }, "secret"), "secret"), { a = 1 })
for _, none in { "none", "None", "NONE", "", "hs256" } do
    fails(function() jwt.verify(forged({ alg = none }, { a = 1 }), "secret") end, "jwt.verify: `token`: its algorithm is not supported, or it has none")
end
for _, public in { keys.rsa2048.public_pem, own.cert, keys.p256.public_pem } do
    fails(function() jwt.verify(forged({ alg = "HS256" }, { a = 1 }, public), public) end, "jwt.verify: `key`: expected a shared secret for HS256, got a key in PEM")
end
fails(function() jwt.verify(forged({ alg = "RS256" }, { a = 1 }, "secret"), "secret") end, "jwt.verify: `key`: expected a key in PEM for RS256, got a shared secret")
fails(function() jwt.verify(forged({ alg = "ES256" }, { a = 1 }), keys.rsa2048.public_pem) end, "jwt.verify: `key`: a key of the kind rsa2048 cannot be used for ES256")
fails_with(function() jwt.verify(forged({ alg = "HS256", crit = { "b64" }, b64 = false }, { a = 1 }, "secret"), "secret") end, "critical extensions")
fails(function() jwt.verify(jwt.sign(claims, "secret"), "secret", { alg = "HS512", aud = "a" }) end, "jwt.verify: `token`: was signed with HS256, not with `alg`")
fails(function() jwt.verify(jwt.sign(claims, "secret"), "secret") end, "jwt.verify: `token`: has an audience: the option `aud` must name it")
fails(function() jwt.verify(jwt.sign(claims, "secret"), "secret", { aud = "c" }) end, "jwt.verify: `token`: is not for the audience \"c\" (`aud`)")
fails_with(function() jwt.verify(jwt.sign(claims, "secret"), "secret", { aud = "a", iss = "you" }) end, "has another issuer")
fails(function() jwt.verify(jwt.sign({ exp = time.now() }, "secret"), "secret") end, "jwt.verify: `token`: has expired 0 s ago (`exp`)")
fails(function() jwt.verify(jwt.sign({ nbf = time.now() + 30 }, "secret"), "secret") end, "jwt.verify: `token`: becomes valid in 30 s (`nbf`)")
check(jwt.verify(jwt.sign({ nbf = time.now() + 30 }, "secret"), "secret", { leeway = "30s" }).nbf ~= nil, true)
fails_with(function() jwt.verify(forged({ alg = "HS256" }, { exp = "2030" }, "secret"), "secret") end, "`exp` is not a number")
fails_with(function() jwt.verify("a.b", "secret") end, "expected a JSON Web Token")
fails(function() jwt.sign({ exp = "1h" }, "secret") end, "jwt.sign: `claims`: `exp`: expected seconds since 1970, as time.now() returns them")
fails(function() jwt.sign({}, "") end, "jwt.sign: `key`: expected a key, got an empty string")
fails(function() jwt.sign({}, keys.p256.public_pem) end, "jwt.sign: `key`: expected an unencrypted private key in PEM (`-----BEGIN PRIVATE KEY-----`), got a PEM with `PUBLIC KEY`")
fails(function() jwt.sign({}, "secret", { headers = { alg = "none" } }) end, "jwt.sign: `headers`: `alg` cannot be set")
-- Errors show no keys.
fails(function() jwt.sign({}, { pem = "secret" }) end, "jwt.sign: `key`: expected a string or bytes, got a map")
fails(function() jwt.verify({ "secret" }, "x") end, "jwt.verify: `token`: expected a string, got a list")
fails(function() crypto.key({ pem = "secret" }) end, "crypto.key: `kind`: expected a non-empty string, got a map")

-- Passwords.
local hashed = hash.bcrypt("päss", { cost = 4 })
check({ #hashed, hashed:sub(1, 7), hash.check("päss", hashed), hash.check("pass", hashed) }, { 60, "$2b$04$", true, false })
check(hash.bcrypt("x", { cost = 4, version = "2y" }):sub(1, 7), "$2y$04$")
check(hash.check("U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"), true)
hashed = hash.argon2("päss", { memory = 64, iterations = 2 })
check(strings.starts_with(hashed, "$argon2id$v=19$m=64,t=2,p=1$"), true)
check({ hash.check("päss", hashed), hash.check("pass", hashed) }, { true, false })
check(strings.starts_with(hash.argon2("x"), "$argon2id$v=19$m=19456,t=2,p=1$"), true)
fails(function() hash.bcrypt("x", { cost = 16 }) end, "hash.bcrypt: `cost`: expected 4 to 15, got 16")
fails_with(function() hash.bcrypt(string.rep("x", 73)) end, "`password`: expected at most 72 bytes without a zero byte")
fails_with(function() hash.bcrypt("a\0b") end, "`password`: expected at most 72 bytes without a zero byte")
fails(function() hash.argon2("x", { memory = 65537 }) end, "hash.argon2: `memory`, `iterations`: expected at most 64 MiB of memory (settings.sandbox.memory_limit), got 65537 KiB")
fails_with(function() hash.argon2("x", { memory = 65536, iterations = 17 }) end, "expected at most 1048576 KiB in all passes together")
fails_with(function() hash.check("x", "$argon2id$v=19$m=4194304,t=2,p=1$YWFhYWFhYWE$YWFhYWFhYWFhYWFhYWFhYQ") end, "expected at most 64 MiB of memory")
fails(function() hash.check("x", "$2b$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW") end, "hash.check: `hash`: expected a cost of at most 15, got 31")
fails(function() hash.check("x", "plain") end, "hash.check: `hash`: expected a hash of bcrypt ($2b$…) or Argon2 ($argon2id$…), got another string")
fails(function() hash.bcrypt({ "secret" }) end, "hash.bcrypt: `password`: expected a string or bytes, got a list")

-- Bytes.
check(#random.bytes(32), 32)
check(random.bytes(8, { seed = 1 }) == random.bytes(8, { seed = 1 }), true)
check(random.bytes(16) ~= random.bytes(16), true)
check(random.bytes(0), "")
fails(function() random.bytes(1e9) end, "random.bytes: a string would be longer than 4 MiB (settings.sandbox.string_size)")
fails(function() random.bytes(-1) end, "random.bytes: `count`: expected a number of at least 0, got -1")
