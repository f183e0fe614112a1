//! The content of a `ConfigMap`: scripts and modules. Pure.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use crate::logic::object::Object;
use crate::scripting::{Modules, Source};
use crate::sorted::CollectSorted as _;
use crate::sources::{error::Error, paths};

/// The scripts of one `ConfigMap`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Map {
    /// The namespace of the `ConfigMap`.
    pub(super) namespace: String,
    /// The name of the `ConfigMap`.
    pub(super) name: String,
    /// The values by key.
    pub(super) data: Arc<BTreeMap<PathBuf, String>>,
    /// The keys of binary data.
    pub(super) binary: Vec<String>,
}

impl Map {
    /// Reads a `ConfigMap` object. Values of `data` that are not strings are left out.
    pub(super) fn of(object: &Object) -> Self {
        let body = object.body();
        let text = |pointer: &str| {
            body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let entries =
            |field: &str| body.get(field).and_then(Value::as_object).into_iter().flatten();
        let texts = entries("data").filter_map(|(key, it)| Some((key.into(), it.as_str()?.into())));
        Map {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            data: Arc::new(texts.collect_map()),
            binary: entries("binaryData").map(|(key, _)| key.clone()).collect(),
        }
    }

    /// Returns the name as users see it.
    pub(super) fn shown(&self) -> String {
        format!("configmap/{}/{}", self.namespace, self.name)
    }

    /// Returns the scripts with their names and sources.
    ///
    /// # Errors
    /// Fails if there are none, or if one is binary.
    pub(super) fn scripts(&self) -> Result<Vec<(String, &str)>, Error> {
        let shown = self.shown();
        if let Some(key) = self.binary.iter().find(|it| is_script(Path::new(it))) {
            return Err(Error::Binary { map: shown, key: key.clone() });
        }
        let scripts = self.data.iter().filter(|(key, _)| is_script(key));
        let scripts: Vec<_> = scripts
            .map(|(key, text)| (format!("{shown}/{}", key.display()), text.as_str()))
            .collect();
        if scripts.is_empty() { Err(Error::EmptyMap(shown)) } else { Ok(scripts) }
    }

    /// Returns the scripts, which can load all values of the map as modules.
    ///
    /// # Errors
    /// Fails if there are none, or if one is binary.
    pub(super) fn sources(&self) -> Result<Vec<Source>, Error> {
        let scripts = self.scripts()?.into_iter();
        let source = |(name, text): (String, &str)| Source {
            name,
            text: text.to_owned(),
            modules: Modules::of_shared_texts(Arc::clone(&self.data)),
        };
        Ok(scripts.map(source).collect())
    }
}

/// Applies the same rule as for the files of a directory.
fn is_script(key: &Path) -> bool {
    paths::is_script(key) && !paths::is_hidden(key)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Map;
    use crate::logic::object::Object;

    fn map(data: &Value, binary: &Value) -> Map {
        let metadata = json!({ "namespace": "ops", "name": "scripts" });
        Map::of(&Object::from_value(
            json!({ "metadata": metadata, "data": data, "binaryData": binary }),
        ))
    }

    #[test]
    fn scripts_are_the_keys_with_their_extensions() {
        let data = json!({ "b.rhai": "2", "a.lua": "1", "_lib.lua": "3", "notes.txt": "4" });
        let map = map(&data, &json!({ "logo.png": "AA==" }));
        let scripts = map.scripts().expect("scripts");
        let expected =
            [("configmap/ops/scripts/a.lua", "1"), ("configmap/ops/scripts/b.rhai", "2")];
        assert_eq!(scripts, expected.map(|(name, text)| (name.to_owned(), text)));
        assert_eq!(map.data.len(), 4, "the others can be loaded");
    }

    #[test]
    fn a_map_without_scripts_is_an_error_that_explains_scripts() {
        for data in [Value::Null, json!({}), json!({ "_lib.lua": "", "x": "" })] {
            let problem = map(&data, &Value::Null).scripts().expect_err("nothing");
            assert_eq!(problem.to_string(), "there are no scripts in configmap/ops/scripts");
            assert!(problem.hint().is_some_and(|it| it.contains("*.lua")));
        }
    }

    #[test]
    fn a_script_that_is_not_text_is_rejected_with_a_hint() {
        let map = map(&json!({ "a.lua": "" }), &json!({ "b.lua": "/w==" }));
        let problem = map.scripts().expect_err("binary");
        assert!(problem.to_string().contains("'b.lua' is in binaryData"), "{problem}");
        assert!(problem.hint().is_some_and(|it| it.contains("UTF-8")));
    }
}
