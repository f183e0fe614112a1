//! The storages of progress and of the last handled essence, as users construct them: by Kopf's names and parameters.
//!
//! As a plain value, a storage is its name with its parameters: `{"StatusProgressStorage": {"field": "status.x"}}`, or the name
//! alone. `kopf.StatusProgressStorage{field = "status.x"}` in a script returns this value.

use serde_json::{Map, Value, json};

use super::{
    check,
    value::{Plain, unfit},
};
use crate::logic::{
    object::{annotations, fields, measure},
    text::nearest::nearest,
};
use crate::settings::{
    AnnotationsDiffBase, AnnotationsProgress, DiffBaseStorage, FieldPath, ProgressStorage,
    StatusDiffBase, StatusProgress,
};

/// All constructors below `kopf`.
pub const STORAGES: [&str; 7] = [
    ANNOTATIONS_PROGRESS,
    STATUS_PROGRESS,
    MULTI_PROGRESS,
    SMART_PROGRESS,
    ANNOTATIONS_DIFFBASE,
    STATUS_DIFFBASE,
    MULTI_DIFFBASE,
];

/// Maximum number of storages and parameters in a combination of storages: each record is written to all of them.
const ITEMS_MAX: usize = 1_000;

const ANNOTATIONS_PROGRESS: &str = "AnnotationsProgressStorage";
const STATUS_PROGRESS: &str = "StatusProgressStorage";
const MULTI_PROGRESS: &str = "MultiProgressStorage";
const SMART_PROGRESS: &str = "SmartProgressStorage";
const ANNOTATIONS_DIFFBASE: &str = "AnnotationsDiffBaseStorage";
const STATUS_DIFFBASE: &str = "StatusDiffBaseStorage";
const MULTI_DIFFBASE: &str = "MultiDiffBaseStorage";

/// The field names of a storage in the status; `{name}` stands for its `name`.
const PROGRESS_FIELD: &str = "status.{name}.progress";
const TOUCH_FIELD: &str = "status.{name}.dummy";
const DIFFBASE_FIELD: &str = "status.{name}.last-handled-configuration";

/// Returns the value of `kopf.NAME(parameters)`, for the names in [`STORAGES`]. The parameters are checked at once, so that the
/// error points at the line of the mistake.
pub fn storage(name: &str, parameters: &Value) -> Result<Value, String> {
    let value = json!({ name: parameters });
    match ProgressStorage::from_json(&value) {
        Ok(storage) => Ok(storage.to_json()),
        Err(problem) if is_progress(name) => Err(problem),
        Err(_) => DiffBaseStorage::from_json(&value).map(|it| it.to_json()),
    }
}

fn is_progress(name: &str) -> bool {
    [ANNOTATIONS_PROGRESS, STATUS_PROGRESS, MULTI_PROGRESS, SMART_PROGRESS].contains(&name)
}

impl Plain for ProgressStorage {
    const TAKES: &'static str = "one of AnnotationsProgressStorage, StatusProgressStorage, \
        MultiProgressStorage, SmartProgressStorage, with its parameters";

    fn to_json(&self) -> Value {
        match self {
            ProgressStorage::Annotations(it) => json!({ ANNOTATIONS_PROGRESS: {
                "prefix": it.prefix, "verbose": it.verbose, "touch_key": it.touch_key, "v1": it.v1,
            } }),
            ProgressStorage::Status(it) => json!({ STATUS_PROGRESS: {
                "field": shown(&it.field), "touch_field": shown(&it.touch_field),
            } }),
            ProgressStorage::Multi(all) => {
                json!({ MULTI_PROGRESS: all.iter().map(Plain::to_json).collect::<Vec<_>>() })
            }
            ProgressStorage::Smart(it, status) => json!({ SMART_PROGRESS: {
                "field": shown(&status.field), "touch_field": shown(&status.touch_field),
                "prefix": it.prefix, "verbose": it.verbose, "touch_key": it.touch_key, "v1": it.v1,
            } }),
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let (name, parameters) = named(value).ok_or_else(|| unfit::<Self>(value))?;
        match name {
            ANNOTATIONS_PROGRESS => {
                let mut given = Parameters::new(ANNOTATIONS_PROGRESS, parameters)?;
                let storage = given.annotations_progress()?;
                given.end().map(|()| ProgressStorage::Annotations(storage))
            }
            STATUS_PROGRESS => {
                let mut given = Parameters::new(STATUS_PROGRESS, parameters)?;
                let storage = given.status_progress()?;
                given.end().map(|()| ProgressStorage::Status(storage))
            }
            SMART_PROGRESS => {
                let mut given = Parameters::new(SMART_PROGRESS, parameters)?;
                let (own, old) = (given.annotations_progress()?, given.status_progress()?);
                given.end().map(|()| ProgressStorage::Smart(own, old))
            }
            MULTI_PROGRESS => members(MULTI_PROGRESS, parameters).map(ProgressStorage::Multi),
            _ => Err(unfit::<Self>(value)),
        }
    }
}

impl Plain for DiffBaseStorage {
    const TAKES: &'static str = "one of AnnotationsDiffBaseStorage, StatusDiffBaseStorage, \
        MultiDiffBaseStorage, with its parameters";

    fn to_json(&self) -> Value {
        let ignored = |it: &[FieldPath]| it.iter().map(|it| shown(it)).collect::<Vec<_>>();
        match self {
            DiffBaseStorage::Annotations(it) => json!({ ANNOTATIONS_DIFFBASE: {
                "prefix": it.prefix, "key": it.key,
                "ignored_fields": ignored(&it.ignored_fields), "v1": it.v1,
            } }),
            DiffBaseStorage::Status(it) => json!({ STATUS_DIFFBASE: {
                "field": shown(&it.field), "ignored_fields": ignored(&it.ignored_fields),
            } }),
            DiffBaseStorage::Multi(all) => {
                json!({ MULTI_DIFFBASE: all.iter().map(Plain::to_json).collect::<Vec<_>>() })
            }
        }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let (name, parameters) = named(value).ok_or_else(|| unfit::<Self>(value))?;
        match name {
            ANNOTATIONS_DIFFBASE => {
                let default = AnnotationsDiffBase::default();
                let mut given = Parameters::new(ANNOTATIONS_DIFFBASE, parameters)?;
                let storage = AnnotationsDiffBase {
                    prefix: given.prefix()?,
                    key: given.key("key", default.key)?,
                    ignored_fields: given.ignored_fields()?,
                    v1: given.flag("v1", default.v1)?,
                };
                given.end().map(|()| DiffBaseStorage::Annotations(storage))
            }
            STATUS_DIFFBASE => {
                let mut given = Parameters::new(STATUS_DIFFBASE, parameters)?;
                let name = given.name()?;
                let storage = StatusDiffBase {
                    field: given.field("field", DIFFBASE_FIELD, &name)?,
                    ignored_fields: given.ignored_fields()?,
                };
                given.end().map(|()| DiffBaseStorage::Status(storage))
            }
            MULTI_DIFFBASE => members(MULTI_DIFFBASE, parameters).map(DiffBaseStorage::Multi),
            _ => Err(unfit::<Self>(value)),
        }
    }
}

/// Returns the name of a storage and its parameters, if any.
fn named(value: &Value) -> Option<(&str, Option<&Value>)> {
    match value {
        Value::String(name) => Some((name, None)),
        Value::Object(fields) => match fields.iter().next() {
            Some((name, parameters)) if fields.len() == 1 => Some((name, Some(parameters))),
            Some(_) | None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Reads the members of a storage that combines several.
fn members<T: Plain>(name: &str, parameters: Option<&Value>) -> Result<Vec<T>, String> {
    match parameters {
        Some(it) if measure::items(it) > ITEMS_MAX => {
            Err(format!("{name} has more than {ITEMS_MAX} storages and parameters"))
        }
        Some(Value::Array(items)) if !items.is_empty() => items.iter().map(T::from_json).collect(),
        Some(_) | None => Err(format!("{name} expects a list of storages")),
    }
}

/// Returns a field as users write it: dotted, or a list if a key contains dots.
fn shown(field: &[String]) -> Value {
    if field.iter().any(|it| it.contains('.')) { json!(field) } else { field.join(".").into() }
}

/// The parameters of one storage. Each is taken once; [`Parameters::end`] rejects those that remain.
struct Parameters {
    storage: &'static str,
    given: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Parameters {
    fn new(storage: &'static str, given: Option<&Value>) -> Result<Self, String> {
        let given = match given {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(fields)) => fields.clone(),
            Some(Value::Array(items)) if items.is_empty() => Map::new(),
            Some(other) => {
                return Err(format!("{storage} expects named parameters, got {other}"));
            }
        };
        Ok(Parameters { storage, given, known: Vec::new() })
    }

    fn annotations_progress(&mut self) -> Result<AnnotationsProgress, String> {
        let default = AnnotationsProgress::default();
        Ok(AnnotationsProgress {
            prefix: self.prefix()?,
            verbose: self.flag("verbose", default.verbose)?,
            touch_key: self.key("touch_key", default.touch_key)?,
            v1: self.flag("v1", default.v1)?,
        })
    }

    fn status_progress(&mut self) -> Result<StatusProgress, String> {
        let name = self.name()?;
        Ok(StatusProgress {
            field: self.field("field", PROGRESS_FIELD, &name)?,
            touch_field: self.field("touch_field", TOUCH_FIELD, &name)?,
        })
    }

    /// Takes a parameter. Null counts as absent.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.shift_remove(name).filter(|it| !it.is_null())
    }

    fn text(&mut self, name: &'static str, default: String) -> Result<String, String> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.refuse(name, &format!("expected a string, got {other}"))),
        }
    }

    fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.refuse(name, &format!("expected true or false, got {other}"))),
        }
    }

    fn prefix(&mut self) -> Result<String, String> {
        let prefix = self.text("prefix", AnnotationsProgress::default().prefix)?;
        if prefix.is_empty() {
            return Err("Annotations storages must be prefixed.".to_owned());
        }
        check::domain(&prefix).map_err(|problem| self.refuse("prefix", &problem)).map(|()| prefix)
    }

    /// Takes a record key, which becomes part of an annotation name.
    fn key(&mut self, name: &'static str, default: String) -> Result<String, String> {
        let key = self.text(name, default)?;
        let annotation = annotations::name_v2("", &key);
        if check::name(annotation.trim_start_matches('/')) {
            Ok(key)
        } else {
            let problem = format!("expected a name such as \"last-handled\", got {key:?}");
            Err(self.refuse(name, &problem))
        }
    }

    /// Takes the part of the field names that distinguishes operators.
    fn name(&mut self) -> Result<String, String> {
        let name = self.text("name", "kopf".into())?;
        let is_key = !name.is_empty() && !name.contains('.');
        if is_key { Ok(name) } else { Err(self.refuse("name", "expected a name without dots")) }
    }

    fn field(
        &mut self,
        parameter: &'static str,
        default: &str,
        name: &str,
    ) -> Result<FieldPath, String> {
        let field = match self.take(parameter) {
            None => default.replace("{name}", name).into(),
            Some(Value::String(text)) => text.replace("{name}", name).into(),
            Some(other) => other,
        };
        self.path(parameter, &field)
    }

    fn ignored_fields(&mut self) -> Result<Vec<FieldPath>, String> {
        match self.take("ignored_fields") {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|it| self.path("ignored_fields", it)).collect()
            }
            Some(Value::Object(fields)) if fields.is_empty() => Ok(Vec::new()),
            Some(other) => {
                let problem = format!("expected a list of fields, got {other}");
                Err(self.refuse("ignored_fields", &problem))
            }
        }
    }

    fn path(&self, parameter: &str, field: &Value) -> Result<FieldPath, String> {
        let path = fields::parse(field).map_err(|it| self.refuse(parameter, &it.to_string()))?;
        if path.is_empty() || path.iter().any(String::is_empty) {
            let problem = format!("expected a field such as \"status.progress\", got {field}");
            return Err(self.refuse(parameter, &problem));
        }
        Ok(path)
    }

    /// Checks that no parameter remains.
    fn end(self) -> Result<(), String> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let hint = nearest(name, self.known.iter().copied())
            .map_or_else(String::new, |it| format!("; did you mean `{it}`?"));
        Err(format!("{} has no parameter `{name}`{hint}", self.storage))
    }

    fn refuse(&self, parameter: &str, problem: &str) -> String {
        format!("{}, parameter `{parameter}`: {problem}", self.storage)
    }
}
