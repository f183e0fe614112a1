//! Tokens of service accounts: JSON web tokens like those of the real server, signed with a key of this server.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::CONTENT_TYPE;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{
    Shared, object,
    rbac::User,
    refusal::{Refusal, ValidationProblem},
    reply::Reply,
    request::body::decode_part,
    store::StoreKey,
    verbs::ApiCall,
};

/// The issuer of tokens, and the audience of those for the server itself.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The default lifetime in seconds, and the minimum.
const LIFETIME: i64 = 3600;
const LIFETIME_MIN: i64 = 600;
const HEADER: &str = r#"{"alg":"HS256","kid":"kopf-dev"}"#;
/// The name of the private claims of Kubernetes.
const PRIVATE: &str = "kubernetes.io";
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The claims of a valid token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenClaims {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

/// Issues a token for `POST …/serviceaccounts/NAME/token`.
pub(crate) fn request(call: &ApiCall<'_>, name: &str) -> Result<Reply, Refusal> {
    let definition = "io.k8s.api.authentication.v1.TokenRequest";
    let body = decode_part(call.request.header(CONTENT_TYPE), &call.request.body, definition);
    let body = body.map_err(Refusal::bad_request)?;
    let lifetime = object::number(&body, "/spec/expirationSeconds").unwrap_or(LIFETIME);
    if lifetime < LIFETIME_MIN {
        let why = "may not specify a duration less than 10 minutes";
        let problem = ValidationProblem::invalid("spec.expirationSeconds", lifetime, why);
        return Err(Refusal::invalid("authentication.k8s.io", "TokenRequest", "", &[problem]));
    }
    let mut store = call.shared.store();
    let account = store.get(&call.key(name));
    let account = account.ok_or_else(|| Refusal::not_found(&call.view.kind.def, name))?;
    let mut audiences = object::strings(&body, "/spec/audiences");
    if audiences.is_empty() {
        audiences.push(ISSUER.into());
    }
    let stamp = store.now();
    let now = seconds(&stamp);
    let (namespace, uid) = (&account.head.namespace, &account.head.uid);
    let mut private = json!({
        "namespace": namespace,
        "serviceaccount": { "name": name, "uid": uid },
    });
    let bound = body.pointer("/spec/boundObjectRef").filter(|it| !it.is_null());
    if let (Some(bound), Some(fields)) = (bound, private.as_object_mut()) {
        let of =
            json!({ "name": object::text(bound, "/name"), "uid": object::text(bound, "/uid") });
        fields.insert(object::text(bound, "/kind").to_lowercase(), of);
    }
    let claims = json!({
        "aud": audiences,
        "exp": now.saturating_add(lifetime),
        "iat": now,
        "iss": ISSUER,
        "jti": store.identities.uid(),
        PRIVATE: private,
        "nbf": now,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    });
    let end = Timestamp::from_second(now.saturating_add(lifetime)).unwrap_or(Timestamp::MAX);
    let answer = json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": stamp,
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime,
            "boundObjectRef": bound,
        },
        "status": {
            "token": signed(call.shared, &claims),
            "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
    });
    Ok(Reply::Document(201, answer))
}

/// Returns the claims of a token for the server; `None` unless it is signed by this server, not expired, and its account exists.
pub(crate) fn verify(shared: &Shared, token: &str) -> Option<TokenClaims> {
    verify_for(shared, token, &[ISSUER.to_owned()])
}

/// Returns the claims of a token for any of these audiences; its audiences are those that both have.
pub(crate) fn verify_for(shared: &Shared, token: &str, wanted: &[String]) -> Option<TokenClaims> {
    let (payload, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let mut mac = mac(shared)?;
    mac.update(payload.as_bytes());
    mac.verify_slice(&signature).ok()?;
    let (_, claims) = payload.split_once('.')?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let mut audiences = object::strings(&claims, "/aud");
    audiences.retain(|it| wanted.contains(it));
    let private = claims.get(PRIVATE)?;
    let (namespace, account) =
        (object::text(private, "/namespace"), object::text(private, "/serviceaccount/name"));
    let uid = object::text(private, "/serviceaccount/uid");
    let store = shared.store();
    let lives = store.get(&StoreKey::new("serviceaccounts", namespace, account));
    let is_same = lives.is_some_and(|it| *it.head.uid == *uid);
    let end = object::number(&claims, "/exp")?;
    if !is_same || end <= seconds(&store.now()) || audiences.is_empty() {
        return None;
    }
    let mut user = User { uid: uid.into(), ..User::service_account(namespace, account) };
    let id = format!("JTI={}", object::text(&claims, "/jti"));
    user.extra.insert(CREDENTIAL.into(), vec![id]);
    Some(TokenClaims { user, audiences })
}

fn signed(shared: &Shared, claims: &Value) -> String {
    let encode = |it: &[u8]| URL_SAFE_NO_PAD.encode(it);
    let payload =
        format!("{}.{}", encode(HEADER.as_bytes()), encode(claims.to_string().as_bytes()));
    let signature = mac(shared).map(|mut mac| {
        mac.update(payload.as_bytes());
        mac.finalize().into_bytes()
    });
    format!("{payload}.{}", encode(&signature.unwrap_or_default()))
}

/// Returns the signer. It accepts keys of any length, so it always exists.
fn mac(shared: &Shared) -> Option<Hmac<Sha256>> {
    Hmac::new_from_slice(shared.rbac.key()).ok()
}

/// Converts a timestamp to seconds since 1970.
fn seconds(stamp: &str) -> i64 {
    let time = stamp.parse::<Timestamp>();
    time.map_or(SignedDuration::ZERO, Timestamp::as_duration).as_secs()
}
