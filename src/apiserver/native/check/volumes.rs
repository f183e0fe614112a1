//! Validation of the volumes of Pods.

use std::collections::BTreeSet;

use super::{
    FieldValue, Problems, amount,
    containers::{FILE_FIELDS, inner_path, pod_field},
    maybe_one_of, names, obey, one_of,
};
use crate::sorted;
use crate::{native::quantity::Quantity, refusal::ValidationProblem};

const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The order in which the real server checks sources: of several, the first one counts.
const ORDER: [&str; 26] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
];

/// Validates volumes, and returns the names of the valid ones.
pub(super) fn all<'a>(out: &mut Problems, list: &FieldValue<'a>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for it in list.items() {
        let before = out.len();
        sources(out, &it);
        let name = it.get("name");
        if name.is_empty() {
            out.push(name.required(""));
        } else {
            obey(out, &name, names::dns_label);
        }
        if names.contains(name.text()) {
            out.push(name.duplicate());
        }
        if out.len() == before {
            names.insert(name.text());
        }
    }
    names
}

/// Checks that a volume has exactly one source.
fn sources(out: &mut Problems, it: &FieldValue<'_>) {
    let set = it.value.as_object().into_iter().flatten();
    let set = set.filter(|(name, value)| *name != "name" && !value.is_null());
    let mut set: Vec<&str> = set.map(|it| it.0.as_str()).collect();
    sorted::sort_by_key(&mut set, |name| {
        ORDER.iter().position(|it| it == name).unwrap_or(ORDER.len())
    });
    let mut count = 0;
    for name in set {
        let one = it.get(name);
        if count > 0 {
            out.push(one.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        count += 1;
        source(out, name, &one);
    }
    if count == 0 {
        out.push(it.required("must specify a volume type"));
    }
}

fn require(out: &mut Problems, it: &FieldValue<'_>, fields: &[&str]) {
    for field in fields {
        if it.get(field).is_empty() {
            out.push(it.get(field).required(""));
        }
    }
}

/// Validates a source; Pods and persistent volumes share them.
pub(super) fn source(out: &mut Problems, name: &str, it: &FieldValue<'_>) {
    match name {
        "emptyDir" => {
            let size = it.get("sizeLimit");
            if amount(&size).is_some_and(Quantity::negative) {
                out.push(size.forbidden("SizeLimit field must be a valid resource quantity"));
            }
        }
        "hostPath" => {
            if it.get("path").is_empty() {
                out.push(it.get("path").required(""));
                return;
            }
            if it.get("path").text().split('/').any(|it| it == "..") {
                out.push(it.get("path").invalid("must not contain '..'"));
            }
            maybe_one_of(out, &it.get("type"), &HOST_PATHS);
        }
        "secret" => {
            require(out, it, &["secretName"]);
            files(out, it);
        }
        "configMap" => {
            require(out, it, &["name"]);
            files(out, it);
        }
        "persistentVolumeClaim" => require(out, it, &["claimName"]),
        "nfs" => {
            require(out, it, &["server", "path"]);
            let path = it.get("path");
            if !path.is_empty() && !path.text().starts_with('/') {
                out.push(path.invalid("must be an absolute path"));
            }
        }
        "csi" => require(out, it, &["driver"]),
        "local" => require(out, it, &["path"]),
        "awsElasticBlockStore" => require(out, it, &["volumeID"]),
        "gcePersistentDisk" => require(out, it, &["pdName"]),
        "projected" => projected(out, it),
        "downwardAPI" => {
            mode(out, &it.get("defaultMode"));
            downward(out, it);
        }
        _ => {}
    }
}

fn mode(out: &mut Problems, field: &FieldValue<'_>) {
    if field.is_set() && !(0..=0o777).contains(&field.number()) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        out.push(field.invalid(detail));
    }
}

fn files(out: &mut Problems, it: &FieldValue<'_>) {
    mode(out, &it.get("defaultMode"));
    for item in it.get("items").items() {
        if item.get("key").is_empty() {
            out.push(item.get("key").required(""));
        }
        file_path(out, &item);
        mode(out, &item.get("mode"));
    }
}

fn file_path(out: &mut Problems, item: &FieldValue<'_>) {
    let path = item.get("path");
    if path.is_empty() {
        out.push(path.required(""));
        return;
    }
    inner_path(out, &path);
    if path.text().starts_with("..") && path.text() != ".." && !path.text().starts_with("../") {
        out.push(path.invalid("must not start with '..'"));
    }
}

fn downward(out: &mut Problems, it: &FieldValue<'_>) {
    for item in it.get("items").items() {
        file_path(out, &item);
        mode(out, &item.get("mode"));
        let (field, resource) = (item.get("fieldRef"), item.get("resourceFieldRef"));
        if field.is_set() {
            // The real server leaves out the list and the index in these paths.
            pod_field(out, &field.named(it.at("fieldRef")), &FILE_FIELDS);
        }
        if field.is_set() && resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            out.push(ValidationProblem::invalid(it.path.clone(), "resource", detail));
        } else if !field.is_set() && !resource.is_set() {
            out.push(it.required("one of fieldRef and resourceFieldRef is required"));
        }
    }
}

fn projected(out: &mut Problems, it: &FieldValue<'_>) {
    mode(out, &it.get("defaultMode"));
    for source in it.get("sources").items() {
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        let set: Vec<&str> = kinds.into_iter().filter(|name| source.get(name).is_set()).collect();
        for (at, name) in set.iter().enumerate() {
            let one = source.get(name);
            if at > 0 {
                out.push(one.forbidden("may not specify more than 1 volume type"));
                continue;
            }
            match *name {
                "secret" | "configMap" => {
                    require(out, &one, &["name"]);
                    files(out, &one);
                }
                "downwardAPI" => downward(out, &one),
                _ => {
                    let path = one.get("path");
                    if path.is_empty() {
                        out.push(path.required(""));
                    } else {
                        inner_path(out, &path);
                    }
                    let seconds = one.get("expirationSeconds");
                    if seconds.is_set() && seconds.number() < 600 {
                        out.push(
                            seconds.invalid("may not specify a duration less than 10 minutes"),
                        );
                    }
                }
            }
        }
        if set.is_empty() {
            out.push(source.required("must specify a volume type"));
        }
    }
}

/// Validates the mode of a volume or a claim, if it is set.
pub(super) fn volume_mode(out: &mut Problems, field: &FieldValue<'_>) {
    if field.is_set() {
        one_of(out, field, &["Block", "Filesystem"]);
    }
}
