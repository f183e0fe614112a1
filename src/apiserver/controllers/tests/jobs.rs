//! Jobs and `CronJob`s. No kubelet: Pods end by hand.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers =
    Controllers { garbage: true, namespaces: false, workloads: true, kubelet: false };

fn job(spec: Value) -> Value {
    let mut job = json!({ "metadata": meta("j"), "spec": spec });
    job["spec"]["template"] = template("j", "x");
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

/// All running Pods end like this.
fn end(cluster: &Cluster, phase: &str) {
    for pod in cluster.server.list("pods") {
        if text(&pod, "/status/phase").is_empty() {
            let state = json!({ "terminated": { "finishedAt": cluster.server.now() } });
            let status =
                json!({ "phase": phase, "containerStatuses": [{ "name": "c", "state": state }] });
            cluster.merge("pods", object::meta(&pod, "name"), json!({ "status": status }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_have_succeeded() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create(
        "jobs.batch",
        job(json!({ "completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 5 })),
    );
    cluster.check(1, expect![[""]]).await;
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[""]]).await;
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[""]]).await;
    cluster.check(5, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_gives_up_after_too_many_failures() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create(
        "jobs.batch",
        job(json!({ "completions": 1, "parallelism": 1, "backoffLimit": 1 })),
    );
    cluster.wait(1).await;
    end(&cluster, "Failed");
    cluster.check(9, expect![[""]]).await;
    cluster.check(2, expect![[""]]).await;
    end(&cluster, "Failed");
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_deadline() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("jobs.batch", job(json!({ "completions": 1, "activeDeadlineSeconds": 7 })));
    cluster.wait(1).await;
    cluster.check(7, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_starts_later() {
    let cluster = Cluster::new(WORKLOADS);
    cluster.create("jobs.batch", job(json!({ "completions": 1, "suspend": true })));
    cluster.check(1, expect![[""]]).await;
    cluster.merge("jobs.batch", "j", json!({ "spec": { "suspend": false } }));
    cluster.check(1, expect![[""]]).await;
    cluster.merge("jobs.batch", "j", json!({ "spec": { "suspend": true } }));
    cluster.check(1, expect![[""]]).await;
}

fn cron_job(spec: Value) -> Value {
    let mut body = json!({ "metadata": meta("cj"), "spec": spec });
    body["spec"]["jobTemplate"] = json!({ "spec": job(json!({ "completions": 1 }))["spec"] });
    body
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_starts_jobs_on_time_and_forgets_old_ones() {
    let cluster = Cluster::new(WORKLOADS);
    let spec = json!({ "schedule": "*/2 * * * *", "successfulJobsHistoryLimit": 1 });
    cluster.create("cronjobs.batch", cron_job(spec));
    cluster.check(119, expect![[""]]).await;
    cluster.check(2, expect![[""]]).await;
    end(&cluster, "Succeeded");
    cluster.check(120, expect![[""]]).await;
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[""]]).await;
    cluster.merge("cronjobs.batch", "cj", json!({ "spec": { "suspend": true } }));
    cluster.check(600, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_forbids_company_waits_for_the_running_job() {
    let cluster = Cluster::new(WORKLOADS);
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" });
    cluster.create("cronjobs.batch", cron_job(spec));
    cluster.wait(200).await;
    assert_eq!(cluster.names("jobs.batch"), ["cj-29453761"]);
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_replaces_ends_the_running_job() {
    let cluster = Cluster::new(WORKLOADS);
    let spec = json!({ "schedule": "@every 1m", "concurrencyPolicy": "Replace" });
    cluster.create("cronjobs.batch", cron_job(spec));
    cluster.wait(61).await;
    cluster.check(60, expect![[""]]).await;
}
