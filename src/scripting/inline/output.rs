//! Whether writing to an output waits for its reader.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns whether writing this many bytes may wait.
pub(in crate::scripting) fn may_wait(output: impl AsFd, bytes: usize) -> bool {
    /// What a pipe takes at once if it takes anything.
    const AT_ONCE: usize = 4096;
    let mut outputs = [PollFd::new(&output, PollFlags::OUT)];
    bytes > AT_ONCE || poll(&mut outputs, Some(&Timespec::default())).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::may_wait;

    #[test]
    fn a_line_may_wait_if_the_pipe_is_full_or_the_line_long() {
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
        assert!(!may_wait(&writer, 4096));
        assert!(may_wait(&writer, 4097));
        while !may_wait(&writer, 1) {
            writer.write_all(&[b'x'; 4096]).expect("it is written");
        }
        reader.read_exact(&mut [0; 4096]).expect("it is read");
        assert!(!may_wait(&writer, 4096));
        drop(reader);
        assert!(!may_wait(&writer, 4096), "it fails at once");
    }
}
