//! Splitting of frames into lines.

use bytes::Bytes;

use crate::cluster::lines::{Broken, LINE_BYTES_MAX, Splitter};

fn split(frames: &[&'static str]) -> Vec<String> {
    let mut splitter = Splitter::default();
    let mut lines = Vec::new();
    for frame in frames {
        splitter.feed(Bytes::from_static(frame.as_bytes()));
        while let Some(line) = splitter.split().unwrap() {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
    }
    lines
}

#[test]
fn frames_and_lines_need_not_agree() {
    assert_eq!(split(&["a\nb", "b", "b\n\r\n", "\nc\nd"]), ["a", "bbb", "c"]);
}

#[test]
fn a_short_line_keeps_no_frame_and_a_long_one_is_not_copied() {
    for (length, is_slice) in [(3, false), (1 << 20, true)] {
        let frame = Bytes::from([vec![b'x'; length], b"\ntwo\n".to_vec()].concat());
        let mut splitter = Splitter::default();
        splitter.feed(frame.clone());
        let line = splitter.split().unwrap().unwrap();
        assert_eq!(line.len(), length);
        assert_eq!(line.as_ptr() == frame.as_ptr(), is_slice);
    }
}

#[test]
fn a_line_without_end_is_given_up() {
    let frame = Bytes::from(vec![b'x'; LINE_BYTES_MAX / 2 + 1]);
    let mut splitter = Splitter::default();
    splitter.feed(frame.clone());
    assert_eq!(splitter.split(), Ok(None));
    splitter.feed(frame);
    assert_eq!(splitter.split(), Err(Broken::TooLong));
}
