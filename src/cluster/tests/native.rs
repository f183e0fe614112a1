//! Token files, exec plugins and proxies: connections from the files of a user.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt as _},
    config::KubeConfigOptions,
};
use parking_lot::Mutex;

use crate::cluster::{
    connect::session,
    dial,
    failure::Action,
    kubeconfig::read,
    proxy::choose,
    request::KubeRequest,
    sessions::{LogIn, Sessions},
    token_file::TokenFile,
    transport::Transport,
};
use crate::logic::access::vault::LoginResult;
use crate::ports::Clock;
use crate::telemetry::{Health, Metrics};

/// The directory of one test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kopf-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        TestDirectory(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// Returns the configuration for a kubeconfig with this user.
    async fn config(&self, user: &str) -> Config {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://there:6443'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {user}}}]\n"
        );
        let kubeconfig = read(&self.write("config", &text)).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration")
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns a transport whose server accepts only the header `accepted`, and the headers that it received.
async fn transport(
    room: &Arc<TestDirectory>,
    user: &'static str,
    accepted: &Arc<Mutex<String>>,
) -> (Transport, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (room, accepted, log) = (Arc::clone(room), Arc::clone(accepted), Arc::clone(&seen));
    let server = tower::service_fn(move |request: Request<Body>| {
        let header = request.headers().get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let header = header.unwrap_or("nobody").to_owned();
        let status = if *accepted.lock() == header { 200 } else { 401 };
        log.lock().push(format!("{header} {status}"));
        let body = Full::new(Bytes::from_static(b"{}"));
        async move {
            let answer = Response::builder().status(status).body(body);
            answer.map_err(tower::BoxError::from)
        }
    });
    let dial: crate::cluster::Dial = Arc::new(move |config: Config| {
        let layer = tower::util::option_layer(config.auth_layer()?);
        Ok(ClientBuilder::new(server.clone(), "default").with_layer(&layer).build().into())
    });
    let log_in: LogIn = Box::new(move || {
        let (room, dial) = (Arc::clone(&room), Arc::clone(&dial));
        Box::pin(async move {
            let content = Arc::new(session(room.config(user).await, dial).await?);
            let handler = "login_with_kubeconfig".into();
            Ok(vec![LoginResult {
                handler,
                priority: 0,
                expiration: None,
                returned: None,
                content,
            }])
        })
    });
    let sessions = Sessions::start(log_in, Clock::system(), &Health::default()).await;
    (Transport::new(sessions.expect("a login"), Arc::default(), Metrics::default()), seen)
}

async fn ask(transport: &Transport) {
    let request = KubeRequest::get("/api".into(), Action::Discover("/api"));
    let networking = transport.settings().networking.clone();
    transport.fetch(&request, &networking).await.expect("an answer");
}

fn told(seen: &Mutex<Vec<String>>) -> Vec<String> {
    seen.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn a_rotated_token_file_is_read_before_the_old_token_expires() {
    let room = Arc::new(TestDirectory::new("rotated"));
    room.write("token", "old\n");
    let accepted = Arc::new(Mutex::new("Bearer old".to_owned()));
    let (transport, seen) = transport(&room, "{tokenFile: token, token: inline}", &accepted).await;
    ask(&transport).await;
    room.write("token", "new\n");
    // As with the kubelet, the old one is still accepted for a while.
    tokio::time::sleep(Duration::from_secs(61)).await;
    "Bearer new".clone_into(&mut accepted.lock());
    ask(&transport).await;
    assert_eq!(told(&seen), ["Bearer old 200", "Bearer new 200"]);
}

#[tokio::test(start_paused = true)]
async fn a_token_file_that_is_rotated_late_costs_one_rejection() {
    let room = Arc::new(TestDirectory::new("late"));
    room.write("token", "old");
    let accepted = Arc::new(Mutex::new("Bearer old".to_owned()));
    let (transport, seen) = transport(&room, "{tokenFile: token}", &accepted).await;
    ask(&transport).await;
    room.write("token", "new");
    "Bearer new".clone_into(&mut accepted.lock());
    futures::future::join_all((0..5).map(|_| ask(&transport))).await;
    let log = told(&seen);
    assert_eq!(log.iter().filter(|it| *it == "Bearer new 200").count(), 5);
    assert!(log.iter().filter(|it| *it == "Bearer old 401").count() <= 5, "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_token_file_keeps_the_last_token() {
    let room = TestDirectory::new("gone");
    let path = room.write("token", " t \n");
    let file = TokenFile::open(path.clone()).expect("a token");
    fs::remove_file(&path).expect("removed");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(file.authorization(), "Bearer t");
    room.write("token", "\n");
    assert!(TokenFile::open(path).is_err_and(|it| it.to_string() == "the file is empty"));
}

/// Returns an exec plugin that counts its runs in a file and prints `token-N`, valid for this many seconds.
fn plugin(room: &TestDirectory, seconds: u32) -> PathBuf {
    let count = room.0.join("count").display().to_string();
    let text = format!(
        "#!/bin/sh\necho run >> {count}\nN=$(wc -l < {count} | tr -d ' ')\n\
         UNTIL=$(date -u -d '+{seconds} seconds' +%Y-%m-%dT%H:%M:%SZ)\n\
         echo \"{{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"kind\\\":\\\"ExecCredential\\\",\
         \\\"status\\\":{{\\\"token\\\":\\\"token-$N\\\",\\\"expirationTimestamp\\\":\\\"$UNTIL\\\"}}}}\"\n"
    );
    let path = room.write("plugin", &text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

fn runs(room: &Path) -> usize {
    fs::read_to_string(room.join("count")).unwrap_or_default().lines().count()
}

const EXEC: &str = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}";

#[tokio::test]
async fn an_exec_plugin_next_to_the_kubeconfig_is_run_again_when_its_token_is_about_to_expire() {
    let room = Arc::new(TestDirectory::new("exec-short"));
    plugin(&room, 30);
    let accepted = Arc::new(Mutex::new("Bearer token-2".to_owned()));
    let (transport, seen) = transport(&room, EXEC, &accepted).await;
    // Less than a minute is left: the first token is not even sent.
    ask(&transport).await;
    assert_eq!(told(&seen), ["Bearer token-2 200"]);
}

#[tokio::test]
async fn an_exec_plugin_is_run_again_after_a_401_and_not_before() {
    let room = Arc::new(TestDirectory::new("exec-long"));
    plugin(&room, 3600);
    let accepted = Arc::new(Mutex::new("Bearer token-1".to_owned()));
    let (transport, seen) = transport(&room, EXEC, &accepted).await;
    ask(&transport).await;
    ask(&transport).await;
    assert_eq!(runs(&room.0), 1);
    "Bearer token-2".clone_into(&mut accepted.lock());
    ask(&transport).await;
    let expected =
        ["Bearer token-1 200", "Bearer token-1 200", "Bearer token-1 401", "Bearer token-2 200"];
    assert_eq!(told(&seen), expected);
}

#[tokio::test]
async fn the_error_of_a_failed_plugin_contains_its_output() {
    let room = TestDirectory::new("exec-fails");
    let path = room.write("plugin", "#!/bin/sh\necho 'the session has ended' >&2\nexit 3\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    let config = room.config(EXEC).await;
    let error = session(config, Arc::new(dial)).await.expect_err("a failure");
    assert!(error.message.contains("the session has ended"), "{}", error.message);
    assert!(error.hint.is_some_and(|it| it.contains("run the exec plugin")));
}

fn proxy(wanted: Option<&str>, environment: Option<&Matcher>) -> Result<Option<String>, String> {
    let mut config = Config::new("https://there:6443".parse().expect("a URL"));
    config.proxy_url = Some("http://guessed:1".parse().expect("a URL"));
    choose(&mut config, wanted, environment).map_err(|it| it.message)?;
    Ok(config.proxy_url.map(|it| it.to_string()))
}

#[test]
fn the_proxy_of_the_login_goes_before_that_of_the_environment() {
    let shown = |it: &str| Ok(Some(it.to_owned()));
    let environment = Matcher::builder().https("http://me:p%40ss@proxy:3128").no("local").build();
    assert_eq!(proxy(None, None), Ok(None));
    assert_eq!(proxy(Some("http://own:1"), None), shown("http://own:1/"));
    assert_eq!(proxy(Some("http://own:1"), Some(&environment)), shown("http://own:1/"));
    assert_eq!(proxy(None, Some(&environment)), shown("http://me:p%40ss@proxy:3128/"));
    let never = Matcher::builder().https("http://proxy:3128").no("there").build();
    assert_eq!(proxy(None, Some(&never)), Ok(None));
    assert!(
        proxy(Some("http://"), None)
            .is_err_and(|it| it.starts_with("the proxy 'http://' is not a URL"))
    );
}
