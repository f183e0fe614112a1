//! Finds mistakes inside of functions: names that do not exist, wrong arguments, literals of the wrong type.
//!
//! Scripts are loaded before they are checked, so their syntax is correct. The checker parses them, with a parser for each language
//! and one tree for both, and compares the names with the tables of the surface. It calls nothing and changes nothing. Scripts are
//! untrusted: the size of a source, the depth of its nesting and the steps of the checker are limited.

pub mod editor;
mod finding;
mod infer;
mod known;
mod parse;
mod rules;
mod schemas;
#[cfg(test)]
mod tests;
mod tree;
mod types;

use std::{collections::BTreeSet, sync::Arc, thread};

pub use self::{
    finding::Finding,
    rules::{Rule, RuleLevel},
    schemas::{DefinitionLookup, Knowledge, ObjectKind},
};
use self::{
    infer::{Exports, Program, SourceFacts, SourceText, TooLong},
    parse::Unparsed,
};
use crate::scripting::{Inspection, Language, LoadError, SCRIPT_BYTES_MAX, Source, shown_module};
use crate::sorted;

/// The logger of the checker.
const TARGET: &str = "kopf.scripts";

/// Larger sources are not checked.
const BYTES_MAX: usize = SCRIPT_BYTES_MAX;
/// Scripts with larger modules, all sources together, are not checked.
const ALL_BYTES_MAX: usize = 4 << 20;
/// The stack of the thread that checks: trees are as deep as their sources.
const STACK: usize = 64 << 20;

/// The findings in scripts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// All findings, sorted by position.
    pub all: Vec<Finding>,
    /// The sources that were not checked, with the reasons.
    pub unchecked: Vec<String>,
}

impl Findings {
    /// Returns the findings of a level.
    pub fn of(&self, level: RuleLevel) -> impl Iterator<Item = &Finding> {
        self.all.iter().filter(move |it| it.level() == level)
    }
}

/// Decides whether scripts are loaded. Returns the errors that reject them; the other findings are logged as warnings.
pub fn inspect(inspection: &Inspection) -> Result<(), Vec<LoadError>> {
    let indexes = Some(Arc::new(inspection.indexes.clone()));
    let knowledge = Knowledge { indexes, ..Knowledge::default() };
    let findings = check(&inspection.sources, &knowledge);
    for text in &findings.unchecked {
        tracing::warn!(target: TARGET, "{text}");
    }
    let (errors, warnings): (Vec<Finding>, Vec<Finding>) =
        findings.all.into_iter().partition(|it| it.level().rejects(inspection.strict));
    for warning in &warnings {
        let message = warning.error.to_string();
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        tracing::warn!(target: TARGET, "{message}");
    }
    if errors.is_empty() { Ok(()) } else { Err(with_way_out(errors)) }
}

/// Returns the errors; the last one has a hint how to load the script anyway.
fn with_way_out(findings: Vec<Finding>) -> Vec<LoadError> {
    let rules: BTreeSet<&str> = findings.iter().map(|it| it.rule.name()).collect();
    let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
    let mut errors: Vec<LoadError> = findings.into_iter().map(|it| it.error).collect();
    if let Some(last) = errors.last_mut() {
        let is_rhai = Language::of_file(&last.file) == Language::Rhai;
        let comment = if is_rhai { "//" } else { "--" };
        let way = format!(
            "to load it anyway, add the comment `{comment} kopf: allow({rules})` to the line, or set reload.strict to off"
        );
        last.hint = Some(match last.hint.take() {
            Some(hint) => format!("{hint}\nhint: {way}"),
            None => way,
        });
    }
    errors
}

/// Returns whether a comment allows this rule at a position such as `handlers.lua:12`.
pub fn is_allowed(sources: &[Source], place: &str, rule: Rule) -> bool {
    let Some((file, line)) = place.rsplit_once(':') else { return false };
    let source = sources.iter().find(|it| it.name == file);
    let line = line.parse().ok();
    source.zip(line).is_some_and(|(source, line)| finding::is_allowed(&source.text, line, rule))
}

/// Checks loaded scripts, together with the modules that they have loaded.
pub fn check(sources: &[Source], knowledge: &Knowledge) -> Findings {
    let work = || {
        let mut findings = Findings::default();
        for source in sources {
            of_source(source, knowledge, &mut findings);
        }
        findings
    };
    let mut findings = thread::scope(|scope| {
        let thread = thread::Builder::new().name("kopf-check".into()).stack_size(STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|_panic| unchecked("the checker failed")),
            Err(error) => unchecked(&format!("cannot start a thread for the checker: {error}")),
        }
    });
    sorted::sort_by(&mut findings.all, |a, b| a.place().cmp(&b.place()));
    findings.all.dedup();
    findings.unchecked.sort();
    findings.unchecked.dedup();
    findings
}

fn unchecked(why: &str) -> Findings {
    Findings { all: Vec::new(), unchecked: vec![format!("The scripts are not checked: {why}.")] }
}

/// The sources of a script: itself and its modules.
struct ScriptText {
    shown: String,
    file: String,
    text: Arc<str>,
}

fn of_source(source: &Source, knowledge: &Knowledge, findings: &mut Findings) {
    let language = Language::of_file(&source.name);
    let own = ScriptText {
        shown: source.name.clone(),
        file: String::new(),
        text: source.text.as_str().into(),
    };
    let modules = source.modules.texts().into_iter().map(|(file, text)| ScriptText {
        shown: shown_module(&source.name, &file),
        file: file.display().to_string(),
        text,
    });
    let texts: Vec<ScriptText> = std::iter::once(own).chain(modules).collect();
    let mut parsed = Vec::new();
    if texts.iter().map(|it| it.text.len()).sum::<usize>() > ALL_BYTES_MAX {
        let mib = ALL_BYTES_MAX >> 20;
        let why = format!("the script and its modules are larger than {mib} MiB in total");
        findings.unchecked.push(format!("{} is not checked: {why}.", source.name));
        return;
    }
    for text in &texts {
        match parsed_text(text, language) {
            Ok(tree) => parsed.push((text, tree)),
            Err(why) => {
                findings.unchecked.push(format!("{} is not checked: {why}.", text.shown));
                // Its definitions are unknown.
                return;
            }
        }
    }
    match of_texts(&parsed, knowledge) {
        Ok(found) => findings.all.extend(found),
        Err(TooLong) => findings
            .unchecked
            .push(format!("{} is not checked: the check takes too many steps.", source.name)),
    }
}

fn parsed_text(text: &ScriptText, language: Language) -> Result<SourceText<'_>, String> {
    if text.text.len() > BYTES_MAX {
        return Err(format!("the file is larger than {} MiB", BYTES_MAX >> 20));
    }
    match parse::parse(language, &text.text) {
        Ok(tree) => Ok(SourceText { file: text.file.clone(), language, content: &text.text, tree }),
        Err(Unparsed::Deep) => Err("the code is nested too deeply".to_owned()),
        Err(Unparsed::At(at)) => {
            let before = text.text.get(..at).unwrap_or(&text.text);
            Err(format!("the syntax of line {} is not supported", before.lines().count().max(1)))
        }
    }
}

fn of_texts(
    parsed: &[(&ScriptText, SourceText<'_>)],
    knowledge: &Knowledge,
) -> Result<Vec<Finding>, TooLong> {
    let files = parsed.iter().map(|(_, text)| text.file.clone()).collect();
    let mut program = Program {
        files,
        exports: Vec::new(),
        fields: BTreeSet::new(),
        globals: BTreeSet::new(),
        is_dynamic: false,
        knowledge: knowledge.clone(),
    };
    let known: Vec<(SourceFacts<'_>, Exports<'_>)> =
        parsed.iter().map(|(_, text)| infer::facts(text, &program)).collect::<Result<_, _>>()?;
    let mut all = Vec::new();
    for (facts, exports) in known {
        program.fields.extend(&facts.fields);
        program.globals.extend(facts.globals.keys());
        program.is_dynamic |= facts.is_dynamic;
        program.exports.push(exports);
        all.push(facts);
    }
    let mut found = Vec::new();
    for ((texts, text), facts) in parsed.iter().zip(&all) {
        let raw = infer::findings(text, &program, facts)?;
        found.extend(finding::placed(&texts.shown, text.content, raw));
    }
    Ok(found)
}
