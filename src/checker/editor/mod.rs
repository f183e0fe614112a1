//! Responds to an editor about a script that is being typed: mistakes, completions, documentation, definitions, tests.
//!
//! Nothing is executed. Code that cannot be parsed is left out, so that an incomplete line affects only itself.

mod messages;
mod spot;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeSet, path::PathBuf, thread};

use self::messages::CURSOR;
pub use self::messages::{Completion, CompletionKind, Definition, EditorRequest, EditorResponse};
use super::{
    BYTES_MAX, STACK, finding,
    infer::{self, Program, SourceFacts, SourceText},
    parse::{Draft, Unparsed, parse, parse_draft},
    schemas::Knowledge,
    tree::{Expr, ExprKind, Stmt, SyntaxTree},
};
use crate::scripting::{Language, Source, Token, TokenKind, lex, shown_module};
use crate::sorted::CollectSorted as _;

/// Maximum number of repairs of a source: each one completes a string or a comment without an end.
const REPAIRS_MAX: usize = 10;
/// Maximum depth of modules that load modules.
const ROUNDS_MAX: usize = 16;

/// Responds to a request about a script. Its modules are read from their usual location.
pub fn respond(source: &Source, knowledge: &Knowledge, request: EditorRequest) -> EditorResponse {
    let work = || response(source, knowledge, request);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("kopf-check".into()).stack_size(STACK);
        let spawned = thread.spawn_scoped(scope, work);
        spawned
            .ok()
            .and_then(|it| it.join().ok())
            .unwrap_or_else(|| unchecked("the checker failed"))
    })
}

fn unchecked(why: &str) -> EditorResponse {
    EditorResponse { unchecked: Some(format!("not checked: {why}")), ..EditorResponse::default() }
}

/// The reason why a source is not checked.
struct Unchecked(&'static str);

/// One source with its name.
struct NamedSource {
    file: String,
    text: String,
}

fn response(source: &Source, knowledge: &Knowledge, request: EditorRequest) -> EditorResponse {
    if source.text.len() > BYTES_MAX {
        return unchecked(&format!("the file is larger than {} MiB", BYTES_MAX >> 20));
    }
    let language = Language::of_file(&source.name);
    let (text, at) = match request {
        EditorRequest::Completions(at) => with_cursor(&source.text, at),
        EditorRequest::Documentation(at) | EditorRequest::Definition(at) => {
            (Cow::Borrowed(source.text.as_str()), Some(at))
        }
        EditorRequest::Findings | EditorRequest::Tests => {
            (Cow::Borrowed(source.text.as_str()), None)
        }
    };
    let mut parts = vec![NamedSource { file: String::new(), text: text.into_owned() }];
    let mut asked = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        match look(source, &parts, knowledge, (request, at, language)) {
            Err(Unchecked(why)) => return unchecked(why),
            Ok((response, missing)) => {
                let new: Vec<PathBuf> =
                    missing.into_iter().filter(|it| !asked.contains(it)).collect();
                if new.is_empty() {
                    return response;
                }
                for file in new {
                    if let Ok(text) = source.modules.read(&file, &source.name) {
                        parts.push(NamedSource {
                            file: file.display().to_string(),
                            text: text.to_string(),
                        });
                    }
                    asked.insert(file);
                }
            }
        }
    }
    unchecked("its modules are nested too deeply")
}

/// Adds a name at the cursor, unless there is one.
fn with_cursor(text: &str, at: usize) -> (Cow<'_, str>, Option<usize>) {
    let Some((before, after)) = text.split_at_checked(at) else {
        return (Cow::Borrowed(text), None);
    };
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if before.ends_with(is_word) {
        return (Cow::Borrowed(text), Some(at));
    }
    (Cow::Owned(format!("{before}{CURSOR}{after}")), Some(at))
}

type AtCursor = (EditorRequest, Option<usize>, Language);

fn look(
    source: &Source,
    parts: &[NamedSource],
    knowledge: &Knowledge,
    (request, at, language): AtCursor,
) -> Result<(EditorResponse, BTreeSet<PathBuf>), Unchecked> {
    let mut response = EditorResponse::default();
    let repaired: Vec<(String, Option<usize>)> =
        parts.iter().map(|it| repaired(language, &it.text)).collect();
    let mut texts = Vec::new();
    for (part, (text, cut)) in parts.iter().zip(&repaired) {
        // Parsed as the engine does, if possible.
        let draft = match parse(language, text) {
            Ok(tree) => Draft { tree, broken: Vec::new(), lost: Vec::new() },
            Err(_) => parse_draft(language, text).map_err(|why| match why {
                Unparsed::Deep => Unchecked("the code is nested too deeply"),
                Unparsed::At(_) => Unchecked("the syntax is not supported"),
            })?,
        };
        let Draft { tree, mut broken, lost } = draft;
        if part.file.is_empty() {
            broken.extend(*cut);
            broken.sort_unstable();
            response.broken = broken;
            if request == EditorRequest::Tests {
                response.tests = tests(&tree);
                return Ok((response, BTreeSet::new()));
            }
        }
        texts.push((SourceText { file: part.file.clone(), language, content: text, tree }, lost));
    }
    let too_long = |_| Unchecked("the check takes too many steps");
    let files = parts.iter().map(|it| it.file.clone()).collect();
    let mut program = Program { files, knowledge: knowledge.clone(), ..Program::default() };
    program.globals.extend(texts.iter().flat_map(|(_, lost)| lost.iter().copied()));
    let mut all: Vec<SourceFacts<'_>> = Vec::new();
    for (text, _) in &texts {
        let (facts, exports) = infer::facts(text, &program).map_err(too_long)?;
        program.fields.extend(&facts.fields);
        program.globals.extend(facts.globals.keys());
        program.is_dynamic |= facts.is_dynamic;
        program.exports.push(exports);
        all.push(facts);
    }
    let (Some((text, _)), Some(facts)) = (texts.first(), all.first()) else {
        return Err(Unchecked("the file is empty"));
    };
    let missing = all.iter().flat_map(|it| it.missing.iter().cloned()).collect_set();
    if request == EditorRequest::Findings {
        let raw = infer::findings(text, &program, facts).map_err(too_long)?;
        response.findings = finding::placed(&source.name, text.content, raw);
        return Ok((response, missing));
    }
    let Some(at) = at else { return Ok((response, missing)) };
    let Some(spot) = infer::spot_at(text, &program, facts, at).map_err(too_long)? else {
        return Ok((response, missing));
    };
    let context = spot::Context { texts: &texts, program: &program };
    match request {
        EditorRequest::Completions(_) => response.completions = spot::completions(&spot, &context),
        EditorRequest::Documentation(_) => {
            response.documentation = spot::documentation(&spot, &context);
        }
        EditorRequest::Definition(_) => {
            let found = spot::definition(&spot, &context);
            response.definition = found.map(|(file, at)| definition(source, parts, (&file, at)));
        }
        EditorRequest::Findings | EditorRequest::Tests => {}
    }
    Ok((response, missing))
}

fn definition(source: &Source, parts: &[NamedSource], (file, at): (&str, usize)) -> Definition {
    let part = parts.iter().find(|it| it.file == file);
    Definition {
        module: (!file.is_empty()).then(|| shown_module(&source.name, file.as_ref()).into()),
        at,
        text: part.map(|it| it.text.clone()).unwrap_or_default(),
    }
}

/// Replaces strings and comments without an end by spaces. Returns the source and the offset of the first one.
fn repaired(language: Language, text: &str) -> (String, Option<usize>) {
    let (mut text, mut first) = (text.to_owned(), None);
    for _ in 0..REPAIRS_MAX {
        let Some(at) = unclosed(language, &text) else { break };
        first = Some(first.map_or(at, |it: usize| it.min(at)));
        let rest = text.get(at..).unwrap_or_default();
        let len = rest.find('\n').unwrap_or(rest.len());
        text.replace_range(at..at + len, &" ".repeat(len));
    }
    (text, first)
}

/// Returns where a string begins that has no end in its line, or a comment without an end.
fn unclosed(language: Language, text: &str) -> Option<usize> {
    let closing: &[&str] = match language {
        Language::Lua => &["", "\"", "'", "`", "]]", "]=]", "}`"],
        Language::Rhai => &["", "\"", "'", "`", "*/", "}`"],
    };
    for (tried, end) in closing.iter().enumerate() {
        let closed = format!("{text}{end}");
        let Some(tokens) = lex(language, &closed) else { continue };
        let is_open = |text: &str| {
            text.starts_with(['"', '\''])
                && text.contains('\n')
                && !text.contains("\\\n")
                && !text.contains("\\z")
        };
        let found = tokens.iter().find(|it| it.kind == TokenKind::Text && is_open(it.text));
        if found.is_some() || tried == 0 {
            return found.map(|it| it.at);
        }
        // Only the end was missing: that of the last string, or that of a comment, which is not a token.
        let is_begin = |it: &&Token<'_>| {
            let is_text = it.kind == TokenKind::Text && it.text.starts_with(['"', '\'', '`', '[']);
            is_text && it.at < text.len()
        };
        let after = tokens.last().map_or(0, |it| it.at + it.text.len());
        let begin = tokens.iter().rev().find(is_begin).filter(|_| after > text.len());
        let sign = if *end == "*/" { "/*" } else { "--" };
        let comment = text.get(after..).and_then(|it| it.find(sign));
        let line = text.rfind('\n').map_or(0, |it| it + 1);
        return Some(begin.map(|it| it.at).or(comment.map(|it| it + after)).unwrap_or(line));
    }
    None
}

/// Returns the tests that the top level declares.
fn tests(tree: &SyntaxTree<'_>) -> Vec<(usize, String)> {
    let test = |statement: &Stmt<'_>| {
        let Stmt::Expr(Expr { kind: ExprKind::Call(function, arguments), span }) = statement else {
            return None;
        };
        let ExprKind::Member(of, name, _) = &function.kind else { return None };
        let is_test = name.text == "test" && matches!(of.kind, ExprKind::Name("kopf"));
        let shown = arguments.first().and_then(Expr::literal).filter(|_| is_test)?;
        Some((span.at, shown.to_owned()))
    };
    tree.body.iter().filter_map(test).collect()
}
