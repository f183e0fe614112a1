//! Jobs and `CronJob`s. Without a kubelet: tests end the Pods.

use expect_test::expect;

use super::*;

const WORKLOADS: Controllers = Controllers {
    garbage: true,
    namespaces: false,
    definitions: false,
    workloads: true,
    kubelet: false,
};

fn job(spec: &Value) -> Value {
    let mut job = json!({ "metadata": meta("j"), "spec": spec });
    job["spec"]["template"] = template("j", "x");
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

/// Ends all running Pods in this phase.
fn end(cluster: &TestCluster, phase: &str) {
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
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create(
        "jobs.batch",
        job(&json!({ "completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 5 })),
    );
    cluster
        .check(
            1,
            expect![[r"
                0 + jobs.batch ns/j active=2
                0 + pods ns/j-00002
                0 + pods ns/j-00004"]],
        )
        .await;
    end(&cluster, "Succeeded");
    cluster
        .check(
            1,
            expect![[r"
        1 ~ pods ns/j-00002 Succeeded
        1 ~ pods ns/j-00004 Succeeded
        1 + pods ns/j-00006
        1 ~ jobs.batch ns/j active=1 succeeded=2"]],
        )
        .await;
    end(&cluster, "Succeeded");
    cluster
        .check(
            1,
            expect![[r"
        2 ~ pods ns/j-00006 Succeeded
        2 ~ jobs.batch ns/j succeeded=3; Complete=True"]],
        )
        .await;
    cluster
        .check(
            5,
            expect![[r"
        7 - jobs.batch ns/j
        7 - pods ns/j-00002
        7 - pods ns/j-00004
        7 - pods ns/j-00006"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_gives_up_after_too_many_failures() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create(
        "jobs.batch",
        job(&json!({ "completions": 1, "parallelism": 1, "backoffLimit": 1 })),
    );
    cluster.wait(1).await;
    end(&cluster, "Failed");
    cluster
        .check(
            9,
            expect![[r"
        1 ~ pods ns/j-00002 Failed
        1 ~ jobs.batch ns/j failed=1"]],
        )
        .await;
    cluster
        .check(
            2,
            expect![[r"
        11 + pods ns/j-00004
        11 ~ jobs.batch ns/j active=1 failed=1"]],
        )
        .await;
    end(&cluster, "Failed");
    cluster
        .check(
            1,
            expect![[r"
        12 ~ pods ns/j-00004 Failed
        12 ~ jobs.batch ns/j failed=2; Failed=True BackoffLimitExceeded"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_deadline() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("jobs.batch", job(&json!({ "completions": 1, "activeDeadlineSeconds": 7 })));
    cluster.wait(1).await;
    cluster
        .check(
            7,
            expect![[r"
        7 - pods ns/j-00002
        7 ~ jobs.batch ns/j failed=1; Failed=True DeadlineExceeded"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_starts_later() {
    let cluster = TestCluster::new(WORKLOADS);
    cluster.create("jobs.batch", job(&json!({ "completions": 1, "suspend": true })));
    cluster.check(1, expect!["0 + jobs.batch ns/j Suspended=True JobSuspended"]).await;
    cluster.merge("jobs.batch", "j", json!({ "spec": { "suspend": false } }));
    cluster
        .check(
            1,
            expect![[r"
                1 ~ jobs.batch ns/j active=1; Suspended=False JobResumed
                1 + pods ns/j-00002"]],
        )
        .await;
    cluster.merge("jobs.batch", "j", json!({ "spec": { "suspend": true } }));
    cluster
        .check(
            1,
            expect![[r"
        2 ~ jobs.batch ns/j Suspended=True JobSuspended
        2 - pods ns/j-00002"]],
        )
        .await;
}

fn cron_job(spec: &Value) -> Value {
    let mut body = json!({ "metadata": meta("cj"), "spec": spec });
    body["spec"]["jobTemplate"] = json!({ "spec": job(&json!({ "completions": 1 }))["spec"] });
    body
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_starts_jobs_on_time_and_deletes_old_ones() {
    let cluster = TestCluster::new(WORKLOADS);
    let spec = json!({ "schedule": "*/2 * * * *", "successfulJobsHistoryLimit": 1 });
    cluster.create("cronjobs.batch", cron_job(&spec));
    cluster.check(119, expect!["0 + cronjobs.batch ns/cj"]).await;
    cluster
        .check(
            2,
            expect![[r#"
        120 + jobs.batch ns/cj-29453762 active=1
        120 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:02:00Z"
        120 + pods ns/cj-29453762-00003"#]],
        )
        .await;
    end(&cluster, "Succeeded");
    cluster.check(120, expect![[r#"
        121 ~ pods ns/cj-29453762-00003 Succeeded
        121 ~ jobs.batch ns/cj-29453762 succeeded=1; Complete=True
        121 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:02:00Z" lastSuccessfulTime="2026-01-01T00:02:01Z"
        240 + jobs.batch ns/cj-29453764 active=1
        240 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:04:00Z" lastSuccessfulTime="2026-01-01T00:02:01Z"
        240 + pods ns/cj-29453764-00006"#]]).await;
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[r#"
        241 ~ pods ns/cj-29453764-00006 Succeeded
        241 ~ jobs.batch ns/cj-29453764 succeeded=1; Complete=True
        241 - jobs.batch ns/cj-29453762
        241 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:04:00Z" lastSuccessfulTime="2026-01-01T00:04:01Z"
        241 - pods ns/cj-29453762-00003"#]]).await;
    cluster.merge("cronjobs.batch", "cj", json!({ "spec": { "suspend": true } }));
    cluster.check(600, expect![[""]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_forbids_concurrency_waits_for_the_running_job() {
    let cluster = TestCluster::new(WORKLOADS);
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" });
    cluster.create("cronjobs.batch", cron_job(&spec));
    cluster.wait(200).await;
    assert_eq!(cluster.names("jobs.batch"), ["cj-29453761"]);
    end(&cluster, "Succeeded");
    cluster.check(1, expect![[r#"
        200 ~ pods ns/cj-29453761-00003 Succeeded
        200 ~ jobs.batch ns/cj-29453761 succeeded=1; Complete=True
        200 + jobs.batch ns/cj-29453763 active=1
        200 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:03:00Z" lastSuccessfulTime="2026-01-01T00:03:20Z"
        200 + pods ns/cj-29453763-00006"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_replaces_ends_the_running_job() {
    let cluster = TestCluster::new(WORKLOADS);
    let spec = json!({ "schedule": "@every 1m", "concurrencyPolicy": "Replace" });
    cluster.create("cronjobs.batch", cron_job(&spec));
    cluster.wait(61).await;
    cluster
        .check(
            60,
            expect![[r#"
        120 - jobs.batch ns/cj-29453761
        120 + jobs.batch ns/cj-29453762 active=1
        120 ~ cronjobs.batch ns/cj lastScheduleTime="2026-01-01T00:02:00Z"
        120 + pods ns/cj-29453762-00006
        120 - pods ns/cj-29453761-00003"#]],
        )
        .await;
}
