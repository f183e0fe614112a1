//! The requests of the editor about one document.

use std::path::Path;

use lsp_server::ErrorCode;
use lsp_types::{
    CodeLens, CodeLensParams, Command, CompletionItem, CompletionItemKind, CompletionParams,
    Documentation, GotoDefinitionParams, Hover, HoverContents, HoverParams, Location,
    MarkupContent, MarkupKind, Range, TextDocumentPositionParams, Uri,
};
use serde_json::{Value, json};
use url::Url;

use super::{
    convert,
    documents::{Documents, parse},
};
use crate::checker::editor::{Completion, CompletionKind, EditorRequest, EditorResponse};

type RequestError = (ErrorCode, String);

/// Handles a request of the editor.
pub(super) fn respond(
    documents: &mut Documents,
    method: &str,
    params: Value,
) -> Result<Value, RequestError> {
    let invalid = |it: String| (ErrorCode::InvalidParams, it);
    match method {
        "textDocument/completion" => {
            let params: CompletionParams = parse(params).map_err(invalid)?;
            let response =
                at(documents, &params.text_document_position, EditorRequest::Completions)?;
            value(response.completions.into_iter().map(item).collect::<Vec<_>>())
        }
        "textDocument/hover" => {
            let params: HoverParams = parse(params).map_err(invalid)?;
            let place = params.text_document_position_params;
            let found = at(documents, &place, EditorRequest::Documentation)?.documentation;
            let text = documents.find(&place.text_document.uri).map_or("", |it| &it.text);
            value(found.map(|(markdown, at, len)| Hover {
                contents: HoverContents::Markup(markup(markdown)),
                range: Some(convert::range(text, at, len)),
            }))
        }
        "textDocument/definition" => {
            let params: GotoDefinitionParams = parse(params).map_err(invalid)?;
            let place = params.text_document_position_params;
            let found = at(documents, &place, EditorRequest::Definition)?.definition;
            value(found.and_then(|it| {
                let uri = match &it.module {
                    None => place.text_document.uri,
                    Some(path) => uri_of(path)?,
                };
                Some(Location { uri, range: convert::range(&it.text, it.at, 0) })
            }))
        }
        "textDocument/codeLens" => {
            let params: CodeLensParams = parse(params).map_err(invalid)?;
            value(lenses(documents, &params.text_document.uri)?)
        }
        _ => Err((ErrorCode::MethodNotFound, format!("no method {method}"))),
    }
}

fn value(it: impl serde::Serialize) -> Result<Value, RequestError> {
    serde_json::to_value(it).map_err(|it| (ErrorCode::InternalError, it.to_string()))
}

fn not_open() -> RequestError {
    (ErrorCode::InvalidParams, "the file is not open, or it is too large".to_owned())
}

/// Sends a request about a position to the checker.
fn at(
    documents: &mut Documents,
    place: &TextDocumentPositionParams,
    request: fn(usize) -> EditorRequest,
) -> Result<EditorResponse, RequestError> {
    let uri = &place.text_document.uri;
    let document = documents.find(uri).ok_or_else(not_open)?;
    let at = convert::offset(&document.text, place.position);
    documents.respond(uri, request(at)).ok_or_else(not_open)
}

fn uri_of(path: &Path) -> Option<Uri> {
    Url::from_file_path(path).ok()?.as_str().parse().ok()
}

fn markup(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

fn item(it: Completion) -> CompletionItem {
    let kind = match it.kind {
        CompletionKind::Function => CompletionItemKind::FUNCTION,
        CompletionKind::Variable => CompletionItemKind::VARIABLE,
        CompletionKind::Field => CompletionItemKind::FIELD,
        CompletionKind::Module => CompletionItemKind::MODULE,
        CompletionKind::Resource => CompletionItemKind::CLASS,
    };
    let doc = (!it.doc.is_empty()).then(|| Documentation::MarkupContent(markup(it.doc)));
    let detail = (!it.detail.is_empty()).then_some(it.detail);
    CompletionItem {
        label: it.label,
        kind: Some(kind),
        detail,
        documentation: doc,
        ..CompletionItem::default()
    }
}

/// Returns a lens for each test: the command has the file and the name as arguments.
fn lenses(documents: &mut Documents, uri: &Uri) -> Result<Vec<CodeLens>, RequestError> {
    let response = documents.respond(uri, EditorRequest::Tests).ok_or_else(not_open)?;
    let document = documents.find(uri).ok_or_else(not_open)?;
    let file = document.path.display().to_string();
    let lens = |(at, name): (usize, String)| {
        let range: Range = convert::range(&document.text, at, 0);
        let command = Command {
            title: "run this test".to_owned(),
            command: "kopf.runTest".to_owned(),
            arguments: Some(vec![json!(file), json!(name)]),
        };
        CodeLens { range, command: Some(command), data: None }
    };
    Ok(response.tests.into_iter().map(lens).collect())
}
