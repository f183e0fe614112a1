//! What scripts reach outside of their sandbox as far as it is granted: `env` and `files`, the same in both languages.
//!
//! What is granted is decided in `logic/grants`; here the decision is applied to this process and this disk. The engines only
//! bring arguments in and results out, as JSON.

mod files;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{Terms, text::did_you_mean};
use crate::logic::grants::{Access, Denied};

/// A function of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// A variable, or the default.
    EnvGet,
    /// All variables that are granted.
    EnvAll,
    /// The text of a file.
    FilesRead,
    /// The content of a JSON file.
    FilesReadJson,
    /// The content of a YAML file.
    FilesReadYaml,
    /// The names in a directory.
    FilesList,
    /// Whether there is a file or a directory.
    FilesExists,
}

/// One global of scripts, with its functions.
pub(crate) struct Library {
    /// As scripts call it.
    pub(crate) name: &'static str,
    /// Its functions by name.
    pub(crate) functions: &'static [(&'static str, Function)],
}

/// The libraries whose functions need a grant.
pub(crate) const LIBRARIES: &[Library] = &[
    Library { name: "env", functions: &[("get", Function::EnvGet), ("all", Function::EnvAll)] },
    Library {
        name: "files",
        functions: &[
            ("read", Function::FilesRead),
            ("read_json", Function::FilesReadJson),
            ("read_yaml", Function::FilesReadYaml),
            ("list", Function::FilesList),
            ("exists", Function::FilesExists),
        ],
    },
];

impl Library {
    /// There is no such function in it.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let (library, known) = (self.name, self.functions.iter().map(|(it, _)| *it));
        format!("there is no {library}.{name}{}", did_you_mean(name, known, &format!("{library}.")))
    }
}

impl Function {
    /// Whether it waits for the disk, which may be far away: other calls of the script should go on.
    pub(crate) fn waits(self) -> bool {
        match self {
            Function::EnvGet | Function::EnvAll => false,
            Function::FilesRead
            | Function::FilesReadJson
            | Function::FilesReadYaml
            | Function::FilesList
            | Function::FilesExists => true,
        }
    }
}

/// What one script can reach.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    access: Access,
    /// Of this process; at least what is granted.
    environment: Arc<BTreeMap<String, String>>,
    /// Larger files are refused: no string of a script may be longer.
    bytes_max: usize,
}

impl Reach {
    /// For the script that is called so.
    pub(crate) fn of(terms: &Terms, script: &str) -> Arc<Self> {
        Arc::new(Reach {
            access: terms.grants.of(script),
            environment: Arc::clone(&terms.environment),
            bytes_max: terms.limits.string_size,
        })
    }

    /// Calls a function. `place` is how the script names it, for errors.
    pub(crate) fn call(
        &self,
        function: Function,
        place: &str,
        arguments: &[Value],
    ) -> Result<Value, String> {
        self.dispatch(function, arguments).map_err(|it| format!("{place}: {it}"))
    }

    fn dispatch(&self, function: Function, arguments: &[Value]) -> Result<Value, String> {
        match function {
            Function::EnvGet => {
                let (name, default) = match arguments {
                    [Value::String(name)] => (name, Value::Null),
                    [Value::String(name), default] => (name, default.clone()),
                    _ => return Err("expected the name of a variable, and maybe a default".into()),
                };
                Ok(self.variable(name)?.map_or(default, Value::from))
            }
            Function::EnvAll => match arguments {
                [] => Ok(self.variables()),
                _ => Err("expected no arguments".into()),
            },
            Function::FilesRead => self.read(path(arguments)?).map(Value::from),
            Function::FilesReadJson => {
                let path = path(arguments)?;
                let text = self.read(path)?;
                serde_json::from_str(&text).map_err(|it| format!("{path} is no JSON: {it}"))
            }
            Function::FilesReadYaml => {
                let path = path(arguments)?;
                let text = self.read(path)?;
                serde_saphyr::from_str(&text).map_err(|it| {
                    let told = it.without_snippet().to_string();
                    format!("{path} is no YAML: {}", told.lines().next().unwrap_or_default())
                })
            }
            Function::FilesList => files::list(&self.access, path(arguments)?),
            Function::FilesExists => files::exists(&self.access, path(arguments)?).map(Value::from),
        }
    }

    fn read(&self, path: &str) -> Result<String, String> {
        files::read(&self.access, path, self.bytes_max)
    }

    fn variable(&self, name: &str) -> Result<Option<&str>, String> {
        if self.access.allows_env(name) {
            Ok(self.environment.get(name).map(String::as_str))
        } else {
            Err(Denied::env(name).to_string())
        }
    }

    fn variables(&self) -> Value {
        let granted = self.environment.iter().filter(|(name, _)| self.access.allows_env(name));
        Value::Object(granted.map(|(name, value)| (name.clone(), value.as_str().into())).collect())
    }
}

fn path(arguments: &[Value]) -> Result<&str, String> {
    match arguments {
        [Value::String(path)] if !path.is_empty() => Ok(path),
        _ => Err("expected a path".into()),
    }
}
