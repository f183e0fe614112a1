//! Rules for environment variables, by name or pattern.

use std::fmt;

use crate::logic::discovery::namespaces::glob;

/// A rule for one or more variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRule(String);

impl VariableRule {
    /// Reads a name or a pattern: `*` matches any string, `?` one character, `[abc]` one of these.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            return Err(format!("'{text}' has a value: pass only the name of a variable"));
        }
        if text.contains('$') {
            return Err(format!("'{text}' has a $: pass only the name of a variable"));
        }
        if text.chars().any(|it| it.is_whitespace() || it.is_control()) {
            return Err(format!("'{}' is not the name of a variable", text.escape_debug()));
        }
        Ok(VariableRule(text.to_owned()))
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        glob(&self.0, name)
    }
}

impl fmt::Display for VariableRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
