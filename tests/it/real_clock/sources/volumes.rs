//! Mounted `ConfigMap`s and `Secret`s, as the kubelet creates and updates them.

use std::fs;

use super::{Desk, Watch};

/// Writes a version of a volume and switches `..data` to it, in the steps of the kubelet's atomic writer.
fn publish(desk: &Desk, version: &str, files: &[(&str, &str)]) {
    for (name, text) in files {
        desk.file(&format!("volume/..{version}/{name}"), text);
    }
    let before = fs::read_link(desk.path("volume/..data"));
    desk.link("volume/..data_tmp", &format!("..{version}"));
    desk.rename("volume/..data_tmp", "volume/..data");
    for (name, _) in files {
        let first = name.split('/').next().expect("a name");
        if desk.path(&format!("volume/{first}")).symlink_metadata().is_err() {
            desk.link(&format!("volume/{first}"), &format!("..data/{first}"));
        }
    }
    let entries = fs::read_dir(desk.path("volume")).expect("it is there").flatten();
    for entry in entries.map(|it| it.file_name()) {
        let name = entry.to_string_lossy().into_owned();
        let is_gone = !name.starts_with("..")
            && files.iter().all(|(it, _)| it.split('/').next() != Some(name.as_str()));
        if is_gone {
            desk.remove(&format!("volume/{name}"));
        }
    }
    if let Ok(before) = before {
        fs::remove_dir_all(desk.path("volume").join(before)).expect("the old version");
    }
}

#[tokio::test]
async fn all_files_of_one_swap_are_one_change() {
    let desk = Desk::new("volume");
    publish(&desk, "v1", &[("a.lua", "1"), ("b.lua", "1"), ("c.rhai", "1")]);
    let mut watch = Watch::files(&desk, &["volume"]).await;
    for version in 2..6 {
        let text = version.to_string();
        publish(
            &desk,
            &format!("v{version}"),
            &[("a.lua", &text), ("b.lua", &text), ("c.rhai", &text)],
        );
        let expected = format!("volume/a.lua={text} volume/b.lua={text} volume/c.rhai={text}");
        assert_eq!(watch.next_text().await, expected);
    }
}

#[tokio::test]
async fn keys_come_and_go_with_a_swap() {
    let desk = Desk::new("volume-keys");
    publish(&desk, "v1", &[("a.lua", "1"), ("b.lua", "1")]);
    let mut watch = Watch::files(&desk, &["volume"]).await;
    publish(&desk, "v2", &[("a.lua", "2"), ("c.lua", "2")]);
    assert_eq!(watch.until("volume/a.lua=2 volume/c.lua=2").await, 0);
}

#[tokio::test]
async fn one_file_of_a_volume_is_enough_to_name() {
    let desk = Desk::new("volume-file");
    publish(&desk, "v1", &[("a.lua", "1"), ("b.lua", "1")]);
    let mut watch = Watch::files(&desk, &["volume/a.lua"]).await;
    publish(&desk, "v2", &[("a.lua", "2"), ("b.lua", "1")]);
    assert_eq!(watch.next_text().await, "volume/a.lua=2");
    publish(&desk, "v3", &[("a.lua", "3"), ("b.lua", "1")]);
    assert_eq!(watch.next_text().await, "volume/a.lua=3");
}

#[tokio::test]
async fn a_directory_inside_of_a_volume_turns_with_it() {
    let desk = Desk::new("volume-nested");
    publish(&desk, "v1", &[("ops/a.lua", "1"), ("x.lua", "1")]);
    let mut watch = Watch::files(&desk, &["volume/ops"]).await;
    publish(&desk, "v2", &[("ops/a.lua", "2"), ("ops/b.lua", "2"), ("x.lua", "1")]);
    assert_eq!(watch.next_text().await, "volume/ops/a.lua=2 volume/ops/b.lua=2");
    publish(&desk, "v3", &[("ops/a.lua", "3"), ("x.lua", "1")]);
    assert_eq!(watch.next_text().await, "volume/ops/a.lua=3");
}

#[tokio::test]
async fn a_swap_to_the_same_texts_is_no_change() {
    let desk = Desk::new("volume-same");
    publish(&desk, "v1", &[("a.lua", "1")]);
    let mut watch = Watch::files(&desk, &["volume"]).await;
    publish(&desk, "v2", &[("a.lua", "1")]);
    publish(&desk, "v3", &[("a.lua", "3")]);
    assert_eq!(watch.next_text().await, "volume/a.lua=3");
}
