//! Requests of an editor, and the responses.

use std::path::PathBuf;

use crate::checker::finding::Finding;

/// Stands for a name that is not typed yet.
pub(super) const CURSOR: &str = "kopf_cursor";

/// A request of an editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditorRequest {
    /// The mistakes in the script.
    Findings,
    /// The names that fit at this offset.
    Completions(usize),
    /// The documentation at this offset.
    Documentation(usize),
    /// Where the name at this offset is defined.
    Definition(usize),
    /// The tests in the script.
    Tests,
}

/// The response to an editor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditorResponse {
    /// The mistakes, if they were requested.
    pub findings: Vec<Finding>,
    /// Offsets where the syntax is wrong.
    pub broken: Vec<usize>,
    /// Why the script is not checked.
    pub unchecked: Option<String>,
    /// The names that fit.
    pub completions: Vec<Completion>,
    /// Markdown, and the offset and the length of what it documents.
    pub documentation: Option<(String, usize, usize)>,
    /// Where the name is defined.
    pub definition: Option<Definition>,
    /// Offsets and names of tests.
    pub tests: Vec<(usize, String)>,
}

/// A name that fits at the cursor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Completion {
    /// The name as it is inserted.
    pub label: String,
    /// The kind of the name.
    pub kind: CompletionKind,
    /// A short description, such as the parameters.
    pub detail: String,
    /// The documentation in Markdown.
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
    /// A library of functions.
    Module,
    /// A resource of Kubernetes.
    Resource,
}

/// The place where a name is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The module; `None` is the script itself.
    pub module: Option<PathBuf>,
    /// The offset in its source.
    pub at: usize,
    /// The source of the file.
    pub text: String,
}
