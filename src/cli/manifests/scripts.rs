//! Scripts as `ConfigMap`s, and as files in the container.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::cli::{
    rbac::{Survey, templates_of},
    report::Report,
};
use crate::sources::DEFAULT_PATHS;

/// The directory in which the scripts are mounted.
const DIRECTORY: &str = "/scripts";
/// The configuration next to the scripts.
const CONFIGURATION: &str = "kopf.yaml";
/// Kubernetes: a `ConfigMap` has at most 1 MiB, names and metadata included.
const MAP_MAX: usize = 900 * 1024;

/// The files of the container, in `ConfigMap`s that are small enough.
pub(super) struct Mounted {
    /// By path below the directory, in each map.
    maps: Vec<BTreeMap<String, String>>,
    /// The path arguments of `kopf run`.
    pub(super) paths: Vec<String>,
    pub(super) has_configuration: bool,
}

impl Mounted {
    /// Collects the scripts, their modules and templates, and the configuration.
    pub(super) fn of(survey: &Survey) -> Result<Self, Report> {
        let mut files = BTreeMap::new();
        let mut paths = Vec::new();
        for source in &survey.sources {
            let script = Path::new(&source.name);
            let name = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
            paths.push(format!("{DIRECTORY}/{name}"));
            if files.insert(name.clone(), source.text.clone()).is_some() {
                let problem = format!("two scripts are named {name}");
                let hint = "rename one of them: all scripts are mounted in one directory";
                return Err(Report::failure(problem).with_hint(hint));
            }
            for module in source.modules.taken() {
                let text = module.path.as_deref().and_then(|it| fs::read_to_string(it).ok());
                files.extend(text.map(|it| (module.name.display().to_string(), it)));
            }
            files.extend(templates_of(source));
        }
        if let Some(directory) = directory(survey) {
            paths = vec![DIRECTORY.into()];
            let configuration = fs::read_to_string(directory.join(CONFIGURATION)).ok();
            files.extend(configuration.map(|it| (CONFIGURATION.to_owned(), it)));
        } else if let Some(text) = beside(survey) {
            files.insert(CONFIGURATION.to_owned(), text);
        }
        let has_configuration = files.contains_key(CONFIGURATION);
        Ok(Mounted { maps: split(files)?, paths, has_configuration })
    }

    /// Returns the `ConfigMap`s; the first one has the name of the operator.
    pub(super) fn maps(&self, meta: &Value) -> Vec<Value> {
        let maps = self.maps.iter().enumerate().map(|(index, files)| {
            let mut meta = meta.clone();
            if let Some(name) = meta.get_mut("name") {
                *name = map_name(name, index).into();
            }
            let data: Map<_, _> =
                files.iter().map(|(path, text)| (key(path), Value::from(text.as_str()))).collect();
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data })
        });
        maps.collect()
    }

    /// Returns the volume. A map with all files at the top is mounted whole: new keys become new files.
    pub(super) fn volume(&self, name: &Value) -> Value {
        let is_nested = self.maps.iter().flat_map(BTreeMap::keys).any(|it| it.contains('/'));
        if self.maps.len() == 1 && !is_nested {
            return json!({ "name": "scripts", "configMap": { "name": map_name(name, 0) } });
        }
        let sources = self.maps.iter().enumerate().map(|(index, files)| {
            let items = files.keys().map(|it| json!({ "key": key(it), "path": it }));
            let items: Vec<_> = items.collect();
            json!({ "configMap": { "name": map_name(name, index), "items": items } })
        });
        json!({ "name": "scripts", "projected": { "sources": sources.collect::<Value>() } })
    }

    /// Returns the mount of the volume.
    pub(super) fn mount() -> Value {
        json!({ "name": "scripts", "mountPath": DIRECTORY, "readOnly": true })
    }

    /// Returns the path of the configuration in the container.
    pub(super) fn configuration() -> String {
        format!("{DIRECTORY}/{CONFIGURATION}")
    }
}

/// Returns the directory that the user has named, if it is one.
fn directory(survey: &Survey) -> Option<PathBuf> {
    let usual = DEFAULT_PATHS.iter().map(PathBuf::from).find(|it| it.exists());
    let path = match survey.options.paths.as_slice() {
        [] => usual?,
        [only] => only.clone(),
        _ => return None,
    };
    path.is_dir().then_some(path)
}

fn beside(survey: &Survey) -> Option<String> {
    let script = Path::new(&survey.sources.first()?.name);
    let directory = script.parent()?;
    let places = [directory.join(CONFIGURATION), PathBuf::from(CONFIGURATION)];
    places.iter().find_map(|it| fs::read_to_string(it).ok())
}

fn split(files: BTreeMap<String, String>) -> Result<Vec<BTreeMap<String, String>>, Report> {
    let (mut maps, mut size) = (vec![BTreeMap::new()], 0);
    for (path, text) in files {
        let own = path.len() + text.len();
        if own > MAP_MAX {
            let problem = format!("{path} has {own} bytes; a ConfigMap can store {MAP_MAX}");
            let hint = "move a part of it to a module, or build an image with the scripts";
            return Err(Report::failure(problem).with_hint(hint));
        }
        if size + own > MAP_MAX {
            maps.push(BTreeMap::new());
            size = 0;
        }
        size += own;
        if let Some(last) = maps.last_mut() {
            last.insert(path, text);
        }
    }
    Ok(maps)
}

/// Returns the key of a file: a key cannot contain slashes.
fn key(path: &str) -> String {
    path.replace('/', "..")
}

fn map_name(name: &Value, index: usize) -> String {
    let name = name.as_str().unwrap_or_default();
    if index == 0 { name.to_owned() } else { format!("{name}-{}", index + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sets_are_split_and_modules_keep_their_directories() {
        let text = "x".repeat(MAP_MAX / 2);
        let files = ["a.lua", "b.lua", "lib/c.lua"].map(|it| (it.to_owned(), text.clone()));
        let maps = split(files.into()).expect("files that fit");
        let mounted = Mounted { maps, paths: Vec::new(), has_configuration: false };
        let volume = mounted.volume(&json!("op"));
        let sources = volume.pointer("/projected/sources").and_then(Value::as_array);
        assert_eq!(sources.map(Vec::len), Some(3));
        let last = volume.pointer("/projected/sources/2/configMap");
        let items = json!([{ "key": "lib..c.lua", "path": "lib/c.lua" }]);
        assert_eq!(last, Some(&json!({ "name": "op-3", "items": items })));
        let maps = mounted.maps(&json!({ "name": "op" }));
        assert_eq!(maps[2].pointer("/data/lib..c.lua").map(Value::is_string), Some(true));
    }

    #[test]
    fn a_file_that_fits_in_no_configmap_is_rejected() {
        let files = [("a.lua".to_owned(), "x".repeat(MAP_MAX))];
        let problem = split(files.into()).expect_err("a file that is too large");
        assert_eq!(problem.message, "a.lua has 921605 bytes; a ConfigMap can store 921600");
    }
}
