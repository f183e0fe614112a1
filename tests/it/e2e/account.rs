//! Scripts with the permissions of a service account, on a real API server: a refused request names the rule that grants it, and exactly
//! this rule grants it, without a restart.
//!
//! The account is real: the server issues its token (`TokenRequest`), and nothing is impersonated.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};

use super::namespace::{Namespace, OBJECT};
use super::operator::{Operator, file, kopf};
use super::until;

/// The permissions that an operator of `kopfexamples` needs for itself, as in `docs/deployment.md`.
const RULES: &[&str] = &[
    "{apiGroups: [kopf.dev], resources: [kopfexamples, kopfexamples/status], verbs: [get, list, watch, patch]}",
    r#"{apiGroups: [""], resources: [events], verbs: [create]}"#,
];
const NAME: &str = "operator";
/// The words before a rule in the log.
const MARK: &str = "grant it to the operator in a ";

#[tokio::test]
async fn the_rule_that_is_named_to_a_service_account_is_the_one_it_lacks() {
    for language in ["lua", "rhai"] {
        let test = format!("kube-account-{language}");
        let Some(namespace) = Namespace::for_test(&test).await else { return };
        let account = Account::create(&namespace).await;
        account.grant(&BTreeSet::new()).await;
        let mut command =
            kopf(&account.kubeconfig, &["--standalone", "--verbose", "-n", &namespace.name]);
        let script = file(&format!("tests/e2e/kube/account.{language}"));
        let operator = Operator::start(command.arg(script));
        namespace.apply_object().await;
        operator.until_says("refused are 8").await;
        let said = operator.output();
        let user = format!("User \"system:serviceaccount:{test}:{NAME}\" cannot get resource");
        for part in [
            "refused is reading a secret: 403 Forbidden: kube.get: cannot get secrets.v1 'any' in",
            "refused is listing all pods: 403 Forbidden: kube.list: cannot list pods.v1 cluster-wide:",
            &user,
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        let object = account.follow(&operator).await;
        assert_eq!(object["status"]["account_fn"], json!("all is granted"), "{object:#}");
        let ended = operator.stop().await;
        ended.assert_code(0);
        ended.assert_count("Traceback", 0);
    }
}

/// A service account with a separate kubeconfig.
pub(super) struct Account<'a> {
    namespace: &'a Namespace,
    pub(super) kubeconfig: PathBuf,
}

impl<'a> Account<'a> {
    async fn create(namespace: &'a Namespace) -> Self {
        namespace.kubectl(&["create", "serviceaccount", NAME]).await;
        Account::of(namespace, NAME).await
    }

    /// Creates a kubeconfig for an existing service account.
    pub(super) async fn of(namespace: &'a Namespace, name: &str) -> Self {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{name}/token", namespace.name);
        let request =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let request = request.to_string();
        let issued = namespace.try_kubectl(&["create", "--raw", &path, "-f", "-"], &request).await;
        let issued: Value =
            serde_json::from_str(&issued.expect("a token is issued")).expect("JSON");
        let token = issued["status"]["token"].as_str().expect("a token");
        let text = fs::read_to_string(namespace.kubeconfig()).expect("the kubeconfig");
        let mut config: Value = serde_saphyr::from_str(&text).expect("YAML");
        let current = config["current-context"].clone();
        let contexts = config["contexts"].as_array_mut().expect("contexts");
        let context = contexts.iter_mut().find(|it| it["name"] == current).expect("the context");
        // As in a pod of this account.
        context["context"]["namespace"] = json!(namespace.name);
        let user = context["context"]["user"].clone();
        config["users"] = json!([{ "name": user, "user": { "token": token } }]);
        let file = format!("{}-{}", namespace.name, std::process::id());
        let kubeconfig = std::env::temp_dir().join(file);
        fs::write(&kubeconfig, config.to_string()).expect("a kubeconfig");
        Account { namespace, kubeconfig }
    }

    /// Grants each rule that the log names, until the operator needs no other. Returns its object.
    async fn follow(&self, operator: &Operator) -> Value {
        until("all that is named is granted", async || {
            let said = operator.output();
            let named: BTreeSet<_> =
                said.lines().filter_map(|it| Some(it.split_once(MARK)?.1)).collect();
            self.grant(&named).await;
            let object = self.namespace.object(OBJECT).await?;
            let is_done = object["status"]["account_fn"].is_string();
            if is_done { Ok(object) } else { Err(format!("{named:#?}\n{said}")) }
        })
        .await
    }

    /// Grants the rules of the operator itself, and these rules, in the words of the log.
    async fn grant(&self, named: &BTreeSet<&str>) {
        let (mut near, mut far) = (RULES.join(", "), String::new());
        for told in named {
            let (place, rule) = told.split_once(": {").expect("a place and a rule");
            let rules = if place.contains("in a Role in") { &mut near } else { &mut far };
            rules.extend([", {", rule]);
        }
        let far = far.trim_start_matches(", ");
        let Namespace { name: namespace, .. } = self.namespace;
        let subjects = format!("[{{kind: ServiceAccount, name: {NAME}, namespace: {namespace}}}]");
        let mut manifest = String::new();
        for (kind, rules) in [("Role", near.as_str()), ("ClusterRole", far)] {
            let group = "rbac.authorization.k8s.io";
            let role = format!(
                "{{apiVersion: {group}/v1, kind: {kind}, metadata: {{name: {namespace}}}, rules: [{rules}]}}"
            );
            let binding = format!(
                "{{apiVersion: {group}/v1, kind: {kind}Binding, metadata: {{name: {namespace}}}, \
                 roleRef: {{apiGroup: {group}, kind: {kind}, name: {namespace}}}, subjects: {subjects}}}"
            );
            manifest.extend(["---\n", &role, "\n---\n", &binding, "\n"]);
        }
        let applied = self.namespace.try_kubectl(&["apply", "-f", "-"], &manifest).await;
        applied.unwrap_or_else(|told| panic!("{told}\n{manifest}"));
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        fs::remove_file(&self.kubeconfig).ok();
    }
}
