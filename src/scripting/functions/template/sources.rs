//! The source of a template with the files that it includes, before they are parsed.
//!
//! All limits that protect the parser are here: it recurses with its input. Each source is padded with as many empty lines as there
//! are lines in the sources before it, so that a line number also identifies the file.

use minijinja::{
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use crate::logic::text::size;
use crate::scripting::{
    functions::{outcome::Failure, pace},
    values::files::{FileReader, Unread},
};

/// Maximum bytes of all sources of one rendering: that of a ConfigMap.
const BYTES_MAX: usize = 1 << 20;
/// Maximum number of tokens between braces in all sources: the tree takes some hundred bytes for each.
const TOKENS_MAX: usize = 100_000;
/// Maximum number of tokens in one tag: a chain of filters or operators is as deep as it is long.
const TAG_TOKENS_MAX: usize = 1_000;
/// Each `elif` is one level deeper than the previous one.
const ELIFS_MAX: usize = 500;
/// The parser counts lines with 16 bits.
const LINES_MAX: usize = 60_000;
const FILES_MAX: usize = 64;

/// The source of a template or of an included file.
pub(super) struct TemplateSource {
    /// The name by which it is included; `None` for the template itself.
    pub(super) name: Option<String>,
    /// The source with empty lines in front of it.
    pub(super) padded: String,
    /// The number of these lines.
    pub(super) lines_before: usize,
}

/// All sources of a template.
pub(super) struct TemplateSources(pub(super) Vec<TemplateSource>);

/// Returns the syntax of all templates.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default()
}

impl TemplateSources {
    /// Reads the files that a template includes, and those that they include.
    pub(super) fn read(template: &str, files: &FileReader) -> Result<Self, String> {
        let mut texts = TemplateSources(Vec::new());
        let (mut tokens, mut bytes) = (0, 0);
        let mut waiting = vec![(None, template.to_owned())];
        while let Some((name, text)) = waiting.pop() {
            bytes += text.len();
            if bytes > BYTES_MAX {
                return Err(format!("the template is larger than {}", size::shown(BYTES_MAX)));
            }
            let lines_before = texts.0.iter().map(TemplateSource::lines).sum();
            let padded = "\n".repeat(lines_before) + text.as_str();
            let it = TemplateSource { name, padded, lines_before };
            if it.lines() + lines_before > LINES_MAX || texts.0.len() >= FILES_MAX {
                return Err(format!(
                    "a template may have at most {LINES_MAX} lines and include {FILES_MAX} files"
                ));
            }
            let included = it.scan(&mut tokens)?;
            texts.0.push(it);
            for (name, line) in included {
                let is_known = |it: &Option<String>| it.as_deref() == Some(name.as_str());
                if texts.0.iter().any(|it| is_known(&it.name))
                    || waiting.iter().any(|(it, _)| is_known(it))
                {
                    continue;
                }
                match files.read(&name) {
                    Ok(text) => waiting.push((Some(name), text.to_string())),
                    // It may be ignored: the statement says so.
                    Err(Unread::Missing(_)) => {}
                    Err(Unread::Refused(problem)) => {
                        return Err(texts.at(line, &format!("cannot load \"{name}\": {problem}")));
                    }
                }
            }
        }
        Ok(texts)
    }

    /// Returns a problem with its line, and with its file if that is not the template itself.
    pub(super) fn at(&self, line: usize, problem: &str) -> String {
        let Some(text) = self.0.iter().rev().find(|it| it.lines_before < line) else {
            return problem.to_owned();
        };
        let line = line - text.lines_before;
        match &text.name {
            Some(name) => format!("{name}:{line}: {problem}"),
            None => format!("line {line}: {problem}"),
        }
    }

    /// Returns the index of the source that is included by this name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|it| it.name.as_deref() == Some(name))
    }
}

impl TemplateSource {
    fn lines(&self) -> usize {
        self.padded.matches('\n').count() + 1 - self.lines_before
    }

    fn at(&self, line: usize, problem: &str) -> String {
        let line = line.saturating_sub(self.lines_before);
        match &self.name {
            Some(name) => format!("{name}:{line}: {problem}"),
            None => format!("line {line}: {problem}"),
        }
    }

    /// Counts the tokens for the parser; returns the files that it includes, with their lines.
    fn scan(&self, tokens: &mut usize) -> Result<Vec<(String, usize)>, String> {
        let (mut included, mut in_tag, mut elifs) = (Vec::new(), 0_usize, 0);
        let mut word = "";
        for token in tokenize(&self.padded, false, syntax()) {
            // The parser reports the error.
            let Ok((token, span)) = token else { break };
            let line = usize::from(span.start_line);
            *tokens += 1;
            in_tag += 1;
            pace::short_step(*tokens).map_err(Failure::into_message)?;
            if *tokens > TOKENS_MAX {
                return Err(format!("the template has more than {TOKENS_MAX} tokens in its tags"));
            }
            if in_tag > TAG_TOKENS_MAX {
                let message = format!("more than {TAG_TOKENS_MAX} tokens in one tag");
                return Err(self.at(line, &message));
            }
            match token {
                Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => {
                    in_tag = 0;
                    word = "";
                }
                Token::Ident(it) if in_tag == 1 => {
                    word = it;
                    elifs += usize::from(it == "elif");
                    if elifs > ELIFS_MAX {
                        return Err(self.at(
                            line,
                            &format!("more than {ELIFS_MAX} `elif` branches in one `if`"),
                        ));
                    }
                }
                Token::Str(name) if in_tag == 2 && includes(word) => {
                    included.push((name.to_owned(), line));
                }
                Token::String(name) if in_tag == 2 && includes(word) => {
                    included.push((name.into_string(), line));
                }
                _other => {}
            }
        }
        Ok(included)
    }
}

fn includes(word: &str) -> bool {
    matches!(word, "include" | "import" | "from" | "extends")
}
