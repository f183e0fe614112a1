//! `kopf manifests --olm`: bundles, which a server with the schema of OLM accepts in strict mode.
//!
//! `tests/olm/clusterserviceversion.json` has the fields of operator-framework/api v0.45.0 that a bundle may use, without
//! descriptions.

use std::{collections::BTreeSet, fs, path::Path};

use kopf_apiserver::ApiServer;
use serde_json::{Value, json};

use super::{check::Directory, install::granted};

const VERSIONS: &str =
    "/apis/operators.coreos.com/v1alpha1/namespaces/default/clusterserviceversions";

/// Writes the bundle of an example. Returns the output.
fn bundle(example: &str, crd: &str, more: &[&str]) -> (Directory, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let shown = |it: &str| root.join(it).display().to_string();
    let own = Directory::with(&format!("olm-{}", example.replace('/', "-")), &[]);
    let (script, crd) = (shown(example), shown(crd));
    let args =
        ["manifests", &script, "--crd", &crd, "--name", "op", "--image", "example.com/kopf:1"];
    let args = [&args[..], &["--olm", "bundle"], more].concat();
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!((code, told.as_str()), (0, ""), "{example}: {problem}");
    (own, problem)
}

fn object(own: &Directory, file: &str) -> Value {
    serde_saphyr::from_str(&own.read(file)).expect("YAML")
}

fn version(own: &Directory) -> Value {
    object(own, "bundle/manifests/op.clusterserviceversion.yaml")
}

/// Sends an object to a server. Returns the response if the server accepts the object with all of its fields.
async fn create(client: &kube::Client, path: &str, object: &Value) -> Result<Value, String> {
    let request = http::Request::post(format!("{path}?fieldValidation=Strict"));
    let request = request.header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.map_err(|it| it.to_string())
}

/// Creates everything in a bundle on a server that serves the kinds of OLM.
async fn check_on_server(own: &Directory) {
    let client = kube::Client::new(ApiServer::builder().cluster(true).build(), "default");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/olm/clusterserviceversion.json");
    let schema = fs::read_to_string(schema).expect("the schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    create(&client, crds, &schema).await.expect("the schema of OLM");
    for file in own.files("bundle/manifests") {
        let object = object(own, &file);
        assert_eq!(object.pointer("/metadata/namespace"), None, "{file}");
        let path = match object["kind"].as_str().expect("a kind") {
            "ClusterServiceVersion" => VERSIONS,
            "CustomResourceDefinition" => crds,
            "ConfigMap" => "/api/v1/namespaces/default/configmaps",
            "PodDisruptionBudget" => "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            other => panic!("{file}: OLM does not take a {other}"),
        };
        create(&client, path, &object).await.unwrap_or_else(|it| panic!("{file}: {it}"));
    }
    let version = version(own);
    let deployment = &version["spec"]["install"]["spec"]["deployments"][0];
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": deployment["name"] }, "spec": deployment["spec"],
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    create(&client, path, &deployment).await.expect("a Deployment");
    // The schema does reject wrong objects.
    let mut wrong = version;
    wrong["metadata"]["name"] = json!("wrong");
    wrong["spec"]["instalModes"] = json!([]);
    let problem = create(&client, VERSIONS, &wrong).await.expect_err("an unknown field");
    assert!(problem.contains("instalModes"), "{problem}");
}

fn arguments(version: &Value) -> Vec<String> {
    let container =
        version.pointer("/spec/install/spec/deployments/0/spec/template/spec/containers/0");
    let arguments = container.and_then(|it| it["args"].as_array()).into_iter().flatten();
    arguments.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Returns `verb resource.group` of all permissions of a `ClusterServiceVersion`.
fn permissions(version: &Value, field: &str) -> BTreeSet<String> {
    let listed = version["spec"]["install"]["spec"][field].as_array().into_iter().flatten();
    listed.flat_map(|it| granted(&it.to_string())).collect()
}

fn supported(version: &Value) -> Vec<&str> {
    let modes = version["spec"]["installModes"].as_array().into_iter().flatten();
    modes.filter(|it| it["supported"] == true).filter_map(|it| it["type"].as_str()).collect()
}

#[tokio::test]
async fn a_bundle_has_what_the_manifests_have() {
    let (own, warned) = bundle("01-minimal/handlers.lua", "crd.yaml", &[]);
    assert_eq!(warned, "");
    let files = own.files("bundle/manifests");
    let names = [
        "configmap",
        "crd-kopfexamples.kopf.dev",
        "op.clusterserviceversion",
        "poddisruptionbudget",
    ];
    assert_eq!(files, names.map(|it| format!("bundle/manifests/{it}.yaml")));
    check_on_server(&own).await;
    let version = version(&own);
    assert_eq!(version["metadata"]["name"], "op.v0.1.0");
    assert_eq!(supported(&version), ["AllNamespaces"]);
    let owned = json!([{
        "name": "kopfexamples.kopf.dev", "version": "v1", "kind": "KopfExample", "displayName": "KopfExample",
    }]);
    assert_eq!(version["spec"]["customresourcedefinitions"]["owned"], owned);
    assert_eq!(version["spec"]["webhookdefinitions"], json!([]));
    for invented in ["provider", "icon", "maintainers", "links"] {
        assert_eq!(version["spec"].get(invented), None, "{invented}");
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let shown = |it: &str| examples.join(it).display().to_string();
    let args = ["rbac", "generate", &shown("01-minimal/handlers.lua"), "--crd", &shown("crd.yaml")];
    let all: BTreeSet<_> = permissions(&version, "clusterPermissions")
        .union(&permissions(&version, "permissions"))
        .cloned()
        .collect();
    assert_eq!(all, granted(&own.kopf(&args, &[]).1));

    let annotations = object(&own, "bundle/metadata/annotations.yaml");
    let annotations = annotations["annotations"].as_object().expect("annotations");
    let dockerfile = own.read("bundle/bundle.Dockerfile");
    for (key, value) in annotations {
        let value = value.as_str().expect("a string");
        assert!(dockerfile.contains(&format!("LABEL {key}={value}\n")), "{dockerfile}");
    }
    assert_eq!(annotations["operators.operatorframework.io.bundle.package.v1"], "op");
    assert_eq!(annotations["operators.operatorframework.io.bundle.mediatype.v1"], "registry+v1");
}

#[tokio::test]
async fn an_operator_group_determines_the_namespaces() {
    let (own, _) = bundle("01-minimal/handlers.rhai", "crd.yaml", &["-n", "team-a"]);
    check_on_server(&own).await;
    let version = version(&own);
    assert_eq!(supported(&version), ["OwnNamespace", "SingleNamespace", "MultiNamespace"]);
    let args = arguments(&version);
    assert!(args.contains(&"--namespace=$(KOPF_TARGET_NAMESPACES)".to_owned()), "{args:?}");
    let env =
        version.pointer("/spec/install/spec/deployments/0/spec/template/spec/containers/0/env/0");
    let field =
        json!({ "fieldRef": { "fieldPath": "metadata.annotations['olm.targetNamespaces']" } });
    assert_eq!(env.map(|it| &it["valueFrom"]), Some(&field));
    let within = permissions(&version, "permissions");
    assert!(within.contains("patch kopfexamples.kopf.dev"), "{within:?}");
    let clusterwide = permissions(&version, "clusterPermissions");
    assert!(!clusterwide.contains("patch kopfexamples.kopf.dev"), "{clusterwide:?}");
}

#[tokio::test]
async fn olm_configures_the_webhooks() {
    let (own, warned) = bundle("17-admission/handlers.lua", "crd.yaml", &[]);
    assert!(warned.contains("Do not set admission.managed"), "{warned}");
    check_on_server(&own).await;
    let version = version(&own);
    let webhooks = version["spec"]["webhookdefinitions"].as_array().expect("webhooks");
    let told: Vec<_> = webhooks
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default();
            (text("type"), text("generateName"), text("webhookPath"))
        })
        .collect();
    let validating = "ValidatingAdmissionWebhook";
    let expected = [
        (validating, "authhook.auto.kopf.dev", "/hauthhook"),
        (validating, "validate1.auto.kopf.dev", "/hvalidate1"),
        (validating, "validate2.spec.field.auto.kopf.dev", "/hvalidate2-2fspec-2efield"),
        (validating, "validate-subresources.auto.kopf.dev", "/hvalidate-5fsubresources"),
        ("MutatingAdmissionWebhook", "mutate1.auto.kopf.dev", "/hmutate1"),
    ];
    assert_eq!(told, expected);
    for webhook in webhooks {
        assert_eq!(
            (&webhook["deploymentName"], &webhook["targetPort"]),
            (&json!("op"), &json!(9443))
        );
        assert_eq!(webhook["rules"][0]["apiGroups"], json!(["kopf.dev"]));
    }
    let selector = json!({ "matchExpressions": [{ "key": "somelabel", "operator": "In", "values": ["somevalue"] }] });
    assert_eq!(webhooks[4]["objectSelector"], selector);
    let server = r#"--set=admission.server={"port":9443,"certfile":"/tmp/k8s-webhook-server/serving-certs/tls.crt","pkeyfile":"/tmp/k8s-webhook-server/serving-certs/tls.key"}"#;
    let args = arguments(&version);
    assert!(args.contains(&server.to_owned()), "{args:?}");
    for field in ["clusterPermissions", "permissions"] {
        let granted = permissions(&version, field);
        let needless =
            |it: &&String| it.contains("webhookconfigurations") || it.contains(" secrets");
        assert_eq!(granted.iter().find(needless), None);
    }
}

#[tokio::test]
async fn olm_configures_conversions_of_operators_that_serve_all_namespaces() {
    let (own, _) = bundle("conversion/handlers.rhai", "conversion/crd.yaml", &[]);
    check_on_server(&own).await;
    let version = version(&own);
    let webhook = &version["spec"]["webhookdefinitions"][0];
    assert_eq!(webhook["type"], "ConversionWebhook");
    assert_eq!(webhook["conversionCRDs"], json!(["routes.example.com"]));
    assert_eq!(webhook["webhookPath"], "/hroutes-2eexample-2ecom");
    let owned = version["spec"]["customresourcedefinitions"]["owned"].as_array().map(Vec::len);
    assert_eq!(owned, Some(2));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/conversion");
    let script = root.join("handlers.rhai").display().to_string();
    let (code, _, problem) = own.kopf(&["manifests", &script, "-n", "a", "--olm", "other"], &[]);
    assert_eq!(code, 1);
    assert!(problem.contains("only of operators that serve all namespaces"), "{problem}");
}

#[test]
fn a_name_that_is_too_long_for_a_label_is_rejected() {
    let own = Directory::with("olm-name", &[("handlers.lua", "kopf.on_create('pods', print)")]);
    let name = "n".repeat(60);
    let args = ["manifests", "--name", &name, "--olm", "bundle"];
    let (code, told, problem) = own.kopf(&args, &[]);
    let expected = format!(
        "error: '{name}.v0.1.0' has 67 characters; OLM allows 63\nhint: choose a shorter name with --name\n"
    );
    assert_eq!((code, told.as_str(), problem), (1, "", expected));
    let (code, _, problem) = own.kopf(&["manifests", "--olm", "a", "--namespace", "b"], &[]);
    assert_eq!(code, 2, "{problem}");
}
