//! Mount tables of pods and of laptops.

use std::path::Path;

use super::Mounts;

const POD: &[u8] = b"\
612 521 0:93 / / rw,relatime master:257 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
613 612 0:96 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
640 612 259:1 /var/lib/kubelet/pods/9/volumes/kubernetes.io~configmap/s/..2026_1 /etc/scripts ro,relatime - ext4 /dev/nvme0n1p1 rw
641 612 259:1 /var/lib/kubelet/pods/9/volume-subpaths/s/0 /app/handlers.lua ro,relatime - ext4 /dev/nvme0n1p1 rw
642 612 0:55 / /mnt/nfs rw,relatime shared:9 master:3 - nfs4 server:/export rw
643 642 0:56 / /mnt/nfs/my\\040local\\134dir rw - tmpfs tmpfs rw
644 612 0:57 / /mnt/fuse rw - fuse.sshfs me@there: rw
645 612 0:58 / /mnt/covered rw - nfs there:/x rw
646 612 0:59 / /mnt/covered rw - tmpfs tmpfs rw
broken line
";

#[test]
fn a_sub_path_is_a_mounted_file() {
    let mounts = Mounts::parse(POD);
    assert!(mounts.is_mounted_alone(Path::new("/app/handlers.lua")));
    assert!(!mounts.is_mounted_alone(Path::new("/etc/scripts/handlers.lua")));
    assert!(!mounts.is_mounted_alone(Path::new("/app/other.lua")));
}

#[test]
fn file_systems_of_other_machines_are_known() {
    let mounts = Mounts::parse(POD);
    let cases = [
        ("/etc/scripts/a.lua", None),
        ("/home/a.lua", None),
        ("/mnt/nfs/a.lua", Some("nfs4")),
        ("/mnt/nfsx/a.lua", None),
        ("/mnt/nfs/my local\\dir/a.lua", None),
        ("/mnt/fuse/a.lua", Some("fuse.sshfs")),
        ("/mnt/covered/a.lua", None),
    ];
    for (path, kind) in cases {
        assert_eq!(mounts.remote(Path::new(path)), kind, "{path}");
    }
}

#[test]
fn an_empty_mount_table_has_no_mounts() {
    let mounts = Mounts::parse(b"");
    assert_eq!(mounts.remote(Path::new("/a")), None);
    assert!(!mounts.is_mounted_alone(Path::new("/a")));
}
