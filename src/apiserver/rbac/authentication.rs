//! Authentication: the credentials of a request, and impersonation.

use std::collections::BTreeMap;

use http::{HeaderMap, header::AUTHORIZATION, request::Parts};

use crate::{
    Shared,
    rbac::{Attributes, User, decide, rule::quoted, tokens},
    refusal::Refusal,
    request::query::percent_decode,
};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Returns the user of a request. Fails for invalid credentials, and without the permission to impersonate.
pub(crate) fn authenticate(shared: &Shared, parts: &Parts) -> Result<User, Refusal> {
    let user = match parts.extensions.get::<User>() {
        Some(user) => user.clone(),
        None => of_credentials(shared, &parts.headers)?,
    };
    let Some(wanted) = impersonated(&parts.headers)? else { return Ok(user) };
    let query = parts.uri.query().unwrap_or_default();
    let request = Attributes::of(parts.method.as_str(), parts.uri.path(), query);
    for permission in permissions(&wanted, &parts.headers) {
        if !decide(shared, &user, &permission).allowed {
            let on =
                if wanted.as_service_account().is_some() { "serviceaccount" } else { "user-info" };
            // The real server checks the narrower permission next, and reports that one.
            let verb = format!("impersonate-on:{on}:{}", request.verb);
            return Err(Attributes { verb, ..request }.forbidden(&user, ""));
        }
    }
    Ok(wanted)
}

/// Returns the user of a bearer token. Without RBAC, an unknown token means the administrator, because there is nothing to protect.
fn of_credentials(shared: &Shared, headers: &HeaderMap) -> Result<User, Refusal> {
    let header = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let (scheme, token) = header.split_once(' ').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(User::admin());
    }
    match tokens::verify(shared, token.trim()) {
        Some(token) => Ok(token.user),
        None if shared.rbac.is_enabled() => Err(unauthorized()),
        None => Ok(User::admin()),
    }
}

fn unauthorized() -> Refusal {
    let (reason, message) = ("Unauthorized".into(), "Unauthorized".into());
    Refusal { code: 401, reason, message, details: None }
}

/// Returns the user in the impersonation headers.
fn impersonated(headers: &HeaderMap) -> Result<Option<User>, Refusal> {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let (name, uid) = (text(USER), text(UID));
    let groups: Vec<String> =
        headers.get_all(GROUP).iter().filter_map(|it| it.to_str().ok()).map(String::from).collect();
    let extra = extra(headers);
    if name.is_empty() {
        if uid.is_empty() && groups.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        let message = format!(
            "requested user with uid {uid:?} and groups {} without impersonating a user name",
            quoted(&groups)
        );
        return Err(Refusal::bad_request(message));
    }
    let mut user = User { uid: uid.into(), extra, ..User::named(name) };
    if !groups.is_empty() {
        user = User { groups, ..user }.authenticated();
    }
    Ok(Some(user))
}

fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA_PREFIX), value.to_str()) {
            extra.entry(percent_decode(key)).or_default().push(value.into());
        }
    }
    extra
}

/// Returns the permissions that an impersonation requires.
fn permissions(wanted: &User, headers: &HeaderMap) -> Vec<Attributes> {
    let of = |group: &str, resource: &str, subresource: &str, name: &str| Attributes {
        verb: "impersonate".into(),
        group: group.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        name: name.into(),
        ..Attributes::default()
    };
    let mut all = vec![match wanted.as_service_account() {
        Some((namespace, name)) => {
            Attributes { namespace: namespace.into(), ..of("", "serviceaccounts", "", name) }
        }
        None => of("", "users", "", &wanted.name),
    }];
    let groups = headers.get_all(GROUP).iter().filter_map(|it| it.to_str().ok());
    all.extend(groups.map(|it| of("", "groups", "", it)));
    let authentication = "authentication.k8s.io";
    if !wanted.uid.is_empty() {
        all.push(of(authentication, "uids", "", &wanted.uid));
    }
    for (key, values) in &wanted.extra {
        all.extend(values.iter().map(|it| of(authentication, "userextras", key, it)));
    }
    all
}
