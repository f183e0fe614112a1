//! Columns of volumes, claims and storage classes.

use serde_json::Value;

use super::{
    Column, Layout,
    row::{TableRow, join},
};
use crate::object::text;

/// Older than the field, and takes precedence over it.
const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

/// A storage class with one of these annotations is the default one.
const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub(super) static VOLUMES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("Reclaim Policy"),
        Column::text("Status"),
        Column::text("Claim"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::text("Reason"),
        Column::AGE,
        Column::wide("VolumeMode"),
    ],
    |row| {
        let claim = row
            .get("/spec/claimRef")
            .map(|it| format!("{}/{}", text(it, "/namespace"), text(it, "/name")));
        vec![
            row.name(),
            row.text_or("/spec/capacity/storage", "0").into(),
            modes(row.list("/spec/accessModes")).into(),
            row.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(row).into(),
            claim.unwrap_or_default().into(),
            class(row).into(),
            row.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
            row.text("/status/reason").into(),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
);

pub(super) static CLAIMS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Status"),
        Column::text("Volume"),
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::AGE,
        Column::wide("VolumeMode"),
    ],
    |row| {
        let volume = row.text("/spec/volumeName");
        let (capacity, access) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                row.text_or("/status/capacity/storage", "0").into(),
                modes(row.list("/status/accessModes")),
            ),
        };
        vec![
            row.name(),
            phase(row).into(),
            volume.into(),
            capacity.into(),
            access.into(),
            class(row).into(),
            row.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
);

fn phase<'a>(row: &TableRow<'a>) -> &'a str {
    match row.get("/metadata/deletionTimestamp") {
        Some(_) => "Terminating",
        None => row.text("/status/phase"),
    }
}

fn class<'a>(row: &TableRow<'a>) -> &'a str {
    row.text_or(CLASS_ANNOTATION, row.text("/spec/storageClassName"))
}

/// Formats access modes in a fixed order, each one once.
fn modes(asked: &[Value]) -> String {
    let shown = MODES.iter().filter(|(mode, _)| asked.iter().any(|it| it == mode));
    join(shown.map(|(_, short)| short), ",")
}

pub(super) static CLASSES: Layout = Layout::new(
    &[
        Column::NAME,
        Column::text("Provisioner"),
        Column::text("ReclaimPolicy"),
        Column::text("VolumeBindingMode"),
        Column::text("AllowVolumeExpansion"),
        Column::AGE,
    ],
    |row| {
        let default = DEFAULT_ANNOTATIONS.iter().any(|it| row.text(it) == "true");
        let mark = if default { " (default)" } else { "" };
        vec![
            format!("{}{mark}", row.text("/metadata/name")).into(),
            row.text("/provisioner").into(),
            row.text_or("/reclaimPolicy", "Delete").into(),
            row.text_or("/volumeBindingMode", "Immediate").into(),
            row.flag("/allowVolumeExpansion").into(),
            row.age(),
        ]
    },
);

pub(super) static DRIVERS: Layout = Layout::new(
    &[
        Column::NAME,
        Column::flag("AttachRequired"),
        Column::flag("PodInfoOnMount"),
        Column::flag("StorageCapacity"),
        Column::text("TokenRequests"),
        Column::flag("RequiresRepublish"),
        Column::text("Modes"),
        Column::AGE,
    ],
    |row| {
        let flag = |pointer: &str| row.get(pointer).cloned().unwrap_or_else(|| true.into());
        let audiences = row.list("/spec/tokenRequests").iter().map(|it| text(it, "/audience"));
        let audiences = join(audiences, ",");
        let modes = row.list("/spec/volumeLifecycleModes").iter().filter_map(Value::as_str);
        let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
        vec![
            row.name(),
            flag("/spec/attachRequired"),
            flag("/spec/podInfoOnMount"),
            row.get("/spec/storageCapacity").cloned().unwrap_or_else(|| false.into()),
            or_unset(audiences).into(),
            row.get("/spec/requiresRepublish").cloned().unwrap_or_else(|| false.into()),
            or_unset(join(modes, ",")).into(),
            row.age(),
        ]
    },
);

pub(super) static NODES: Layout =
    Layout::new(&[Column::NAME, Column::number("Drivers"), Column::AGE], |row| {
        vec![row.name(), row.count("/spec/drivers").into(), row.age()]
    });

pub(super) static ATTACHMENTS: Layout = Layout::new(
    &[
        Column::NAME,
        Column { format: "name", ..Column::text("Attacher") },
        Column::text("PV"),
        Column::text("Node"),
        Column::flag("Attached"),
        Column::AGE,
    ],
    |row| {
        vec![
            row.name(),
            row.text("/spec/attacher").into(),
            row.text("/spec/source/persistentVolumeName").into(),
            row.text("/spec/nodeName").into(),
            row.flag("/status/attached").into(),
            row.age(),
        ]
    },
);
