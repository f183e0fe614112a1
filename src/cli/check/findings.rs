//! The findings about scripts: their declarations, errors and warnings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::schemas;
use crate::checker::{self, Finding, Knowledge, ObjectKind, Rule};
use crate::cli::{
    options::{Note, RunOptions},
    report::Report,
    scripts::{self, operator_warnings},
};
use crate::logic::{
    access::grants::{Access, Permission},
    admission::{configuration, own_writes},
    change::registry::Registry,
    configure::TABLE,
    handlers::{
        description::describe,
        handler::{Category, Criterion, Handler, Kind},
    },
    object::resource::Resource,
};
use crate::scripting::{LoadError, Modules, ScriptHost, Source};
use crate::settings::Settings;
use crate::sorted;

/// The version of the JSON format. New keys may be added; if the meaning of a key changes, this number does.
const VERSION: u32 = 1;

/// All findings about the scripts.
pub(super) struct CheckFindings {
    pub(super) scripts: Vec<CheckedScript>,
    pub(super) errors: Vec<LoadError>,
    pub(super) warnings: Vec<String>,
    /// Mistakes inside of functions, including those that are errors.
    pub(super) mistakes: Vec<Finding>,
    /// Includes the limits of each script.
    pub(super) settings: Settings,
}

/// One script with its handlers, if it can be loaded.
pub(super) struct CheckedScript {
    pub(super) name: String,
    /// `None` if it cannot be loaded.
    pub(super) handlers: Option<Vec<Handler>>,
    pub(super) access: Access,
    modules: Modules,
}

impl CheckFindings {
    /// Loads the scripts one by one, and collects the findings about them.
    pub(super) async fn of(
        options: &RunOptions,
        sources: Vec<Source>,
        kinds: Arc<Vec<ObjectKind>>,
    ) -> Self {
        let mut findings = CheckFindings::empty(options);
        let terms = scripts::terms(options);
        let (mut all, mut lifecycles) = (Vec::new(), Vec::new());
        for source in &sources {
            let prepared = ScriptHost::new(terms.clone()).prepare(vec![source.clone()]).await;
            let handlers = match prepared {
                Ok(prepared) => {
                    lifecycles.extend(prepared.lifecycle.map(|_| source.name.as_str()));
                    all.extend(prepared.handlers.iter().cloned());
                    Some(prepared.handlers)
                }
                Err(errors) => {
                    findings.errors.extend(errors);
                    None
                }
            };
            findings.scripts.push(CheckedScript {
                name: source.name.clone(),
                handlers,
                access: options.grants.of(&source.name),
                modules: source.modules.clone(),
            });
        }
        findings.errors.extend(duplicates(&all, &sources));
        findings.look_inside(&sources, &all, kinds);
        let names: Vec<_> = sources.iter().map(|it| it.name.as_str()).collect();
        // A script that cannot be loaded may declare any number of handlers.
        let known =
            if findings.scripts.iter().all(|it| it.handlers.is_some()) { all.len() } else { 1 };
        findings.warnings.extend(operator_warnings(&options.grants, &names, known));
        if let [_, .., last] = lifecycles.as_slice() {
            let told = "Several scripts set the default lifecycle; the last one is used";
            findings.warnings.push(format!("{told}: {last}."));
        }
        findings.warnings.extend(all.iter().filter_map(never_called));
        let not_allowed = |rule: Rule| {
            let sources = &sources;
            all.iter().filter(move |it| !checker::is_allowed(sources, &it.location, rule))
        };
        if options.settings.persistence.plain_secrets {
            let handlers = not_allowed(Rule::PlainSecrets);
            findings.warnings.extend(handlers.filter_map(stores_secrets));
        }
        if options.settings.admission.service.is_none() {
            // With a service, the namespace of the operator is excluded.
            let handlers = not_allowed(Rule::OwnWrites);
            findings.warnings.extend(handlers.filter_map(reviews_own_writes));
        }
        findings
    }

    /// Searches for mistakes inside of functions.
    fn look_inside(&mut self, sources: &[Source], all: &[Handler], kinds: Arc<Vec<ObjectKind>>) {
        let is_loaded = |name: &str| {
            let mut loaded = self.scripts.iter().filter(|it| it.handlers.is_some());
            loaded.any(|it| it.name == name)
        };
        let indexes = all.iter().filter(|it| it.kind == Kind::Index);
        let indexes = indexes.map(|it| it.id.to_string()).collect();
        let is_complete = self.scripts.iter().all(|it| it.handlers.is_some());
        let knowledge = Knowledge {
            indexes: is_complete.then(|| Arc::new(indexes)),
            kinds,
            definitions: Some(schemas::definition),
            access: None,
        };
        let mut unchecked = Vec::new();
        for source in sources {
            let access = self.scripts.iter().find(|it| it.name == source.name);
            let access = access.map(|it| Arc::new(it.access.clone()));
            let knowledge = Knowledge { access, ..knowledge.clone() };
            let found = checker::check(std::slice::from_ref(source), &knowledge);
            // The error of loading already reports what is wrong.
            unchecked.extend(found.unchecked.into_iter().filter(|_| is_loaded(&source.name)));
            self.mistakes.extend(found.all);
        }
        sorted::sort_by(&mut self.mistakes, |a, b| a.place().cmp(&b.place()));
        self.mistakes.dedup();
        let is_known = |it: &Finding| {
            let same =
                |error: &LoadError| (&error.file, error.line) == (&it.error.file, it.error.line);
            self.errors.iter().any(same)
        };
        let known: Vec<bool> = self.mistakes.iter().map(is_known).collect();
        let mut known = known.into_iter();
        self.mistakes.retain(|_| !known.next().unwrap_or_default());
        let strict = self.settings.reload.strict;
        let errors = self.mistakes.iter().filter(|it| it.level().rejects(strict));
        self.errors.extend(errors.map(|it| it.error.clone()));
        self.warnings.extend(unchecked);
    }

    /// Returns the mistakes that are not errors.
    pub(super) fn lesser(&self) -> impl Iterator<Item = &Finding> {
        let strict = self.settings.reload.strict;
        self.mistakes.iter().filter(move |it| !it.level().rejects(strict))
    }

    /// Returns findings for scripts that cannot be read.
    pub(super) fn of_report(report: &Report, options: &RunOptions) -> Self {
        let mut findings = CheckFindings::empty(options);
        findings.errors.push(LoadError {
            file: String::new(),
            line: None,
            columns: None,
            source_line: None,
            message: report.message.clone(),
            hint: report.hint.clone(),
        });
        findings
    }

    fn empty(options: &RunOptions) -> Self {
        let mut warnings: Vec<_> = options.notes.iter().filter_map(warning).collect();
        if !options.scripts.maps.is_empty() {
            warnings.push(
                "Scripts in ConfigMaps are not checked, because this needs a cluster.".into(),
            );
        }
        CheckFindings {
            scripts: Vec::new(),
            errors: Vec::new(),
            warnings,
            mistakes: Vec::new(),
            settings: options.settings.clone(),
        }
    }

    /// Returns whether an operator with these scripts would start.
    pub(super) fn is_usable(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the warnings as strings, each in one line.
    fn all_warnings(&self) -> Vec<String> {
        let line = |it: &Finding| {
            let (file, line, column) = it.place();
            format!("{file}:{line}:{column}: {}", it.error.message)
        };
        self.warnings.iter().cloned().chain(self.lesser().map(line)).collect()
    }

    /// Returns whether there are conversion handlers.
    pub(super) fn converts(&self) -> bool {
        let mut handlers = self.scripts.iter().filter_map(|it| it.handlers.as_ref()).flatten();
        handlers.any(|it| it.kind == Kind::Convert)
    }

    /// Returns the permissions that the scripts need and do not have, by option.
    pub(super) fn suggested_grants(&self) -> BTreeMap<&'static str, BTreeSet<&str>> {
        let mut grants: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (option, value) in self.mistakes.iter().filter_map(|it| it.grant.as_ref()) {
            grants.entry(*option).or_default().insert(value.as_str());
        }
        grants
    }

    /// Returns the findings as JSON.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "version": VERSION,
            "ok": self.is_usable(),
            "scripts": self.scripts.iter().map(CheckedScript::to_json).collect::<Value>(),
            "limits": limits(&self.settings),
            "errors": self.errors.iter().map(of_error).collect::<Value>(),
            "warnings": self.all_warnings(),
            "suggestedGrants": self.suggested_grants(),
            "mistakes": self.mistakes.iter().map(of_mistake).collect::<Value>(),
        })
    }
}

fn of_mistake(mistake: &Finding) -> Value {
    let mut value = of_error(&mistake.error);
    if let Value::Object(fields) = &mut value {
        fields.insert("rule".to_owned(), mistake.rule.name().into());
    }
    value
}

impl CheckedScript {
    fn to_json(&self) -> Value {
        let handlers = self.handlers.iter().flatten().map(|it| Value::Object(described(it)));
        let modules = self.modules.taken().into_iter().filter(|it| it.digest.is_some());
        let grants = Permission::ALL.into_iter();
        let grants = grants.map(|it| (it.option().to_owned(), self.access.granted(it).into()));
        json!({
            "name": self.name,
            "ok": self.handlers.is_some(),
            "handlers": handlers.collect::<Value>(),
            "modules": modules.map(|it| it.name.display().to_string()).collect::<Value>(),
            "grants": grants.collect::<Map<_, _>>(),
        })
    }
}

/// Returns the description of a handler, with its webhook.
pub(super) fn described(handler: &Handler) -> Map<String, Value> {
    let mut fields = describe(handler);
    let selected = fields.get("resource").and_then(Value::as_str).unwrap_or_default();
    let webhook = configuration::summary(handler, selected);
    fields.extend(webhook.map(|it| ("webhook".to_owned(), Value::Object(it))));
    fields
}

/// Returns the warning about a webhook without which the operator cannot start.
fn reviews_own_writes(handler: &Handler) -> Option<String> {
    let (written, location) = (own_writes::reviewed(handler)?, &handler.location);
    Some(format!(
        "{handler} ({location}) reviews what the operator itself writes: {written}. While no replica responds, these requests fail. \
         Exclude its namespace with `namespace_selector`, or set `ignore_failures`."
    ))
}

/// Returns the warning about a handler of changes of Secrets, whose values are stored in annotations.
fn stores_secrets(handler: &Handler) -> Option<String> {
    let selector = handler.selector.as_ref();
    let is_of_secrets = selector.is_some_and(|it| it.check(&Resource::secrets(), &|_, _| true));
    (is_of_secrets && handler.kind.category() == Category::Changing).then(|| {
        let (id, place) = (&handler.id, &handler.location);
        format!(
            "{place}: the handler '{id}' stores values of Secrets unmasked in annotations and logs them, \
             because persistence.plain_secrets is set."
        )
    })
}

fn warning(note: &Note) -> Option<String> {
    match note {
        Note::Warning(text) => Some(text.clone()),
        Note::Info(_) => None,
    }
}

/// Returns the limits by `GROUP.NAME`.
fn limits(settings: &Settings) -> Map<String, Value> {
    let is_limit =
        |group: &str, name: &str| group == "sandbox" || (group, name) == ("execution", "cpu_limit");
    let limits = TABLE.iter().filter(|it| is_limit(it.group, it.name));
    limits.map(|it| (format!("{}.{}", it.group, it.name), it.get(settings))).collect()
}

fn of_error(error: &LoadError) -> Value {
    let LoadError { file, line, columns, source_line, message, hint } = error;
    let file = (!file.is_empty()).then_some(file);
    let (column, length) = (columns.map(|it| it.first), columns.map(|it| it.length));
    json!({
        "file": file, "line": line, "column": column, "length": length, "source": source_line,
        "message": message, "hint": hint,
    })
}

/// Returns errors for duplicate ids, also across scripts, at the second declaration.
fn duplicates(handlers: &[Handler], sources: &[Source]) -> Vec<LoadError> {
    let at = |duplicate: crate::logic::change::registry::DuplicateId| {
        let place = duplicate.second.rsplit_once(':');
        let place = place.and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let (file, line) = place.unwrap_or((&duplicate.second, 0));
        let source = sources.iter().find(|it| it.name == file);
        let lines = source.map(|it| it.text.lines());
        let number = usize::try_from(line).ok().and_then(|it| it.checked_sub(1));
        LoadError {
            file: file.to_owned(),
            line: (line > 0).then_some(line),
            columns: None,
            source_line: lines
                .zip(number)
                .and_then(|(mut it, number)| it.nth(number))
                .map(str::to_owned),
            message: duplicate.to_string(),
            hint: None,
        }
    };
    Registry::duplicates(handlers).map(at).collect()
}

/// Returns a warning for a handler whose filters contradict each other.
fn never_called(handler: &Handler) -> Option<String> {
    let is_unchanged = match (&handler.filters.old, &handler.filters.new) {
        (Some(Criterion::Equals(old)), Some(Criterion::Equals(new))) => old == new,
        (Some(Criterion::Absent), Some(Criterion::Absent)) => true,
        (Some(_) | None, Some(_) | None) => false,
    };
    let (id, place) = (&handler.id, &handler.location);
    is_unchanged
        .then(|| format!("{place}: the handler '{id}' is never called: `old` and `new` are equal."))
}
