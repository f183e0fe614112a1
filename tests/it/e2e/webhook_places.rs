//! Webhooks over HTTPS that are called through a tunnel, that guard the scripts of the operator, or do not review them.

use std::{env, fs, path::PathBuf, process};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::load::{client, create};
use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::until;
use crate::ports::free_port;

const TUNNEL_LUA: &str = r#"
    kopf.on_tunnel(function(ctx)
        local tunnels = http.get("http://127.0.0.1:API/api/tunnels").json.tunnels
        return { url = tunnels[1].public_url, caBundle = ctx.server.ca }
    end)
    kopf.on_validate("configmaps", { id = "check", namespace_selector = { ["kubernetes.io/metadata.name"] = "NAMESPACE" } }, function(ctx)
        if ctx.body.data.size == "large" then error(kopf.AdmissionError("too large", 422)) end
    end)
"#;

const TUNNEL_RHAI: &str = r#"
    kopf::on_tunnel(|ctx| {
        let tunnels = http.get("http://127.0.0.1:API/api/tunnels").json.tunnels;
        #{ url: tunnels[0].public_url, caBundle: ctx.server.ca }
    });
    kopf::on_validate("configmaps", #{ id: "check", namespace_selector: #{ "kubernetes.io/metadata.name": "NAMESPACE" } }, |ctx| {
        if ctx.body.data.size == "large" { throw kopf::AdmissionError("too large", 422); }
    });
"#;

/// A directory with one script.
fn script(name: &str, language: &str, text: &str) -> PathBuf {
    let directory = env::temp_dir().join(format!("kopf-{name}-{}", process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(format!("handlers.{language}"));
    fs::write(&path, text).expect("it is written");
    path
}

fn remove(script: &std::path::Path) {
    fs::remove_dir_all(script.parent().expect("a directory")).expect("it is removed");
}

/// Forwards connections to a port, as the agent of a tunnel does. Returns the public port.
async fn tunnel(tasks: &mut JoinSet<()>, port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let public = listener.local_addr().expect("an address").port();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut client, _) = listener.accept().await.expect("a connection");
            connections.spawn(async move {
                if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                    // If either side ends, both end.
                    copy_bidirectional(&mut client, &mut server).await.ok();
                }
            });
        }
    });
    public
}

/// Serves the URL of the tunnel, like the API of an agent. Returns its port.
async fn agent(tasks: &mut JoinSet<()>, public: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let body = json!({ "tunnels": [{ "public_url": format!("https://127.0.0.1:{public}") }] });
    let body = body.to_string();
    tasks.spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.expect("a connection");
            let mut request = [0; 4096];
            // The request has no body, and is small.
            let _read = client.read(&mut request).await.is_ok();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            client.write_all(head.as_bytes()).await.ok();
        }
    });
    port
}

#[tokio::test]
async fn requests_reach_the_operator_through_a_tunnel() {
    for (language, text) in [("lua", TUNNEL_LUA), ("rhai", TUNNEL_RHAI)] {
        let name = format!("admission-tunnel-{language}");
        let Some(namespace) = Namespace::for_test(&name).await else { return };
        let (port, mut tasks) = (free_port(), JoinSet::new());
        let public = tunnel(&mut tasks, port).await;
        let api = agent(&mut tasks, public).await;
        let text = text.replace("NAMESPACE", &name).replace("API", &api.to_string());
        let script = script(&name, language, &text);
        let server = json!({ "addr": "127.0.0.1", "port": port });
        let settings =
            [format!("admission.server={server}"), format!("admission.managed={name}.kopf.dev")];
        let mut command = kopf(&namespace.kubeconfig(), &["--standalone", "-n", &name]);
        command.args(["--set", &settings[0], "--set", &settings[1]]);
        let operator = Operator::start(
            command.args(["--allow-net", &format!("127.0.0.1:{api}")]).arg(&script),
        );
        operator.until_says("The webhook tunnel is ready.").await;
        let client = client(&namespace).await;
        until("large ones are denied", async || {
            match create(&client, &name, "probe", "large").await {
                Err(why) if why.contains("too large") => Ok(()),
                other => Err(format!("{other:?}\n{}", operator.output())),
            }
        })
        .await;
        create(&client, &name, "probe", "small").await.expect("it is admitted");
        operator.stop().await.assert_code(0);
        tasks.shutdown().await;
        remove(&script);
    }
}

#[tokio::test]
async fn an_edit_of_a_guarded_config_map_that_does_not_load_is_refused_by_kubectl() {
    let name = "script-guard";
    let Some(namespace) = Namespace::for_test(name).await else { return };
    let map = |map: &str, file: &str, text: &str| -> String {
        let data: Value = json!({ file: text });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": map }, "data": data })
            .to_string()
    };
    let lua = "kopf.on_event('kopfexamples', { id = 'a' }, function(ctx) end)";
    let rhai = "kopf::on_event(\"kopfexamples\", #{ id: \"b\" }, |ctx| ());";
    let apply = async |it: String| namespace.try_kubectl(&["apply", "-f", "-"], &it).await;
    for (map_name, file, text) in
        [("lua", "a.lua", lua), ("rhai", "a.rhai", rhai), ("other", "a.lua", lua)]
    {
        apply(map(map_name, file, text)).await.expect("it is created");
    }
    let port = free_port().to_string();
    let url = format!("https://127.0.0.1:{port}");
    let args = ["--standalone", "-n", name, "--set", "admission.managed=script-guard.kopf.dev"];
    let mut command = kopf(&namespace.kubeconfig(), &args);
    command.args(["--from-configmap", "script-guard/lua", "--from-configmap", "script-guard/rhai"]);
    command.args(["--guard-configmaps", "--webhook-url", &url, "--webhook-port", &port]);
    let operator = Operator::start(&mut command);
    let broken = [
        ("lua", "a.lua", "local x = 1\nkopf.on_event('kopfexamples', {"),
        ("rhai", "a.rhai", "let x = 1;\nkopf::on_event(\"kopfexamples\", #{"),
    ];
    for (map_name, file, text) in broken {
        // Each attempt differs: without a change, `kubectl apply` sends nothing that could be reviewed.
        let mut attempt = 0;
        let refused = until("the edit is refused", async || {
            attempt += 1;
            let mut edited: Value = map(map_name, file, text).parse().expect("JSON");
            edited["data"]["attempt"] = attempt.to_string().into();
            match apply(edited.to_string()).await {
                Err(told) => Ok(told),
                Ok(told) => Err(format!("{told}\n{}", operator.output())),
            }
        })
        .await;
        assert!(refused.contains("admission webhook \"script-guard-"), "{refused}");
        let place = format!("configmap/script-guard/{map_name}/{file}:2");
        assert!(refused.contains(&place), "the compiler's message: {refused}");
    }
    apply(map("lua", "a.lua", &format!("{lua} -- edited"))).await.expect("it loads");
    apply(map("other", "a.lua", "broken (")).await.expect("it belongs to nobody");
    operator.stop().await.assert_code(0);
    apply(map("lua", "a.lua", "broken (")).await.expect("nobody guards it");
}

#[tokio::test]
async fn the_config_maps_of_the_scripts_are_not_reviewed() {
    let name = "own-scripts";
    let Some(namespace) = Namespace::for_test(name).await else { return };
    let apply = async |map: &str, tier: &str, text: &str| {
        let labels = json!({ "tier": tier, "app": "scripts" });
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": map, "labels": labels },
            "data": { "a.lua": text },
        });
        namespace.try_kubectl(&["apply", "-f", "-"], &map.to_string()).await
    };
    let deny = r#"
        local options = { namespace_selector = { matchLabels = { ["kubernetes.io/metadata.name"] = "own-scripts" } } }
        kopf.on_validate("", "v1", "configmaps", options, function(ctx)
            error(kopf.AdmissionError("never"))
        end)
    "#;
    let other = "kopf.on_event('kopfexamples', { id = 'a' }, function(ctx) end)";
    apply("named", "none", deny).await.expect("it is created");
    apply("labelled", "b", other).await.expect("it is created");
    let port = free_port().to_string();
    let url = format!("https://127.0.0.1:{port}");
    let args = ["--standalone", "-n", name, "--set", "admission.managed=own-scripts.kopf.dev"];
    // Labels select ConfigMaps in the operator's own namespace.
    let config = namespace.kubectl(&["config", "view", "--raw", "--minify", "-o", "json"]).await;
    let mut config: Value = serde_json::from_str(&config).expect("JSON");
    config["contexts"][0]["context"]["namespace"] = name.into();
    let kubeconfig = env::temp_dir().join(format!("kopf-own-scripts-{}.json", process::id()));
    fs::write(&kubeconfig, config.to_string()).expect("a file");
    let mut command = kopf(&kubeconfig, &args);
    command.args(["--from-configmap", "own-scripts/named"]);
    command.args(["--from-configmap-selector", "app=scripts,tier in (a, b),!old"]);
    command.args(["--webhook-url", &url, "--webhook-port", &port]);
    let operator = Operator::start(&mut command);
    // Another text each time: without a change, `kubectl apply` sends nothing that could be reviewed.
    let mut attempt = 0;
    until("foreign maps are reviewed", async || {
        attempt += 1;
        match apply("foreign", "c", &format!("-- {attempt}")).await {
            Err(refused) if refused.contains("never") => Ok(()),
            told => Err(format!("{told:?}\n{}", operator.output())),
        }
    })
    .await;
    apply("labelled", "b", "-- nothing").await.expect("it can be changed");
    apply("new", "a", "-- nothing").await.expect("it can be created");
    let delete = async |map: &str| namespace.try_kubectl(&["delete", "configmap", map], "").await;
    delete("new").await.expect("it can be deleted");
    apply("named", "none", "-- nothing").await.expect("it can be changed");
    operator.stop().await.assert_code(0);
    fs::remove_file(kubeconfig).expect("it is there");
}
