//! The documents that are open in the editor.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use lsp_types::{
    Diagnostic, DiagnosticSeverity, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, NumberOrString, PublishDiagnosticsParams, Range, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::convert;
use crate::checker::{
    DefinitionLookup, Finding, Knowledge, ObjectKind, RuleLevel,
    editor::{EditorRequest, EditorResponse, respond},
};
use crate::scripting::{Modules, Source};

/// Maximum number of open documents.
const DOCUMENTS_MAX: usize = 200;
/// Larger documents are not kept: the checker rejects them.
const BYTES_MAX: usize = 1 << 20;

/// The sources of the schemas of objects.
#[derive(Clone, Copy, Debug)]
pub struct Schemas {
    /// Returns the kinds that scripts in a directory can select.
    pub kinds: fn(&Path) -> Vec<ObjectKind>,
    /// Finds the definitions that their schemas refer to.
    pub definitions: DefinitionLookup,
}

/// One document that the editor has opened.
pub(super) struct EditorDocument {
    uri: Uri,
    /// Empty if it is not in a file.
    pub(super) path: PathBuf,
    pub(super) text: String,
    version: i32,
    is_large: bool,
}

/// All documents that the editor has opened, and what is known about their objects.
pub(super) struct Documents {
    schemas: Schemas,
    all: BTreeMap<String, EditorDocument>,
    /// Documents whose mistakes were not reported yet.
    changed: BTreeSet<String>,
    /// The schemas of the objects of a directory.
    knowledge: BTreeMap<PathBuf, Knowledge>,
}

pub(super) fn parse<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|it| it.to_string())
}

impl Documents {
    pub(super) fn new(schemas: Schemas) -> Self {
        Documents {
            schemas,
            all: BTreeMap::new(),
            changed: BTreeSet::new(),
            knowledge: BTreeMap::new(),
        }
    }

    pub(super) fn open(&mut self, params: Value) -> Result<(), String> {
        let params: DidOpenTextDocumentParams = parse(params)?;
        let it = params.text_document;
        let key = it.uri.as_str().to_owned();
        if self.all.len() >= DOCUMENTS_MAX && !self.all.contains_key(&key) {
            return Err(format!("more than {DOCUMENTS_MAX} files are open"));
        }
        self.forget_schemas();
        let path = path_of(&it.uri).unwrap_or_else(|| PathBuf::from(it.uri.path().as_str()));
        let mut document =
            EditorDocument { uri: it.uri, path, text: String::new(), version: 0, is_large: false };
        document.set(it.text, it.version);
        self.all.insert(key.clone(), document);
        self.changed.insert(key);
        Ok(())
    }

    pub(super) fn change(&mut self, params: Value) -> Result<(), String> {
        let params: DidChangeTextDocumentParams = parse(params)?;
        let key = params.text_document.uri.as_str().to_owned();
        let document = self.all.get_mut(&key).ok_or("the file is not open")?;
        for change in params.content_changes {
            if change.range.is_some() {
                return Err("only changes of the whole file are supported".to_owned());
            }
            document.set(change.text, params.text_document.version);
        }
        self.changed.insert(key);
        Ok(())
    }

    /// Removes a document. Returns the notification that removes its mistakes.
    pub(super) fn close(&mut self, params: Value) -> Result<Option<Value>, String> {
        let params: DidCloseTextDocumentParams = parse(params)?;
        let key = params.text_document.uri.as_str();
        self.changed.remove(key);
        let removed = self.all.remove(key);
        Ok(removed.and_then(|it| notification(it.uri, Vec::new(), None)))
    }

    /// Removes all schemas, so that CRDs are read again.
    pub(super) fn forget_schemas(&mut self) {
        self.knowledge.clear();
        self.changed.extend(self.all.keys().cloned());
    }

    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Returns an open document.
    pub(super) fn find(&self, uri: &Uri) -> Option<&EditorDocument> {
        self.all.get(uri.as_str())
    }

    /// Sends a request about an open document to the checker.
    pub(super) fn respond(&mut self, uri: &Uri, request: EditorRequest) -> Option<EditorResponse> {
        let document = self.all.get(uri.as_str()).filter(|it| !it.is_large)?;
        let source = Source {
            name: document.path.display().to_string(),
            text: document.text.clone(),
            modules: Modules::beside(&document.path),
        };
        let directory = document.path.parent().unwrap_or(Path::new("")).to_owned();
        let Schemas { kinds, definitions } = self.schemas;
        let knowledge = self.knowledge.entry(directory).or_insert_with_key(|directory| Knowledge {
            kinds: Arc::new(kinds(directory)),
            definitions: Some(definitions),
            ..Knowledge::default()
        });
        Some(respond(&source, knowledge, request))
    }

    /// Returns the mistakes of the next document that has changed.
    pub(super) fn next_diagnostics(&mut self) -> Option<Value> {
        let key = self.changed.pop_first()?;
        let document = self.all.get(&key)?;
        let (uri, version) = (document.uri.clone(), document.version);
        if document.is_large {
            let message = format!("not checked: the file is larger than {} MiB", BYTES_MAX >> 20);
            return notification(uri, vec![whole(&message)], Some(version));
        }
        let response = self.respond(&uri, EditorRequest::Findings)?;
        let text = self.find(&uri).map_or("", |it| &it.text);
        let broken = response.broken.iter().map(|at| {
            let range = convert::range(text, at.saturating_sub(1), 1);
            diagnostic(range, DiagnosticSeverity::ERROR, "syntax", "invalid syntax")
        });
        let found = response.findings.iter().map(of_finding);
        let all = broken.chain(found).chain(response.unchecked.as_deref().map(whole)).collect();
        notification(uri, all, Some(version))
    }
}

impl EditorDocument {
    fn set(&mut self, text: String, version: i32) {
        self.is_large = text.len() > BYTES_MAX;
        self.text = if self.is_large { String::new() } else { text };
        self.version = version;
    }
}

fn path_of(uri: &Uri) -> Option<PathBuf> {
    Url::parse(uri.as_str()).ok()?.to_file_path().ok()
}

fn notification(uri: Uri, diagnostics: Vec<Diagnostic>, version: Option<i32>) -> Option<Value> {
    serde_json::to_value(PublishDiagnosticsParams { uri, diagnostics, version }).ok()
}

fn diagnostic(range: Range, severity: DiagnosticSeverity, code: &str, message: &str) -> Diagnostic {
    Diagnostic {
        range,
        severity: Some(severity),
        code: Some(NumberOrString::String(code.to_owned())),
        source: Some("kopf".to_owned()),
        message: message.to_owned(),
        ..Diagnostic::default()
    }
}

/// Returns a message about a document as a whole.
fn whole(message: &str) -> Diagnostic {
    diagnostic(Range::default(), DiagnosticSeverity::WARNING, "unchecked", message)
}

fn of_finding(finding: &Finding) -> Diagnostic {
    let severity = match finding.level() {
        RuleLevel::Name => DiagnosticSeverity::ERROR,
        RuleLevel::Type => DiagnosticSeverity::WARNING,
        RuleLevel::Lint => DiagnosticSeverity::INFORMATION,
    };
    let error = &finding.error;
    let (first, length) = error.columns.map_or((1, 1), |it| (it.first, it.length));
    let source = error.source_line.as_deref().unwrap_or_default();
    let range = convert::range_in_line(error.line.unwrap_or(1), source, first, length);
    let hint = error.hint.as_ref().map(|it| format!("\n{it}")).unwrap_or_default();
    diagnostic(range, severity, finding.rule.name(), &format!("{}{hint}", error.message))
}
