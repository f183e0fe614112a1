//! The folder of a scenario: its scripts, and the actions of users in `steps.json`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kopf::{
    logic::access::grants::{Grants, Permission},
    scripting::{Modules, Placement, Source, Terms},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The languages, by the extension of their files.
const LANGUAGES: [&str; 2] = ["lua", "rhai"];
/// The namespace of objects without one.
pub(super) const NAMESPACE: &str = "ns1";

/// One scenario.
pub(super) struct Scenario {
    pub(super) plot: Plot,
    /// The scripts by name, then by language.
    scripts: BTreeMap<String, BTreeMap<String, PathBuf>>,
}

/// The content of `steps.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    /// The subject of the scenario, and the reasons for differences between the languages.
    #[expect(dead_code, reason = "for readers")]
    about: String,
    /// Whether the log lines about single steps of the operator are recorded.
    #[serde(default)]
    pub(super) verbose: bool,
    /// The permissions of the scripts, by option.
    #[serde(default)]
    grants: BTreeMap<String, Vec<String>>,
    /// The variables of the process.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// In the order of time. The operator starts at 0, after the steps of that time.
    pub(super) steps: Vec<Step>,
    /// The end, in seconds.
    until: f64,
}

/// An action of a user with its time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// The time in seconds.
    at: f64,
    #[serde(flatten)]
    pub(super) action: Action,
}

/// An action of a user.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// Creates this object; its type and namespace may be omitted.
    Create(Value),
    /// Merges the second into the object named first.
    Edit(String, Value),
    /// Deletes the object of this name.
    Delete(String),
    /// Ends the operator.
    Stop(()),
    /// Starts the operator from scratch.
    Start(()),
    /// Replaces the running scripts by those of this folder, which is inside that of the scenario.
    Reload(String),
}

/// The language of each script in one run.
pub(super) struct Cast(Vec<(String, PathBuf)>);

impl Scenario {
    pub(super) fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("steps.json")).expect("steps.json");
        let plot =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("steps.json: {error}"));
        let mut scripts = BTreeMap::<String, BTreeMap<String, PathBuf>>::new();
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let part = |it: Option<&std::ffi::OsStr>| {
                it.and_then(|it| it.to_str()).unwrap_or_default().to_owned()
            };
            let (name, language) = (part(path.file_stem()), part(path.extension()));
            // As on the command line: names with an underscore are modules.
            if LANGUAGES.contains(&language.as_str()) && !name.starts_with('_') {
                scripts.entry(name).or_default().insert(language, path);
            }
        }
        Scenario { plot, scripts }
    }

    /// Returns the runs: all in one language, all in the other, and the two mixed if there are several scripts.
    pub(super) fn casts(&self) -> Vec<Cast> {
        let cast = |first: usize, step: usize| {
            let language = |index: usize| LANGUAGES[(first + index * step) % LANGUAGES.len()];
            let scripts = self.scripts.values().enumerate();
            let chosen = scripts.map(|(index, versions)| {
                let language = language(index);
                let path =
                    versions.get(language).unwrap_or_else(|| panic!("no script in {language}"));
                (language.to_owned(), path.clone())
            });
            Cast(chosen.collect())
        };
        let mut casts = vec![cast(0, 0), cast(1, 0)];
        if self.scripts.len() > 1 {
            casts.extend([cast(0, 1), cast(1, 1)]);
        }
        casts
    }
}

impl Plot {
    /// Returns the terms of the scripts.
    pub(super) fn terms(&self) -> Terms {
        let mut grants = Grants::default();
        for (option, texts) in &self.grants {
            let what = Permission::ALL.into_iter().find(|it| it.option() == option);
            let what = what.unwrap_or_else(|| panic!("grants: {option}"));
            for text in texts {
                let base = Path::new(env!("CARGO_MANIFEST_DIR"));
                grants.all.allow(what, text, base).unwrap_or_else(|it| panic!("{option}: {it}"));
            }
        }
        let (grants, environment) = (Arc::new(grants), Arc::new(self.environment.clone()));
        Terms { grants, environment, ..Placement::CurrentRuntime.into() }
    }

    pub(super) fn until(&self) -> Duration {
        Duration::from_secs_f64(self.until)
    }
}

impl Step {
    pub(super) fn at(&self) -> Duration {
        Duration::from_secs_f64(self.at)
    }
}

impl Cast {
    /// Returns the languages, for messages.
    pub(super) fn languages(&self) -> String {
        let languages: BTreeSet<_> = self.0.iter().map(|(language, _)| language.as_str()).collect();
        languages.into_iter().collect::<Vec<_>>().join(" with ")
    }

    /// Returns the scripts, read from their files.
    pub(super) fn sources(&self) -> Vec<Source> {
        self.0.iter().map(|(_, path)| source(path)).collect()
    }

    /// Returns the scripts of the same names in a folder next to them.
    pub(super) fn edited(&self, folder: &str) -> Vec<Source> {
        let edited = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            path.with_file_name(folder).join(name)
        };
        self.0.iter().map(|(_, path)| source(&edited(path))).collect()
    }
}

fn source(path: &Path) -> Source {
    Source {
        name: path.file_name().unwrap_or_default().display().to_string(),
        modules: Modules::beside(path),
        text: fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    }
}

/// Returns an object with the parts that the steps omit.
pub(super) fn complete(body: &Value) -> Value {
    let mut complete = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": { "namespace": NAMESPACE },
    });
    for (key, value) in body.as_object().into_iter().flatten() {
        if key == "metadata" {
            for (key, value) in value.as_object().into_iter().flatten() {
                complete["metadata"][key] = value.clone();
            }
        } else {
            complete[key] = value.clone();
        }
    }
    complete
}
