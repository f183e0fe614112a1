//! Streams continue after failures.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use kopf::{
    cluster::KubeCluster,
    ports::{ApiError, Cluster as _, StreamEvent, StreamTarget},
    settings::Settings,
    testing::LogCapture,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Level;

use super::{Chunk, Reply, kopfexamples, scripted};

/// Plays the lists and the watches, and records the events until the last watch hangs.
async fn transcript(lists: Vec<Reply>, watches: Vec<Reply>, items_max: usize) -> Vec<String> {
    transcript_with(|_| {}, lists, watches, items_max).await
}

/// Plays them with other settings.
async fn transcript_with(
    set: impl Fn(&mut Settings),
    mut lists: Vec<Reply>,
    mut watches: Vec<Reply>,
    items_max: usize,
) -> Vec<String> {
    let client = scripted(move |request| {
        let query = request.uri().query().unwrap_or_default();
        let script = if query.contains("watch=") { &mut watches } else { &mut lists };
        if script.is_empty() { hang() } else { script.remove(0) }
    });
    let mut settings = Settings::default();
    settings.networking.error_backoffs.clear();
    set(&mut settings);
    let settings = Arc::new(settings);
    let target = StreamTarget {
        extent: kopf::ports::Extent::Whole,
        resource: Arc::new(kopfexamples()),
        namespace: None,
        settings: Arc::clone(&settings),
        restrictions: None,
    };
    let start = Instant::now();
    let stream = KubeCluster::over(client, settings).stream(target);
    let told = |item: Result<StreamEvent, ApiError>| {
        let text = match item {
            // Between the others, these would only repeat what the times show.
            Ok(StreamEvent::Listing | StreamEvent::Alive) => return None,
            Ok(StreamEvent::Listed) => "listed".to_owned(),
            Ok(StreamEvent::Object(kind, object)) => {
                let name = object.header().name.clone().unwrap_or_default();
                format!(
                    "{} {name}",
                    kind.map_or("-", kopf::logic::object::reason::EventType::as_str)
                )
            }
            Err(error) => format!("{:?}", error.class),
        };
        Some(format!("{:.1} {text}", start.elapsed().as_secs_f64()))
    };
    let told = stream.filter_map(|it| std::future::ready(told(it)));
    told.take(items_max).collect().await
}

fn hang() -> Reply {
    Reply::Pieces(vec![(Duration::ZERO, Chunk::Hang)])
}

fn list(names: &[&str]) -> Reply {
    let items: Vec<_> = names.iter().map(|it| json!({"metadata": {"name": it}})).collect();
    Reply::ok(json!({"metadata": {"resourceVersion": "1"}, "items": items}))
}

fn lines(lines: &[Value]) -> Reply {
    let line = |it: &Value| (Duration::from_secs(1), Chunk::Data(format!("{it}\n")));
    Reply::Pieces(lines.iter().map(line).collect())
}

fn error(code: u16) -> Value {
    json!({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "no"}})
}

#[tokio::test(start_paused = true)]
async fn a_denied_list_is_reported_and_tried_again_with_growing_pauses() {
    let lists = (0..7).map(|_| Reply::status(403)).chain([list(&["a"])]).collect();
    let told = transcript(lists, vec![], 9).await;
    let expected = [
        "0.0 Denied",
        "1.0 Denied",
        "3.0 Denied",
        "7.0 Denied",
        "15.0 Denied",
        "31.0 Denied",
        "61.0 Denied",
        "91.0 - a",
        "91.0 listed",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_watch_is_reported_and_the_objects_are_listed_again() {
    let told = transcript(vec![list(&[]), list(&["a"])], vec![lines(&[error(500)])], 4).await;
    assert_eq!(told, ["0.0 listed", "1.0 Retry", "2.0 - a", "2.0 listed"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_listed_but_not_watched_is_listed_ever_more_rarely() {
    let lists = (0..4).map(|_| list(&[])).collect();
    let watches = (0..4).map(|_| Reply::status(403)).collect();
    let told = transcript(lists, watches, 7).await;
    let expected = [
        "0.0 listed",
        "0.0 Denied",
        "1.0 listed",
        "1.0 Denied",
        "3.0 listed",
        "3.0 Denied",
        "7.0 listed",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_for_the_request_or_in_the_watch_means_a_new_list() {
    let watches = vec![Reply::status(410), lines(&[error(410)])];
    let told = transcript(vec![list(&[]), list(&[]), list(&["a"])], watches, 4).await;
    assert_eq!(told, ["0.0 listed", "0.1 listed", "1.9 - a", "1.9 listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_that_expired_means_a_new_list() {
    let page =
        Reply::ok(json!({"metadata": {"continue": "t"}, "items": [{"metadata": {"name": "a"}}]}));
    let told = transcript(vec![page, Reply::status(410), list(&["b"])], vec![], 3).await;
    assert_eq!(told, ["0.0 - a", "0.1 - b", "0.1 listed"]);
}

#[tokio::test(start_paused = true)]
async fn half_a_line_is_not_an_event_and_the_watch_is_repeated() {
    let event = json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}}).to_string();
    let (half, _) = event.split_at(20);
    let broken = Reply::Pieces(vec![(Duration::ZERO, Chunk::Data(half.into()))]);
    let whole = lines(&[serde_json::from_str(&event).expect("JSON")]);
    let told = transcript(vec![list(&[])], vec![broken, whole], 2).await;
    assert_eq!(told, ["0.0 listed", "1.1 ADDED a"]);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_not_understood_is_reported_and_the_objects_are_listed_again() {
    let told = transcript(vec![list(&[]), list(&[])], vec![lines(&[json!("what?")])], 3).await;
    assert_eq!(told, ["0.0 listed", "1.0 Fatal", "2.0 listed"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_none_is_left_out_of_a_list() {
    let odd = Reply::ok(json!({"items": [7, null, {"metadata": {"name": "a"}}]}));
    assert_eq!(transcript(vec![odd], vec![], 2).await, ["0.0 - a", "0.0 listed"]);
}

#[tokio::test(start_paused = true)]
async fn the_page_of_a_proxy_is_not_an_empty_list() {
    let pages = [json!({}), json!({ "error": "maintenance" }), json!({ "kind": "Status" })];
    let lists = pages.into_iter().map(Reply::ok).chain([list(&["a"])]).collect();
    let told = transcript(lists, vec![], 5).await;
    assert_eq!(told, ["0.0 Fatal", "1.0 Fatal", "3.0 Fatal", "7.0 - a", "7.0 listed"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_waited_for_without_noise() {
    let lists = vec![Reply::Refuse("no route"), Reply::Refuse("no route"), list(&[])];
    assert_eq!(transcript(lists, vec![], 1).await, ["0.3 listed"]);
}

fn streaming(settings: &mut Settings) {
    settings.watching.initial_streaming = true;
}

fn change(kind: &str, name: &str) -> Value {
    json!({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": "7"}}})
}

/// Returns the bookmark that ends the initial objects.
fn initial_events_end() -> Value {
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    let metadata = json!({ "resourceVersion": "7", "annotations": annotations });
    json!({ "type": "BOOKMARK", "object": { "metadata": metadata } })
}

#[tokio::test(start_paused = true)]
async fn only_the_bookmark_with_the_annotation_ends_a_streamed_list() {
    let watch = lines(&[
        change("ADDED", "a"),
        change("BOOKMARK", ""),
        change("ADDED", "b"),
        initial_events_end(),
        change("ADDED", "c"),
    ]);
    let told = transcript_with(streaming, vec![], vec![watch], 4).await;
    assert_eq!(told, ["1.0 - a", "3.0 - b", "4.0 listed", "5.0 ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_breaks_off_begins_again() {
    let watches = vec![
        lines(&[change("ADDED", "a")]),
        lines(&[
            change("ADDED", "a"),
            change("ADDED", "b"),
            initial_events_end(),
            change("ADDED", "c"),
        ]),
    ];
    let told = transcript_with(streaming, vec![], watches, 5).await;
    assert_eq!(told, ["1.0 - a", "2.0 - a", "3.0 - b", "4.0 listed", "5.0 ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_lists_is_asked_for_lists_and_that_is_told_once() {
    for code in [400, 422] {
        let log = LogCapture::of("kopf.watch");
        let lists = vec![list(&["a"]), list(&["a"])];
        let watches = vec![Reply::status(code), lines(&[error(410)])];
        let told = transcript_with(streaming, lists, watches, 4).await;
        assert_eq!(told, ["0.0 - a", "0.0 listed", "1.1 - a", "1.1 listed"]);
        let warnings = log.lines().into_iter().filter(|it| it.level == Level::WARN);
        assert_eq!(warnings.count(), 1, "{:?}", log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_lasted_long_enough_is_cut_and_goes_on_where_it_was() {
    let watch = || {
        let event = (Duration::from_secs(3), Chunk::Data(format!("{}\n", change("ADDED", "a"))));
        Reply::Pieces(vec![event, (Duration::ZERO, Chunk::Hang)])
    };
    let requests = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let client = scripted(move |request| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=");
        seen.lock().push(query);
        if is_watch { watch() } else { list(&[]) }
    });
    let mut settings = Settings::default();
    settings.watching.client_timeout = Some(Duration::from_secs(10));
    settings.watching.server_timeout = Some(Duration::from_secs(8));
    let settings = Arc::new(settings);
    let target = StreamTarget {
        extent: kopf::ports::Extent::Whole,
        resource: Arc::new(kopfexamples()),
        namespace: None,
        settings: Arc::clone(&settings),
        restrictions: None,
    };
    let stream = KubeCluster::over(client, settings).stream(target);
    let reading = stream.for_each(|_| std::future::ready(()));
    assert!(tokio::time::timeout(Duration::from_secs(25), reading).await.is_err());
    let requests = requests.lock().clone();
    let from = |version: &str| {
        format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=8")
    };
    // At 0, 10 and 20 seconds; one list was enough.
    assert_eq!(requests, ["limit=500".to_owned(), from("1"), from("7"), from("7")]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_too_much_to_do_is_asked_again_for_as_long_as_it_says_so() {
    let lists = (0..20).map(|_| Reply::status(429)).chain([list(&["a"])]).collect();
    let told = transcript(lists, vec![], 2).await;
    let [object, listed] = &told[..] else { panic!("{told:?}") };
    assert!(object.ends_with("- a") && listed.ends_with("listed"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn objects_of_megabytes_come_through_however_their_lines_are_cut() {
    let text = "x".repeat(3 << 20);
    let event = json!({
        "type": "ADDED",
        "object": { "metadata": { "name": "big", "resourceVersion": "7" }, "spec": { "text": text } },
    });
    let line = format!("{event}\n{}\n", change("ADDED", "small"));
    let pieces = line.as_bytes().chunks(16 << 10);
    let pieces = pieces.map(|it| String::from_utf8_lossy(it).into_owned());
    let watch = Reply::Pieces(pieces.map(|it| (Duration::ZERO, Chunk::Data(it))).collect());
    let told = transcript(vec![list(&[])], vec![watch], 3).await;
    assert_eq!(told, ["0.0 listed", "0.0 ADDED big", "0.0 ADDED small"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_gets_no_connection_in_time_is_tried_again() {
    let by_watching =
        |it: &mut Settings| it.watching.connect_timeout = Some(Duration::from_secs(5));
    let by_networking =
        |it: &mut Settings| it.networking.connect_timeout = Some(Duration::from_secs(5));
    let sets: [fn(&mut Settings); 2] = [by_watching, by_networking];
    for set in sets {
        let watches = vec![Reply::Never, lines(&[change("ADDED", "a")])];
        let told = transcript_with(set, vec![list(&[])], watches, 2).await;
        assert_eq!(
            told,
            ["0.0 listed", "6.1 ADDED a"],
            "after 5 seconds, a pause, and the line's second"
        );
    }
}

/// Follows a stream of a server for some seconds; returns the seconds of its lists and of its watches.
async fn requests(
    seconds: u64,
    watch: impl FnMut(usize) -> Reply + Send + 'static,
) -> (Vec<f64>, Vec<f64>) {
    requests_over(seconds, watch, |client| KubeCluster::over(client, instant_errors())).await
}

/// Returns settings without further attempts of requests.
fn instant_errors() -> Arc<Settings> {
    let mut settings = Settings::default();
    settings.networking.error_backoffs.clear();
    Arc::new(settings)
}

/// Does so with a cluster that a function creates.
async fn requests_over(
    seconds: u64,
    mut watch: impl FnMut(usize) -> Reply + Send + 'static,
    cluster: impl FnOnce(kube::Client) -> KubeCluster,
) -> (Vec<f64>, Vec<f64>) {
    let seen = Arc::new(parking_lot::Mutex::new((Vec::new(), Vec::new())));
    let (times, start) = (Arc::clone(&seen), Instant::now());
    let client = scripted(move |request| {
        let at = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        let mut times = times.lock();
        if request.uri().query().unwrap_or_default().contains("watch=") {
            times.1.push(at);
            return watch(times.1.len());
        }
        times.0.push(at);
        list(&[])
    });
    let target = StreamTarget {
        extent: kopf::ports::Extent::Whole,
        resource: Arc::new(kopfexamples()),
        namespace: None,
        settings: instant_errors(),
        restrictions: None,
    };
    let stream = cluster(client).stream(target);
    let reading = stream.for_each(|_| std::future::ready(()));
    drop(tokio::time::timeout(Duration::from_secs(seconds), reading).await);
    let seen = seen.lock();
    seen.clone()
}

#[tokio::test(start_paused = true)]
async fn versions_that_expire_again_and_again_mean_ever_fewer_lists() {
    let expired = |after: u64| {
        let event = (Duration::ZERO, Chunk::Data(format!("{}\n", change("ADDED", "a"))));
        let end = (Duration::from_secs(after), Chunk::Data(format!("{}\n", error(410))));
        Reply::Pieces(vec![event, end])
    };
    let (lists, _) = requests(60, move |_| expired(0)).await;
    assert_eq!(lists, [0.0, 0.1, 0.9, 2.5, 5.7, 12.1, 24.9, 50.5]);
    // A watch that has lived for some seconds resets the count.
    let (lists, _) = requests(40, move |number| expired(if number < 4 { 0 } else { 10 })).await;
    assert_eq!(lists, [0.0, 0.1, 0.9, 2.5, 12.6, 22.7, 32.8]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_a_busy_server_does_not_open_goes_on_from_its_version() {
    for status in [429, 500, 503] {
        let (lists, watches) =
            requests(60, move |number| if number <= 3 { Reply::status(status) } else { hang() })
                .await;
        assert_eq!(lists, [0.0], "{status}");
        assert_eq!(watches.len(), 4, "{status}: {watches:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_response_after_an_outage_wakes_all_that_wait() {
    let start = Instant::now();
    let back_at = Duration::from_secs(100);
    let lists = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&lists);
    let client = scripted(move |request| {
        if start.elapsed() < back_at {
            return Reply::Unreachable;
        }
        if request.uri().query().unwrap_or_default().contains("watch=") {
            return hang();
        }
        seen.lock().push(start.elapsed().saturating_sub(back_at));
        list(&[])
    });
    let mut settings = Settings::default();
    settings.networking.error_backoffs = vec![Duration::from_secs(21); 9];
    let settings = Arc::new(settings);
    let cluster = KubeCluster::over(client, Arc::clone(&settings));
    let streams = (0..50).map(|number| {
        let target = StreamTarget {
            extent: kopf::ports::Extent::Whole,
            resource: Arc::new(kopfexamples()),
            namespace: Some(format!("ns{number}").into()),
            settings: Arc::clone(&settings),
            restrictions: None,
        };
        let cluster = &cluster;
        async move {
            tokio::time::sleep(Duration::from_millis(370 * number)).await;
            cluster.stream(target).for_each(|_| std::future::ready(())).await;
        }
    });
    let all = futures::future::join_all(streams);
    assert!(tokio::time::timeout(Duration::from_secs(130), all).await.is_err());
    let lists = lists.lock().clone();
    assert_eq!(lists.len(), 50);
    assert!(lists.iter().all(|it| *it <= Duration::from_secs(4)), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn pauses_of_streams_are_random_in_the_same_way_for_the_same_seed() {
    let lists = async |seed: u64| {
        let expired = |_| lines(&[error(410)]);
        let cluster = |client| KubeCluster::with_jitter(client, instant_errors(), seed);
        requests_over(60, expired, cluster).await.0
    };
    let first = lists(1).await;
    assert_eq!(lists(1).await, first);
    assert_ne!(lists(2).await, first);
    let pauses: Vec<_> = first.windows(2).map(|it| it[1] - it[0] - 1.0).collect();
    for (pause, least) in pauses.iter().zip([0.1, 0.8, 1.6, 3.2, 6.4, 12.8]) {
        assert!((least - 0.11..=least * 1.5 + 0.11).contains(pause), "{pauses:?}");
    }
}
