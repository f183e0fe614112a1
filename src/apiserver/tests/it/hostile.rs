//! Malicious requests: too deep, too large, too long, or not text at all. Each gets a response, and the server keeps running.

use std::fmt::Write as _;

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const YAML: &str = "application/yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// The limit of the server for a body.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Mistakes of clients that the real server reports as internal errors.
const THEIRS: [&str; 9] = [
    "strconv.ParseUint",
    "Too large resource version",
    "Invalid JSON Patch",
    "failed to create typed patch object",
    "couldn't get version/kind; json parse error",
    "resourceVersion should not be set on objects to be created",
    "v1.DeleteOptions.",
    "struct Decode: ",
    "yaml: line ",
];
const DEEP: usize = 10_000;
const MEGABYTE: usize = 1_000_000;

/// Returns a cluster with a custom object, n1, and a config map, c1.
async fn cluster() -> Cluster {
    let cluster = Cluster::new(ApiServer::builder().cluster(true), kex());
    let namespace = json!({ "metadata": { "name": "ns1" } });
    assert_eq!(cluster.post("/api/v1/namespaces", namespace).await.0, 201);
    assert_eq!(cluster.post(OBJECTS, object("n1")).await.0, 201);
    let map = json!({ "metadata": { "name": "c1" }, "data": { "a": "b" } });
    assert_eq!(cluster.post("/api/v1/namespaces/ns1/configmaps", map).await.0, 201);
    cluster
}

impl Cluster {
    /// Returns the body of a response as a string.
    async fn text(&self, path: &str) -> String {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a valid request");
        let response = self.client.send(request).await.expect("the server answers");
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        String::from_utf8_lossy(&body).into_owned()
    }

    /// Sends bytes. The response must be a success or a `Status` that blames the client, and the server must keep running.
    async fn survives(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: impl Into<Vec<u8>>,
    ) -> u16 {
        let title = format!("{method} {}", path.get(..80).unwrap_or(path));
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(Body::from(body.into())).expect("a valid request");
        let response = self.client.send(request).await.expect("the server answers");
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        if code >= 300 {
            let status: Value = serde_json::from_slice(&body).unwrap_or_default();
            let message = status["message"].as_str().unwrap_or_default();
            let theirs = matches!(code, 500 | 504) && THEIRS.iter().any(|it| message.contains(it));
            assert!(
                (400..500).contains(&code) || theirs,
                "{title}: {code} {:?}",
                message.get(..200).unwrap_or(message)
            );
            // Paths above those of objects return a list of paths, or a line of text.
            let found = (&status["kind"], &status["code"]);
            assert!(code == 404 || found == (&json!("Status"), &json!(code)), "{title}: {status}");
        }
        assert_eq!(self.get(N1).await.0, 200, "after {title}");
        code
    }

    /// Sends a value as the spec of a custom object and as the data of a config map, with every method.
    async fn survives_in_bodies(&self, field: &str, value: &str) {
        let custom = format!(
            r#"{{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{{"name":"n1"}},"{field}":{value}}}"#
        );
        let native = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c1"}},"{field}":{value}}}"#
        );
        let maps = "/api/v1/namespaces/ns1/configmaps";
        for (objects, one, body) in [(OBJECTS, "n1", custom), (maps, "c1", native)] {
            let one = format!("{objects}/{one}");
            for kind in ["application/json", YAML] {
                self.survives("POST", &format!("{objects}?dryRun=All"), kind, body.clone()).await;
                self.survives("PUT", &format!("{one}?dryRun=All"), kind, body.clone()).await;
            }
            for kind in [MERGE, STRATEGIC] {
                self.survives("PATCH", &format!("{one}?dryRun=All"), kind, body.clone()).await;
            }
            let path = format!("{one}?dryRun=All&fieldManager=m&force=true");
            self.survives("PATCH", &path, APPLY, body.clone()).await;
            let patch = format!(r#"[{{"op":"add","path":"/{field}","value":{value}}}]"#);
            self.survives("PATCH", &format!("{one}?dryRun=All"), JSON, patch).await;
        }
    }

    async fn refuses(&self, method: &str, path: &str, kind: &str, body: impl Into<Vec<u8>>) {
        let code = self.survives(method, path, kind, body).await;
        assert!(code >= 400, "{method} {}: {code}", path.get(..80).unwrap_or(path));
    }
}

fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    [open.repeat(times), inner.to_owned(), close.repeat(times)].concat()
}

/// Lists and managed fields add some levels around an object: it must not be parsed as an empty one there.
#[tokio::test(start_paused = true)]
async fn accepted_objects_are_served_completely() {
    let cluster = cluster().await;
    for levels in [100, 122, 123, 124, 125, 126] {
        let name = format!("deep{levels}");
        let spec = nested(r#"{"a":"#, "1", "}", levels - 1);
        let mut body = object(&name);
        body["spec"] = "SPEC".into();
        let body = body.to_string().replace("\"SPEC\"", &spec);
        assert_eq!(cluster.survives("POST", OBJECTS, "application/json", body).await, 201);
        let object = format!("{OBJECTS}/{name}");
        for query in ["", "?pretty=true"] {
            let text = cluster.text(&format!("{object}{query}")).await;
            let compact: String = text.split_whitespace().collect();
            assert!(compact.contains(&spec), "{levels} levels {query}");
            let text = cluster.text(&format!("{OBJECTS}{query}")).await;
            let compact: String = text.split_whitespace().collect();
            assert!(compact.contains(&spec), "a list of {levels} levels {query}");
        }
        let label = json!({ "metadata": { "labels": { "x": "y" } } });
        assert_eq!(cluster.patch(&object, MERGE, label).await.0, 200, "{levels} levels");
        assert!(cluster.text(&object).await.contains(&spec), "{levels} levels after a patch");
        assert_eq!(cluster.survives("DELETE", &object, "", "").await, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused() {
    let cluster = cluster().await;
    for depth in [100, 127, 128, 1_000, DEEP] {
        for value in [nested("[", "", "]", depth), nested(r#"{"a":"#, "1", "}", depth)] {
            cluster.survives_in_bodies("spec", &value).await;
            cluster.survives_in_bodies("data", &value).await;
            let metadata = format!(r#"{{"name":"n1","annotations":{value}}}"#);
            cluster.survives_in_bodies("metadata", &metadata).await;
        }
    }
    let lists = nested("[", "", "]", DEEP);
    cluster.refuses("POST", OBJECTS, "application/json", lists.clone()).await;
    cluster.refuses("POST", OBJECTS, "application/json", "[".repeat(BODY_BYTES_MAX)).await;
    cluster.refuses("POST", OBJECTS, YAML, "[".repeat(MEGABYTE)).await;
    cluster.refuses("POST", OBJECTS, YAML, "- ".repeat(MEGABYTE)).await;
    cluster.refuses("POST", OBJECTS, YAML, "? ".repeat(MEGABYTE)).await;
    let mut indented = String::new();
    for depth in 0..1_500 {
        writeln!(indented, "{}a:", " ".repeat(depth)).expect("a text");
    }
    cluster.refuses("POST", OBJECTS, YAML, indented).await;
    let aliases: Vec<String> =
        (1..40).map(|it| format!("a{it}: &a{it} [*a{0},*a{0}]\n", it - 1)).collect();
    let aliases = aliases.concat();
    cluster.refuses("POST", OBJECTS, YAML, format!("a0: &a0 [x]\n{aliases}")).await;
    let patch = json!([{ "op": "add", "path": "/spec/a".repeat(DEEP), "value": 1 }]);
    cluster.refuses("PATCH", N1, JSON, patch.to_string()).await;
    // Each operation adds one level.
    let deeper: Vec<Value> =
        (0..5_000).map(|_| json!({ "op": "copy", "from": "/spec", "path": "/spec/a" })).collect();
    cluster.refuses("PATCH", N1, JSON, json!(deeper).to_string()).await;
    let brackets = nested("(", "a", ")", DEEP);
    for selector in [brackets.clone(), format!("a%20in%20{brackets}"), "!".repeat(DEEP)] {
        cluster.refuses("GET", &format!("{OBJECTS}?labelSelector={selector}"), "", "").await;
        cluster.refuses("GET", &format!("{OBJECTS}?fieldSelector={selector}"), "", "").await;
    }
}

#[tokio::test(start_paused = true)]
async fn large_bodies_are_read_or_refused_at_once() {
    let cluster = cluster().await;
    let keys = |count: usize, value: &str| {
        let mut fields = String::from("{");
        for key in 0..count {
            write!(fields, "\"{key:x}\":{value},").expect("a text");
        }
        fields.pop();
        fields + "}"
    };
    // A million keys fit only if most of them are the same.
    let same = format!("{{{}\"a\":1}}", r#""":1,"#.repeat(600_000));
    let list = format!("[{}1]", "1,".repeat(1_000_000));
    let names = format!("a: {{{}b}}", "b,".repeat(1_000_000));
    cluster.survives("POST", OBJECTS, YAML, names).await;
    for value in [same, list] {
        assert!(value.len() < BODY_BYTES_MAX);
        let body = format!(
            r#"{{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{{"name":"n9"}},"spec":{value}}}"#
        );
        cluster.survives("POST", &format!("{OBJECTS}?dryRun=All"), "application/json", body).await;
    }
    // Many writes take long without optimization.
    for value in [keys(10_000, "1")] {
        let custom = |field: &str| {
            format!(
                r#"{{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{{"name":"n9"}},"{field}":{value}}}"#
            )
        };
        let posted = format!("{OBJECTS}?dryRun=All");
        cluster.survives("POST", &posted, "application/json", custom("spec")).await;
        cluster.survives("POST", &posted, YAML, custom("spec")).await;
        let maps = "/api/v1/namespaces/ns1/configmaps?dryRun=All";
        let data = format!(r#"{{"metadata":{{"name":"c9"}},"data":{value}}}"#);
        cluster.survives("POST", maps, "application/json", data).await;
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            let meta = format!(r#"{{"metadata":{{"{field}":{value}}}}}"#);
            cluster.survives("PATCH", &format!("{N1}?dryRun=All"), MERGE, meta).await;
        }
    }
    for (size, code) in [(BODY_BYTES_MAX, 400), (BODY_BYTES_MAX + 1, 413)] {
        for (method, path) in [("POST", OBJECTS), ("PUT", N1), ("DELETE", N1)] {
            let body = vec![b'x'; size];
            let answered = cluster.survives(method, path, "application/json", body).await;
            assert_eq!(answered, code, "{method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn patches_with_many_operations_are_fast() {
    let cluster = cluster().await;
    let many = |operation: &Value, times: usize| Value::Array(vec![operation.clone(); times]);
    let add = json!({ "op": "add", "path": "/spec/a", "value": 1 });
    let patch = format!("[{}0]", r#"{"op":"","path":""},"#.repeat(100_000));
    cluster.refuses("PATCH", N1, JSON, patch).await;
    cluster.refuses("PATCH", N1, JSON, many(&json!({}), 100_000).to_string()).await;
    cluster.survives("PATCH", N1, JSON, many(&add, 10_000).to_string()).await;

    // Each of these operations visits a large list or map.
    let list: Vec<u8> = vec![1; 100_000];
    let map: Value = (0..50_000).map(|it| (format!("{it:x}"), json!(1))).collect();
    let spec = json!({ "list": list, "map": map });
    let (code, _) = cluster.patch(N1, MERGE, json!({ "spec": spec })).await;
    assert_eq!(code, 200);
    for operation in [
        json!({ "op": "test", "path": "/spec", "value": 1 }),
        json!({ "op": "test", "path": "/spec/list", "value": [1] }),
        json!({ "op": "add", "path": "/spec/list/0", "value": 1 }),
        json!({ "op": "remove", "path": "/spec/list/0" }),
        json!({ "op": "add", "path": "/spec/map/new", "value": 1 }),
        json!({ "op": "move", "from": "/spec/map", "path": "/spec/map" }),
        json!({ "op": "copy", "from": "/spec/list", "path": "/spec/map" }),
    ] {
        cluster
            .survives(
                "PATCH",
                &format!("{N1}?dryRun=All"),
                JSON,
                many(&operation, 2_000).to_string(),
            )
            .await;
    }
    let first: Vec<Value> = (0..10_000)
        .map(|it| json!({ "op": "remove", "path": format!("/spec/map/{it:x}") }))
        .collect();
    cluster.survives("PATCH", &format!("{N1}?dryRun=All"), JSON, json!(first).to_string()).await;
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "most of them are lists")]
async fn long_names_and_parameters_are_refused() {
    let cluster = cluster().await;
    let long = "a".repeat(MEGABYTE / 4);
    for value in [
        json!(&long),
        json!({ &long: &long }),
        json!([&long]),
        json!([{ "name": &long, "kind": &long }]),
    ] {
        for field in [
            "name",
            "generateName",
            "namespace",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "resourceVersion",
            "uid",
            "managedFields",
        ] {
            let body = object_with("n9", field, value.clone()).to_string();
            let code = cluster
                .survives("POST", &format!("{OBJECTS}?dryRun=All"), "application/json", body)
                .await;
            assert!(code >= 400 || field != "name", "{field}");
        }
    }
    // The library refuses longer paths and queries.
    let long = "a".repeat(60_000);
    let many = "a,".repeat(30_000);
    cluster.refuses("GET", &format!("{OBJECTS}/{long}"), "", "").await;
    cluster.refuses("GET", &format!("/{long}"), "", "").await;
    cluster.refuses("GET", &format!("/apis/{long}"), "", "").await;
    let half = "a".repeat(30_000);
    cluster.refuses("GET", &format!("/apis/{half}/v1/{half}"), "", "").await;
    cluster.survives("GET", &"/a".repeat(30_000), "", "").await;
    for text in [
        &long,
        &many,
        &format!("a={long}"),
        &"(".repeat(60_000),
        &"a=b,".repeat(15_000),
        &"%25".repeat(20_000),
    ] {
        for name in [
            "labelSelector",
            "fieldSelector",
            "continue",
            "limit",
            "resourceVersion",
            "timeoutSeconds",
            "resourceVersionMatch",
            "dryRun",
            "fieldManager",
            "fieldValidation",
            "pretty",
        ] {
            cluster.survives("GET", &format!("{OBJECTS}?{name}={text}"), "", "").await;
            cluster.survives("PATCH", &format!("{N1}?{name}={text}"), MERGE, "{}").await;
        }
    }
    cluster.survives("GET", &format!("{OBJECTS}?{}", "a&".repeat(30_000)), "", "").await;
    // Selectors in bodies have no such limit.
    for selector in [
        json!({ "labelSelector": "a".repeat(MEGABYTE) }),
        json!({ "propagationPolicy": "a".repeat(MEGABYTE) }),
    ] {
        cluster
            .survives(
                "DELETE",
                &format!("{OBJECTS}/none"),
                "application/json",
                selector.to_string(),
            )
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_unicode_is_replaced_or_refused() {
    let cluster = cluster().await;
    let body = |inner: &[u8]| {
        let start = br#"{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"n1"},"spec":{"a":""#;
        [start, inner, br#""}}"#].concat()
    };
    let texts: [&[u8]; 9] = [
        b"\xff\xfe",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\ud800\\u0041",
        b"\\u0000",
        b"\0",
    ];
    for text in texts {
        for kind in ["application/json", YAML] {
            cluster.survives("PUT", N1, kind, body(text)).await;
        }
        cluster.survives("PATCH", N1, MERGE, body(text)).await;
        cluster.survives("PATCH", N1, STRATEGIC, body(text)).await;
        cluster
            .survives("PATCH", &format!("{N1}?fieldManager=m&force=true"), APPLY, body(text))
            .await;
        let patch =
            [br#"[{"op":"add","path":"/spec/"#, text, br#"","value":""#, text, br#""}]"#].concat();
        cluster.survives("PATCH", N1, JSON, patch).await;
        for kind in ["application/json", YAML, MERGE, JSON, STRATEGIC, APPLY] {
            cluster.survives("POST", OBJECTS, kind, text).await;
            cluster.survives("PATCH", N1, kind, text).await;
            cluster.survives("DELETE", &format!("{OBJECTS}/none"), kind, text).await;
        }
    }
    for garbage in [
        "%00",
        "%",
        "%0",
        "%zz",
        "%ff",
        "%ED%A0%80",
        "%2F",
        "%2e%2e%2f",
        "..",
        ".",
        "//",
        "%25",
        "%0a",
        ";",
        "%C3%28",
    ] {
        for path in [
            format!("{OBJECTS}/{garbage}"),
            format!("{OBJECTS}/n1/{garbage}"),
            format!("/apis/kopf.dev/v1/namespaces/{garbage}/kopfexamples"),
            format!("/apis/{garbage}/v1/kopfexamples"),
            format!("/api/{garbage}"),
            format!("/{garbage}"),
            format!("{OBJECTS}?{garbage}"),
            format!("{OBJECTS}?labelSelector={garbage}"),
            format!("{OBJECTS}?fieldSelector=metadata.name={garbage}"),
            format!("{OBJECTS}?limit={garbage}&continue={garbage}"),
        ] {
            cluster.survives("GET", &path, "", "").await;
            if path.contains('/') && !path.contains('?') && path != OBJECTS {
                cluster.survives("PATCH", &path, MERGE, "{}").await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_out_of_range_are_refused() {
    let cluster = cluster().await;
    for number in [
        "1e308",
        "1e309",
        "-1e999",
        "99999999999999999999",
        "-99999999999999999999",
        "1e-999",
        "0.1e1000000000",
        &"9".repeat(MEGABYTE),
        &format!("0.{}1", "0".repeat(MEGABYTE)),
    ] {
        cluster.survives_in_bodies("spec", &format!(r#"{{"a":{number}}}"#)).await;
        cluster.survives_in_bodies("data", &format!(r#"{{"a":{number}}}"#)).await;
        for field in
            ["generation", "deletionGracePeriodSeconds", "creationTimestamp", "resourceVersion"]
        {
            cluster
                .survives_in_bodies("metadata", &format!(r#"{{"name":"n1","{field}":{number}}}"#))
                .await;
        }
        let patch = format!(r#"[{{"op":"add","path":"/spec/list/{number}","value":1}}]"#);
        cluster.survives("PATCH", N1, JSON, patch).await;
        let options = format!(r#"{{"gracePeriodSeconds":{number}}}"#);
        cluster.survives("DELETE", &format!("{OBJECTS}/none"), "application/json", options).await;
    }
    for number in [
        "-1",
        "0",
        "99999999999999999999",
        "-99999999999999999999",
        "9223372036854775807",
        "-9223372036854775808",
        "1e3",
        "NaN",
        "+1",
        "0x1",
    ] {
        for name in ["limit", "resourceVersion", "gracePeriodSeconds"] {
            cluster.survives("GET", &format!("{OBJECTS}?{name}={number}"), "", "").await;
            cluster.survives("DELETE", &format!("{OBJECTS}/none?{name}={number}"), "", "").await;
        }
        // If the timeout were ignored, the watch would not end. Waiting takes no real time on this clock.
        let path = format!("{OBJECTS}?watch=true&timeoutSeconds={number}");
        let answer = cluster.survives("GET", &path, "", "");
        drop(tokio::time::timeout(Duration::from_hours(3), answer).await);
    }
    assert_eq!(cluster.get(&format!("{OBJECTS}?limit=-1")).await.0, 200);
    cluster
        .refuses(
            "GET",
            &format!("{OBJECTS}?watch=true&timeoutSeconds=99999999999999999999"),
            "",
            "",
        )
        .await;
}

fn definition(schema: &Value, versions: usize) -> Value {
    let version = |it: usize| json!({ "name": format!("v{}", it + 1), "served": true, "storage": it == 0, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.hostile.dev" },
        "spec": {
            "group": "hostile.dev", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": (0..versions).map(version).collect::<Vec<_>>(),
        },
    })
}

#[tokio::test(start_paused = true)]
async fn crds_may_be_deep_or_wide() {
    let things = "/apis/hostile.dev/v1/namespaces/ns1/things";
    let one = |spec: &Value| json!({ "apiVersion": "hostile.dev/v1", "kind": "Thing", "metadata": { "name": "t" }, "spec": spec });
    for depth in [5, 10, 20, 30, 50] {
        let cluster = cluster().await;
        let (mut schema, mut spec) = (json!({ "type": "string", "default": "x" }), json!("x"));
        for _ in 0..depth {
            schema = json!({ "type": "object", "properties": { "a": schema } });
            spec = json!({ "a": spec });
        }
        let schema = json!({ "type": "object", "properties": { "spec": schema } });
        cluster
            .survives("POST", CRDS, "application/json", definition(&schema, 1).to_string())
            .await;
        cluster.survives("POST", things, "application/json", one(&spec).to_string()).await;
        for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/hostile.dev/v1", things] {
            cluster.survives("GET", path, "", "").await;
        }
    }
    let cluster = cluster().await;
    // Nested alternatives at each level: a naive validation would take exponential time.
    let mut schema = json!({ "type": "string" });
    for _ in 0..3 {
        schema = json!({ "not": schema, "anyOf": [schema, schema], "allOf": [schema, schema], "oneOf": [schema, schema] });
    }
    let schema =
        json!({ "type": "object", "properties": { "spec": { "type": "object", "not": schema } } });
    cluster.survives("POST", CRDS, "application/json", definition(&schema, 1).to_string()).await;
    cluster.survives("DELETE", &format!("{CRDS}/things.hostile.dev"), "", "").await;
    let reference = json!({ "type": "object", "properties": { "spec": { "$ref": "#" } } });
    cluster.refuses("POST", CRDS, "application/json", definition(&reference, 1).to_string()).await;
    let open = json!({ "type": "object" });
    let code = cluster
        .survives("POST", CRDS, "application/json", definition(&open, 1_000).to_string())
        .await;
    assert_eq!(code, 201);
    for path in [
        "/apis",
        "/apis/hostile.dev",
        "/apis/hostile.dev/v1000",
        "/openapi/v2",
        "/openapi/v3",
        things,
        &format!("{CRDS}/things.hostile.dev"),
    ] {
        cluster.survives("GET", path, "", "").await;
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_types, reason = "it measures the time of the machine")]
async fn problems_of_long_lists_are_reported_quickly() {
    let cluster = cluster().await;
    let bad: Value = (0..30_000).map(|it| (format!("?{it}"), json!("?"))).collect();
    let owners = vec![json!({ "controller": true }); 20_000];
    for metadata in [json!({ "labels": bad }), json!({ "ownerReferences": owners })] {
        let patch = json!({ "metadata": metadata }).to_string();
        cluster.refuses("PATCH", N1, MERGE, patch.clone()).await;
        cluster.refuses("PATCH", "/api/v1/namespaces/ns1/configmaps/c1", MERGE, patch).await;
    }
    let tolerations: Vec<Value> =
        (0..20_000).map(|it| json!({ "key": format!("k{it}"), "operator": "Exists" })).collect();
    let pods = "/api/v1/namespaces/ns1/pods";
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "i" }], "tolerations": tolerations },
    });
    let code = cluster.survives("POST", pods, "application/json", pod.to_string()).await;
    assert_eq!(code, 201);
    let more =
        json!([{ "op": "add", "path": "/spec/tolerations/-", "value": { "operator": "Exists" } }]);
    let started = std::time::Instant::now();
    cluster.survives("PATCH", &format!("{pods}/p"), JSON, more.to_string()).await;
    assert!(started.elapsed().as_secs() < 60, "it is quadratic");
}
