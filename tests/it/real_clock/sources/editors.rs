//! The ways in which editors and tools save.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    time::Duration,
};

use tokio::time::Instant;

use super::{Desk, Watch, read};

#[tokio::test]
async fn a_file_that_is_written_over_is_seen() {
    let desk = Desk::new("over");
    desk.file("a.lua", "1");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    desk.file("a.lua", "2");
    assert_eq!(watch.next_text().await, "a.lua=2");
    desk.file("a.lua", "3");
    assert_eq!(watch.next_text().await, "a.lua=3");
}

#[tokio::test]
async fn a_file_that_is_renamed_over_the_old_one_is_seen_again_and_again() {
    let desk = Desk::new("rename-over");
    desk.file("a.lua", "0");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    for round in 1..5 {
        desk.file("a.lua.tmp", &round.to_string());
        desk.rename("a.lua.tmp", "a.lua");
        assert_eq!(watch.next_text().await, format!("a.lua={round}"));
    }
}

#[tokio::test]
async fn an_editor_that_moves_the_old_file_away_first_makes_one_change() {
    let desk = Desk::new("backup");
    desk.file("ops/a.lua", "1");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    desk.file("ops/4913", "");
    desk.remove("ops/4913");
    desk.rename("ops/a.lua", "ops/a.lua~");
    desk.file("ops/a.lua", "2");
    desk.remove("ops/a.lua~");
    assert_eq!(watch.next_text().await, "ops/a.lua=2");
}

/// Saves in several steps, and repeats that until the machine was fast enough once: then only the last step must have been seen. `save`
/// returns the expected set, and its own duration.
async fn is_seen_as_a_whole(
    watch: &mut Watch,
    mut save: impl AsyncFnMut(u32) -> (String, Duration),
) {
    /// If a file is half-written for longer, its content is taken.
    const IN_TIME: Duration = Duration::from_millis(300);
    for round in 1..20 {
        let (seen, (text, took)) = tokio::join!(watch.next_text(), save(round));
        if took < IN_TIME {
            assert_eq!(seen, text);
            return;
        }
        while seen != text && watch.next_text().await != text {}
    }
    panic!("the machine was too busy for the test, many times in a row");
}

#[tokio::test]
async fn a_file_that_is_away_for_a_moment_is_waited_for() {
    let desk = Desk::new("moment");
    desk.file("ops/a.lua", "0");
    desk.file("ops/b.lua", "b");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    is_seen_as_a_whole(&mut watch, async |round| {
        desk.remove("ops/a.lua");
        let gone = Instant::now();
        // The editor's pause, longer than it takes to detect and read the change: there is no notification that the file is incomplete.
        tokio::time::sleep(Duration::from_millis(60)).await;
        desk.file("ops/a.lua", &round.to_string());
        (format!("ops/a.lua={round} ops/b.lua=b"), gone.elapsed())
    })
    .await;
}

#[tokio::test]
async fn a_half_written_file_is_not_taken() {
    let desk = Desk::new("half");
    desk.file("a.lua", "old");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    is_seen_as_a_whole(&mut watch, async |round| {
        let started = Instant::now();
        // Truncates first, as most editors and shells do.
        let mut file = File::create(desk.path("a.lua")).expect("a file");
        file.write_all(b"first half,").expect("the first half");
        file.flush().expect("the first half");
        // The editor's pause, longer than the quiet time after which complete files are taken: nothing indicates that this one is
        // incomplete.
        tokio::time::sleep(Duration::from_millis(100)).await;
        write!(file, " second half {round}").expect("the second half");
        (format!("a.lua=first half, second half {round}"), started.elapsed())
    })
    .await;
}

#[tokio::test]
async fn what_stays_empty_or_away_is_taken_after_all() {
    let desk = Desk::new("empty");
    desk.file("ops/a.lua", "1");
    desk.file("ops/b.lua", "1");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    desk.file("ops/a.lua", "");
    assert_eq!(watch.next_text().await, "ops/a.lua= ops/b.lua=1");
    desk.remove("ops/a.lua");
    assert_eq!(watch.next_text().await, "ops/b.lua=1");
    desk.remove("ops/b.lua");
    assert_eq!(watch.next_text().await, "there are no scripts in the directory 'ops'");
    desk.file("ops/b.lua", "2");
    assert_eq!(watch.next_text().await, "ops/b.lua=2");
}

#[tokio::test]
async fn a_hundred_saves_at_once_are_few_changes() {
    let desk = Desk::new("burst");
    desk.file("a.lua", "start");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    for round in 0..100 {
        desk.file("a.lua.new", &format!("save {round}"));
        desk.rename("a.lua.new", "a.lua");
    }
    let others = watch.until("a.lua=save 99").await;
    assert!(others < 10, "{others} sets before the last one");
}

#[tokio::test]
async fn saves_without_end_are_seen_while_they_go_on() {
    let desk = Desk::new("endless");
    desk.file("a.lua", "0");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    let mut round = 0;
    let endless = async {
        loop {
            round += 1;
            desk.file("a.lua.new", &round.to_string());
            desk.rename("a.lua.new", "a.lua");
            // The next save comes before the quiet time is over.
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        seen = watch.next_text() => assert!(seen.starts_with("a.lua="), "{seen}"),
        () = endless => {}
    }
}

#[tokio::test]
async fn an_edit_that_keeps_length_and_time_is_seen() {
    let desk = Desk::new("same-time");
    let path = desk.file("a.lua", "1");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    let before = fs::metadata(&path).and_then(|it| it.modified()).expect("a time");
    desk.file("a.lua", "2");
    let file = OpenOptions::new().write(true).open(&path).expect("the file");
    file.set_modified(before).expect("a time can be set");
    drop(file);
    assert_eq!(watch.next_text().await, "a.lua=2");
}

#[expect(clippy::disallowed_types, reason = "the time of a file is set, not asked for")]
#[tokio::test]
async fn reading_and_touching_are_no_changes() {
    let desk = Desk::new("reading");
    let path = desk.file("ops/a.lua", "1");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    for _ in 0..50 {
        assert_eq!(read(&path), "1");
        let file = OpenOptions::new().append(true).open(&path).expect("the file");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time can be set");
    }
    desk.file("ops/data.json", "{}");
    desk.file("ops/a.lua", "2");
    // Nothing came before it.
    assert_eq!(watch.next_text().await, "ops/a.lua=2");
}

#[tokio::test]
async fn a_text_that_is_no_utf8_is_a_problem_until_it_is_mended() {
    let desk = Desk::new("latin");
    let path = desk.file("a.lua", "1");
    let mut watch = Watch::files(&desk, &["a.lua"]).await;
    fs::write(&path, b"-- \xe9").expect("a file can be written");
    assert_eq!(watch.next_text().await, "'a.lua' is not UTF-8: see line 1");
    desk.file("a.lua", "2");
    assert_eq!(watch.next_text().await, "a.lua=2");
}
