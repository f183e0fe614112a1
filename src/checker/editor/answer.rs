//! Questions of an editor, and their answers.

use std::path::PathBuf;

use crate::checker::finding::Finding;

/// Stands for a name that is not written yet.
pub(super) const CURSOR: &str = "kopf_cursor";

/// What an editor wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The mistakes in the text.
    Findings,
    /// What can be written at this offset.
    Completions(usize),
    /// What is at this offset.
    Documentation(usize),
    /// Where the name at this offset is defined.
    Definition(usize),
    /// The tests in the text.
    Tests,
}

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Mistakes.
    pub findings: Vec<Finding>,
    /// Offsets where the syntax is wrong.
    pub broken: Vec<usize>,
    /// Why the text is not checked.
    pub unchecked: Option<String>,
    /// What can be written.
    pub completions: Vec<Completion>,
    /// Markdown, and the offset and the length of what it is about.
    pub documentation: Option<(String, usize, usize)>,
    /// Where something is defined.
    pub definition: Option<Definition>,
    /// Offsets and names of tests.
    pub tests: Vec<(usize, String)>,
}

/// Something that can be written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Completion {
    /// The name.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Such as its parameters.
    pub detail: String,
    /// Markdown.
    pub doc: String,
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionKind {
    /// A function or a method.
    Function,
    /// A variable of the script.
    Variable,
    /// A field, an option, a property.
    Field,
    /// A library.
    Module,
    /// A resource of Kubernetes.
    Resource,
}

/// Where something is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The module; `None` is the text itself.
    pub module: Option<PathBuf>,
    /// The offset in its text.
    pub at: usize,
    /// The text.
    pub text: String,
}
