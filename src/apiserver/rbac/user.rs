//! Users: the senders of requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The prefix of the names of service accounts.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const ANONYMOUS: &str = "system:anonymous";
/// The group that may do everything, regardless of roles.
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The user of a request, as determined by authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Unique among users, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// Empty if it is unknown.
    pub uid: String,
    /// Bindings can refer to groups instead of the user.
    pub groups: Vec<String>,
    /// Additional facts from authentication.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns the user of requests without credentials: the administrator of the cluster.
    pub fn admin() -> Self {
        let groups = vec![MASTERS.into(), AUTHENTICATED.into()];
        Self { name: "kubernetes-admin".into(), groups, ..Self::default() }
    }

    /// Returns a service account with its groups.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::named(&format!("{ACCOUNT_PREFIX}{namespace}:{name}"))
    }

    /// Returns the user of this name, with the groups that follow from the name.
    pub fn named(name: &str) -> Self {
        let mut groups = Vec::new();
        if let Some((namespace, _)) = account(name) {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        Self { name: name.into(), groups, ..Self::default() }.authenticated()
    }

    /// Returns the namespace and the name of a service account; `None` for other users.
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        account(&self.name)
    }

    /// Adds the group of all authenticated users, or that of unauthenticated ones.
    pub(crate) fn authenticated(mut self) -> Self {
        let standard = if self.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !self.groups.iter().any(|it| it == AUTHENTICATED || it == UNAUTHENTICATED) {
            self.groups.push(standard.into());
        }
        self
    }

    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Returns the user in the form of reviews.
    pub(crate) fn to_json(&self) -> Value {
        let mut user = json!({ "username": self.name });
        if let Some(fields) = user.as_object_mut() {
            if !self.uid.is_empty() {
                fields.insert("uid".into(), self.uid.clone().into());
            }
            if !self.groups.is_empty() {
                fields.insert("groups".into(), self.groups.clone().into());
            }
            if !self.extra.is_empty() {
                fields.insert("extra".into(), json!(self.extra));
            }
        }
        user
    }
}

fn account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let is_plain = |it: &str| !it.is_empty() && !it.contains(':');
    (is_plain(namespace) && is_plain(name)).then_some((namespace, name))
}
