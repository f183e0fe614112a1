//! Groups tokens into the statements of the top level.

use super::scan::Token;

/// The innermost construct around a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// No construct: the top level.
    Nothing,
    /// A function, a loop, a branch.
    Block,
    /// A table or a map.
    Table,
    Parens,
    Brackets,
    /// The parameters of a function.
    Parameters,
}

/// A token with its position in the structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) token: Token<'a>,
    /// Whether it matters only when a function is called. The parameters of a function are inside of it.
    pub(super) in_function: bool,
    /// Braces and brackets themselves are outside of what they enclose.
    pub(super) inside: Inside,
}

/// A statement of the top level.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement<'a> {
    pub(super) tokens: Vec<Placed<'a>>,
}

impl Statement<'_> {
    /// Returns its first and its last line.
    pub(super) fn lines(&self) -> (u32, u32) {
        let first = self.tokens.first().map(|it| it.token.line);
        let last = self.tokens.iter().map(|it| it.token.last_line).max();
        first.zip(last).unwrap_or((1, 0))
    }
}

/// Collects statements of the top level.
#[derive(Default)]
pub(super) struct Splitter<'a> {
    done: Vec<Statement<'a>>,
    present: Statement<'a>,
}

impl<'a> Splitter<'a> {
    pub(super) fn push(&mut self, token: Placed<'a>) {
        self.present.tokens.push(token);
    }

    /// Ends the current statement; the next token begins another one.
    pub(super) fn end(&mut self) {
        let ended = std::mem::take(&mut self.present);
        if !ended.tokens.is_empty() {
            self.done.push(ended);
        }
    }

    /// Returns the first token of the current statement.
    pub(super) fn first(&self) -> Option<&Token<'a>> {
        self.present.tokens.first().map(|it| &it.token)
    }

    pub(super) fn finish(mut self) -> Vec<Statement<'a>> {
        self.end();
        self.done
    }
}
