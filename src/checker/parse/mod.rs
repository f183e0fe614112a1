//! The text of a script into its tree.
//!
//! The engines compile a text before it is checked, so what cannot be parsed here is not an error of the script: it is not checked.

mod lua;
mod rhai;

use super::tree::{Expr, ExprKind, Function, Name, Span, Stmt, Tree};
use crate::scripting::{EXPRESSION, Language, TEXT_GOES_ON, Token, TokenKind, lex};

/// How deep expressions and blocks may be nested. The stack of the thread has room for it.
const DEPTH_MAX: usize = 300;
/// Members, calls and operators in a row, which make trees deep, too: so many for each row, and so many more in the whole text.
const LINKS_MAX: (usize, usize) = (20, 5_000);

/// Why a text has no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unparsed {
    /// It is nested too deep.
    Deep,
    /// Its syntax is not understood, at this offset.
    At(usize),
}

/// Parses a text.
pub(super) fn parse(language: Language, text: &str) -> Result<Tree<'_>, Unparsed> {
    let tokens = lex(language, text).ok_or(Unparsed::At(0))?;
    let mut reader =
        Reader { tokens: &tokens, at: 0, depth: 0, links: 0, is_deep: false, functions: 0 };
    let body = match language {
        Language::Lua => reader.lua_block(),
        Language::Rhai => reader.rhai_statements(),
    };
    match body.filter(|_| reader.token().is_none()) {
        Some(body) => Ok(Tree { body }),
        None if reader.is_deep => Err(Unparsed::Deep),
        None => Err(Unparsed::At(reader.token().map_or(text.len(), |it| it.at))),
    }
}

/// Reads tokens.
struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
    links: usize,
    is_deep: bool,
    functions: usize,
}

impl<'a> Reader<'_, 'a> {
    fn token(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn ahead(&self, count: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + count).copied()
    }

    fn is(&self, text: &str) -> bool {
        self.token().is_some_and(|it| it.is(text))
    }

    fn is_ahead(&self, count: usize, text: &str) -> bool {
        self.ahead(count).is_some_and(|it| it.is(text))
    }

    fn is_one_of(&self, texts: &[&str]) -> bool {
        self.token().is_some_and(|it| it.is_one_of(texts))
    }

    /// Takes this symbol or keyword, if it is next.
    fn eat(&mut self, text: &str) -> bool {
        let is_next = self.is(text);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.token()?;
        self.at += 1;
        Some(token)
    }

    fn name(&mut self) -> Option<Name<'a>> {
        let token = self.token().filter(|it| it.kind == TokenKind::Name)?;
        self.at += 1;
        Some(Name { text: token.text, span: span(&token) })
    }

    /// Takes a name, also one that is a keyword elsewhere.
    fn word(&mut self) -> Option<Name<'a>> {
        let is_word = |it: &Token<'_>| matches!(it.kind, TokenKind::Name | TokenKind::Keyword);
        let token = self.token().filter(is_word)?;
        self.at += 1;
        Some(Name { text: token.text, span: span(&token) })
    }

    /// Whether a name with this text is next.
    fn is_name(&self, text: &str) -> bool {
        self.token().is_some_and(|it| it.kind == TokenKind::Name && it.text == text)
    }

    /// Reads something that may contain itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEPTH_MAX {
            self.is_deep = true;
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Counts a member, a call or an operator of a row that has so many already.
    fn link(&mut self, row: &mut usize) -> Option<()> {
        let (each, more) = LINKS_MAX;
        *row += 1;
        self.links += usize::from(*row > each);
        self.is_deep |= self.links > more;
        (!self.is_deep).then_some(())
    }

    /// Returns where the next token begins.
    fn here(&self) -> usize {
        self.token().map_or(usize::MAX, |it| it.at)
    }

    /// Returns the expression that began there and ends with the last token.
    fn since(&self, start: usize, kind: ExprKind<'a>) -> Expr<'a> {
        let last = self.at.checked_sub(1).and_then(|it| self.tokens.get(it));
        let end = last.map_or(start, |it| it.at + it.text.len());
        Expr { kind, span: Span { at: start, len: end.saturating_sub(start) } }
    }

    /// Reads a string, with the expressions in it.
    fn text(&mut self, expr: fn(&mut Self) -> Option<Expr<'a>>) -> Option<Expr<'a>> {
        let start = self.here();
        let token = self.next()?;
        if !self.is(EXPRESSION) {
            return Some(self.since(start, ExprKind::Text(token.text)));
        }
        let mut parts = Vec::new();
        while self.eat(EXPRESSION) {
            parts.push(expr(self)?);
            self.expect(TEXT_GOES_ON)?;
            self.next().filter(|it| it.kind == TokenKind::Text)?;
        }
        Some(self.since(start, ExprKind::Interpolated(parts)))
    }

    fn function(
        &mut self,
        parameters: Vec<Name<'a>>,
        is_method: bool,
        body: Vec<Stmt<'a>>,
    ) -> Function<'a> {
        let id = self.functions;
        self.functions += 1;
        Function { id, parameters, is_method, body }
    }
}

fn span(token: &Token<'_>) -> Span {
    Span { at: token.at, len: token.text.len() }
}
