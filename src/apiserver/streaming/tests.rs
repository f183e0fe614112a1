//! Frames and headers of SPDY, as Go's client writes them.

use super::spdy::{Error, FrameReader, FrameWriter, SpdyFrame, headers::Headers};

/// Two header blocks of one session, compressed with the dictionary.
const FIRST: &str = "78f9e3c6a7c202253a50ca0a2e294a4dcc851625aca9a08006a5fc80fc22700eb030b03000d29cd068cc04256f460300000000ffff";
const SECOND: &str = "c2aa19540e2512d60b000000ffff";
/// A header block that was compressed without the dictionary.
const PLAIN: &str = "78da626060606460606009c82f2a01d28c8600000000ffff";

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|it| std::str::from_utf8(it).expect("ASCII"));
    pairs.map(|it| u8::from_str_radix(it, 16).expect("two digits")).collect()
}

fn syn_stream(stream: u32, headers: &str) -> Vec<u8> {
    let headers = bytes(headers);
    let mut frame = vec![0x80, 3, 0, 1, 0];
    frame.extend(&u32::try_from(headers.len() + 10).expect("short").to_be_bytes()[1..]);
    frame.extend(stream.to_be_bytes());
    frame.extend([0; 6]);
    frame.extend(headers);
    frame
}

fn read(sent: &[u8]) -> Result<Vec<SpdyFrame>, Error> {
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    // One byte at a time: frames do not end where messages end.
    for byte in sent {
        reader.add(&[*byte]);
        while let Some(frame) = reader.next()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn headers(all: &[(&str, &str)]) -> Headers {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn headers_of_a_session_are_one_compressed_text_with_a_dictionary() {
    let sent = [syn_stream(1, FIRST), syn_stream(3, SECOND)].concat();
    let of = |kind: &str| headers(&[("port", "8080"), ("requestid", "0"), ("streamtype", kind)]);
    let open = |stream: u32, kind: &str| SpdyFrame::Open { stream, headers: of(kind), last: false };
    assert_eq!(read(&sent), Ok(vec![open(1, "error"), open(3, "data")]));
}

#[test]
fn headers_may_be_compressed_without_the_dictionary() {
    let frame = SpdyFrame::Open { stream: 1, headers: headers(&[("port", "1")]), last: false };
    assert_eq!(read(&syn_stream(1, PLAIN)), Ok(vec![frame]));
}

#[test]
fn data_and_its_end_come_through() {
    let sent = [FrameWriter::data(5, b"abc", false), FrameWriter::data(5, b"", true)].concat();
    let data =
        |bytes: &'static [u8], last| SpdyFrame::Data { stream: 5, bytes: bytes.into(), last };
    assert_eq!(read(&sent), Ok(vec![data(b"abc", false), data(b"", true)]));
}

#[test]
fn invalid_frames_end_a_session() {
    assert_eq!(read(&[0x80, 2, 0, 1, 0, 0, 0, 0]), Err(Error::Version(0x8002)));
    assert_eq!(read(&[0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0]), Err(Error::Short));
    assert_eq!(read(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff]), Err(Error::TooLarge(0xff_ffff)));
    assert_eq!(read(&syn_stream(1, "78f9")), Err(Error::Headers));
    assert_eq!(read(&syn_stream(1, "789c1234")), Err(Error::Headers));
    assert_eq!(read(&syn_stream(1, SECOND)), Err(Error::Headers));
}

#[test]
fn pings_are_returned_and_other_frames_are_ignored() {
    let ping = FrameWriter::pong(7);
    assert_eq!(read(&ping), Ok(vec![SpdyFrame::Ping { id: 7 }]));
    let settings = [0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0];
    assert_eq!(read(&settings), Ok(vec![SpdyFrame::Other]));
}
