//! Properties of mounts that affect watching: files that never change, and file systems without notifications.
//!
//! A pure parser of `/proc/self/mountinfo`, whose format is documented in `proc_pid_mountinfo(5)`.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
};

#[cfg(test)]
mod tests;

/// File systems that other machines can change, too, without notifications on this one.
const REMOTE: &[&str] = &[
    "9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
];

/// The mounts, in the order of their creation: later ones cover earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts(Vec<Mount>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    kind: String,
}

impl Mounts {
    /// Parses the content of the file. Lines that cannot be parsed are skipped.
    pub(super) fn parse(text: &[u8]) -> Self {
        let mounts = text.split(|it| *it == b'\n').filter_map(|line| {
            let mut fields = line.split(|it| *it == b' ');
            let point = unescaped(fields.nth(4)?);
            // Optional fields end with a dash.
            fields.find(|it| *it == b"-")?;
            let kind = String::from_utf8_lossy(fields.next()?).into_owned();
            Some(Mount { point: OsString::from_vec(point).into(), kind })
        });
        Mounts(mounts.collect())
    }

    /// Returns whether a file is a mount by itself, as for a `subPath` in Kubernetes: it never changes.
    pub(super) fn is_mounted_alone(&self, file: &Path) -> bool {
        self.0.iter().any(|it| it.point == file)
    }

    /// Returns the type of the file system of this real path, if other machines can change it.
    pub(super) fn remote(&self, path: &Path) -> Option<&str> {
        let covering = self.0.iter().filter(|it| path.starts_with(&it.point));
        // The last of the longest covers the others.
        let mount = covering.max_by_key(|it| it.point.components().count())?;
        let kind = mount.kind.as_str();
        let is_remote = REMOTE.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.");
        is_remote.then_some(kind)
    }
}

/// Decodes spaces and the like, which are written as octal numbers after a backslash.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let number = if *first == b'\\' { after.get(..3).and_then(octal) } else { None };
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    bytes
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}
