//! Files and directories that are created, removed and moved.

use std::{fs, time::Duration};

use super::{Desk, Watch};

#[tokio::test]
async fn files_are_added_renamed_and_removed() {
    let desk = Desk::new("tree");
    desk.file("ops/b.lua", "b");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    desk.file("ops/a.rhai", "a");
    assert_eq!(watch.next_text().await, "ops/a.rhai=a ops/b.lua=b");
    desk.rename("ops/a.rhai", "ops/c.rhai");
    assert_eq!(watch.next_text().await, "ops/b.lua=b ops/c.rhai=a");
    desk.remove("ops/b.lua");
    assert_eq!(watch.next_text().await, "ops/c.rhai=a");
}

#[tokio::test]
async fn a_file_that_was_added_is_watched_like_the_others() {
    let desk = Desk::new("added");
    desk.file("ops/a.lua", "a");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    desk.file("elsewhere/b.lua", "1");
    desk.link("ops/b.lua", "../elsewhere/b.lua");
    assert_eq!(watch.next_text().await, "ops/a.lua=a ops/b.lua=1");
    desk.file("elsewhere/b.lua", "2");
    assert_eq!(watch.next_text().await, "ops/a.lua=a ops/b.lua=2");
}

#[tokio::test]
async fn a_directory_that_vanishes_and_comes_back_is_seen_both_times() {
    let desk = Desk::new("vanish");
    desk.file("ops/a.lua", "1");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    for round in 2..5 {
        fs::remove_dir_all(desk.path("ops")).expect("it is there");
        assert_eq!(watch.next_text().await, "there is no file or directory 'ops'");
        desk.file("ops/a.lua", &round.to_string());
        assert_eq!(watch.next_text().await, format!("ops/a.lua={round}"));
        // Also in the new directory.
        desk.file("ops/a.lua", "more");
        assert_eq!(watch.next_text().await, "ops/a.lua=more");
    }
}

#[tokio::test]
async fn a_directory_that_is_moved_away_with_its_parent_comes_back() {
    let desk = Desk::new("parent");
    desk.file("app/ops/a.lua", "1");
    let mut watch = Watch::files(&desk, &["app/ops/a.lua"]).await;
    fs::remove_dir_all(desk.path("app")).expect("it is there");
    assert_eq!(watch.next_text().await, "there is no file or directory 'app/ops/a.lua'");
    desk.file("app/ops/a.lua", "2");
    assert_eq!(watch.next_text().await, "app/ops/a.lua=2");
}

#[tokio::test]
async fn a_directory_that_is_replaced_is_watched_anew() {
    let desk = Desk::new("replaced");
    desk.file("ops/a.lua", "1");
    let mut watch = Watch::files(&desk, &["ops"]).await;
    desk.file("next/a.lua", "2");
    desk.rename("ops", "old");
    desk.rename("next", "ops");
    assert_eq!(watch.next_text().await, "ops/a.lua=2");
    // A file that is no longer a script is no longer watched.
    desk.file("old/a.lua", "0");
    desk.file("ops/a.lua", "3");
    assert_eq!(watch.next_text().await, "ops/a.lua=3");
}

#[tokio::test]
async fn a_link_on_the_way_is_a_change_when_it_turns() {
    let desk = Desk::new("releases");
    desk.file("releases/1/a.lua", "1");
    desk.file("releases/2/a.lua", "2");
    desk.link("current", "releases/1");
    let mut watch = Watch::files(&desk, &["current"]).await;
    desk.link("next", "releases/2");
    desk.rename("next", "current");
    assert_eq!(watch.next_text().await, "current/a.lua=2");
    desk.file("releases/2/a.lua", "3");
    assert_eq!(watch.next_text().await, "current/a.lua=3");
}

#[tokio::test]
async fn what_the_system_does_not_tell_is_found_by_looking() {
    let desk = Desk::new("polled");
    desk.file("app/v/ops/a.lua", "1");
    let poll = Some(Duration::from_millis(100));
    let mut watch = Watch::polled(&desk, &["app/v/ops"], poll).await;
    // No directory so far above the scripts is watched.
    desk.file("new/v/ops/a.lua", "2");
    desk.rename("app", "old");
    desk.rename("new", "app");
    assert_eq!(watch.next_text().await, "app/v/ops/a.lua=2");
}

#[tokio::test]
async fn scripts_at_several_places_are_one_set() {
    let desk = Desk::new("several");
    desk.file("z.lua", "z");
    desk.file("ops/a.lua", "a");
    let mut watch = Watch::files(&desk, &["z.lua", "ops"]).await;
    desk.file("ops/a.lua", "2");
    assert_eq!(watch.next_text().await, "z.lua=z ops/a.lua=2");
    desk.file("z.lua", "3");
    assert_eq!(watch.next_text().await, "z.lua=3 ops/a.lua=2");
}
