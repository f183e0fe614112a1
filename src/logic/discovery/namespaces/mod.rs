//! Namespace patterns, as on the command line.
//!
//! The contract is `tests/vectors/namespaces.json`.

mod state;
#[cfg(test)]
mod tests;

pub use state::{NamespaceState, namespace_state};

use std::fmt;

use regex::Regex;

/// A pattern of namespaces to serve. Matches whole names, case-sensitively.
#[derive(Clone, Debug)]
pub struct NamespacePattern(PatternForm);

#[derive(Clone, Debug)]
enum PatternForm {
    /// Globs joined by commas; `!` negates one.
    Globs(String),
    /// A regular expression, for programs that use this library.
    Regex(Regex),
}

impl NamespacePattern {
    /// Creates a pattern from globs, as on the command line.
    pub fn new(text: impl Into<String>) -> Self {
        NamespacePattern(PatternForm::Globs(text.into()))
    }

    /// Creates a pattern from a regular expression for whole names.
    ///
    /// # Errors
    ///
    /// Fails if the expression is invalid.
    pub fn regex(text: &str) -> Result<Self, regex::Error> {
        // Checked alone first, so that it cannot close the group around it.
        Regex::new(text)?;
        Regex::new(&format!("^(?:{text})$")).map(|it| NamespacePattern(PatternForm::Regex(it)))
    }

    /// Returns whether a namespace is served.
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            PatternForm::Globs(globs) => matches(globs, name),
            PatternForm::Regex(regex) => regex.is_match(name),
        }
    }

    /// Returns the name if it is exactly one namespace, which can be served without listing the namespaces.
    pub fn exact(&self) -> Option<&str> {
        match &self.0 {
            PatternForm::Globs(globs) => (!globs.contains(['!', '*', '?', ','])).then_some(globs),
            PatternForm::Regex(_) => None,
        }
    }
}

/// Returns whether comma-separated globs match a name. The first part limits what can match at all; of the others, the rightmost that
/// matches decides.
fn matches(globs: &str, name: &str) -> bool {
    let mut parts = globs.split(',').map(str::trim);
    let mut first = parts.next().unwrap_or_default();
    let everything_but = first.starts_with('!');
    let rest = everything_but.then_some(first).into_iter().chain(parts);
    if everything_but {
        first = "*";
    }
    let in_scope = glob(first, name);
    rest.fold(in_scope, |served, part| match part.strip_prefix('!') {
        Some(negated) => served && !glob(negated.trim_start_matches('!'), name),
        None => served || (in_scope && glob(part, name)),
    })
}

impl fmt::Display for NamespacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PatternForm::Globs(globs) => f.write_str(globs),
            PatternForm::Regex(regex) => f.write_str(regex.as_str()),
        }
    }
}

impl From<&str> for NamespacePattern {
    fn from(globs: &str) -> Self {
        NamespacePattern::new(globs)
    }
}

/// A token of a glob.
enum GlobToken {
    /// `*`
    Many,
    /// `?`
    One,
    /// `[abc]`, `[a-z]`, `[!abc]`
    Set { negated: bool, members: Vec<char> },
    /// Any other character matches itself.
    Literal(char),
}

/// Matches a shell glob against a whole string.
///
/// Backtracks only to the last star, so the cost is bounded by the product of the lengths.
pub(in crate::logic) fn glob(pattern: &str, text: &str) -> bool {
    let (tokens, text) = (tokens(pattern), text.chars().collect::<Vec<_>>());
    let (mut token, mut symbol) = (0, 0);
    // Where to continue if the last star takes one more symbol.
    let mut retry: Option<(usize, usize)> = None;
    while symbol < text.len() || token < tokens.len() {
        match (tokens.get(token), text.get(symbol)) {
            (Some(GlobToken::Many), _) => {
                retry = Some((token + 1, symbol));
                token += 1;
                continue;
            }
            (Some(single), Some(it)) if single.takes(*it) => {
                (token, symbol) = (token + 1, symbol + 1);
                continue;
            }
            (Some(_) | None, _) => {}
        }
        match retry {
            Some((after_star, start)) if start < text.len() => {
                (token, symbol) = (after_star, start + 1);
                retry = Some((after_star, start + 1));
            }
            Some(_) | None => return false,
        }
    }
    true
}

fn tokens(pattern: &str) -> Vec<GlobToken> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::new();
    let mut rest = pattern.as_slice();
    while let Some((symbol, after)) = rest.split_first() {
        rest = after;
        tokens.push(match symbol {
            '*' => GlobToken::Many,
            '?' => GlobToken::One,
            '[' => match set(after) {
                Some((set, behind)) => {
                    rest = behind;
                    set
                }
                // A bracket that is never closed matches itself.
                None => GlobToken::Literal('['),
            },
            other => GlobToken::Literal(*other),
        });
    }
    tokens
}

/// Reads the set after an opening bracket. Returns it with the rest of the pattern.
fn set(pattern: &[char]) -> Option<(GlobToken, &[char])> {
    let negated = pattern.first() == Some(&'!');
    let start = usize::from(negated);
    // A closing bracket at the start belongs to the set.
    let end = pattern.iter().skip(start + 1).position(|it| *it == ']')? + start + 1;
    let members = pattern.get(start..end)?.to_vec();
    Some((GlobToken::Set { negated, members }, pattern.get(end + 1..)?))
}

impl GlobToken {
    fn takes(&self, symbol: char) -> bool {
        match self {
            GlobToken::Many => false,
            GlobToken::One => true,
            GlobToken::Literal(it) => *it == symbol,
            GlobToken::Set { negated, members } => is_among(members, symbol) != *negated,
        }
    }
}

fn is_among(members: &[char], symbol: char) -> bool {
    match members {
        [] => false,
        [low, '-', high, rest @ ..] => (*low..=*high).contains(&symbol) || is_among(rest, symbol),
        [one, rest @ ..] => *one == symbol || is_among(rest, symbol),
    }
}
