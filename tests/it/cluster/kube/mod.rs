//! The connection of scripts to the cluster: one for all, which is retried after a failure.

mod applied;
mod gaps;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use kopf::{
    cluster::KubeCluster,
    ports::{ApiError, Cluster, Dial, ErrorClass, Kube},
    settings::Settings,
    testing,
};
use kopf_apiserver::ApiServer;
use tokio::time::{Instant, sleep, timeout};

/// The duration of an attempt.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Returns a connection whose first attempts fail, and the number of attempts.
fn unsteady(failures: usize) -> (Kube, Arc<AtomicUsize>) {
    let attempts = Arc::new(AtomicUsize::new(0));
    let client = testing::client(&ApiServer::builder().build());
    let counted = Arc::clone(&attempts);
    let dial: Dial = Box::new(move || {
        let (client, before) = (client.clone(), counted.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            sleep(ATTEMPT).await;
            if before < failures {
                return Err(away());
            }
            Ok(Arc::new(KubeCluster::over(client, Arc::default())) as Arc<dyn Cluster>)
        })
    });
    let kube = Kube::default();
    kube.open(Arc::new(Mutex::new(Settings::default())), dial);
    (kube, attempts)
}

fn away() -> ApiError {
    ApiError {
        class: ErrorClass::Retry,
        status: None,
        message: "the server is away".into(),
        hint: None,
        answer: None,
    }
}

fn told(result: Result<Arc<dyn Cluster>, ApiError>) -> String {
    result.map_or_else(|it| it.message, |_| "connected".into())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_failed_is_tried_again_by_the_next_request() {
    let (kube, attempts) = unsteady(2);
    assert_eq!(told(kube.cluster().await), "the server is away");
    assert_eq!(told(kube.cluster().await), "the server is away");
    assert_eq!(told(kube.cluster().await), "connected");
    assert_eq!(told(kube.cluster().await), "connected");
    assert_eq!(attempts.load(Ordering::Relaxed), 3, "what is connected stays so");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_an_attempt_share_its_failure() {
    let (kube, attempts) = unsteady(1);
    let start = Instant::now();
    let all = futures::future::join_all((0..10).map(|_| kube.cluster())).await;
    assert!(all.into_iter().all(|it| told(it) == "the server is away"));
    assert_eq!((start.elapsed(), attempts.load(Ordering::Relaxed)), (ATTEMPT, 1));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_nobody_waits_for_any_more_is_not_the_last() {
    let (kube, _) = unsteady(0);
    assert!(timeout(ATTEMPT / 2, kube.cluster()).await.is_err());
    assert_eq!(told(kube.cluster().await), "connected");
}

#[tokio::test(start_paused = true)]
async fn nobody_connects_after_the_end_also_if_an_attempt_was_on_its_way() {
    let (kube, attempts) = unsteady(1);
    let closing = async {
        sleep(ATTEMPT / 2).await;
        kube.close();
    };
    let (first, ()) = tokio::join!(kube.cluster(), closing);
    assert_eq!(told(first), "the server is away");
    assert_eq!(told(kube.cluster().await), "there is no connection to a cluster here");
    assert_eq!(attempts.load(Ordering::Relaxed), 1);
}
