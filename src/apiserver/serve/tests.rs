//! Time limits of the socket, on a paused clock; the socket itself is tested in the integration tests.

use std::io::ErrorKind;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::{Instant, sleep},
};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut_off() {
    let (ours, _theirs) = duplex(16);
    let begun = Instant::now();
    let error = WriteTimeout::new(ours).write_all(&[0; 64]).await.expect_err("it takes no more");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), WRITE_TIMEOUT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_that_reads_gets_everything() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = WriteTimeout::new(ours);
    let read = async {
        let mut count = 0;
        let mut piece = [0; 16];
        // Far longer in total than a single write may wait.
        while count < 160 {
            sleep(WRITE_TIMEOUT / 2).await;
            count += theirs.read(&mut piece).await.expect("it is open");
        }
        count
    };
    let (written, count) = tokio::join!(ours.write_all(&[0; 160]), read);
    written.expect("no piece waited too long");
    assert_eq!(count, 160);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_stay_open() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = WriteTimeout::new(ours);
    sleep(WRITE_TIMEOUT * 10).await;
    ours.write_all(b"news").await.expect("an idle connection stays open");
    let mut news = [0; 4];
    theirs.read_exact(&mut news).await.expect("it comes");
    assert_eq!(&news, b"news");
}

#[test]
fn only_names_that_no_name_server_knows_are_this_machine() {
    for name in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:8080"] {
        assert!(is_this_machine(name), "{name}");
    }
    for name in [
        "",
        "localhost.example.com",
        "example.com:80",
        "10.0.0.1",
        "127.0.0.1.nip.io",
        "::ffff:8.8.8.8",
        "[::2]",
    ] {
        assert!(!is_this_machine(name), "{name}");
    }
}
