//! Parses the source of a script into its tree.
//!
//! The engines compile a script before it is checked, so source that cannot be parsed here is not an error of the script: it is not
//! checked.

mod lua;
mod rhai;

use super::tree::{Expr, ExprKind, FunctionNode, Name, Span, Stmt, SyntaxTree};
use crate::scripting::{EXPRESSION, Language, STRING_CONTINUES, Token, TokenKind, lex};

/// Maximum nesting of expressions and blocks. The stack of the thread has room for it.
const DEPTH_MAX: usize = 300;
/// Maximum length of chains of members, calls and operators, which make trees deep, too: of each chain, and additional ones in the
/// whole source.
const LINKS_MAX: (usize, usize) = (20, 5_000);

/// The reason why a source has no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unparsed {
    /// It is nested too deep.
    Deep,
    /// Its syntax is not understood at this offset.
    At(usize),
}

/// Parses a source that an engine has compiled.
pub(super) fn parse(language: Language, text: &str) -> Result<SyntaxTree<'_>, Unparsed> {
    let tokens = lex(language, text).ok_or(Unparsed::At(0))?;
    let mut reader = TokenReader::new(&tokens);
    let body = match language {
        Language::Lua => reader.lua_block(),
        Language::Rhai => reader.rhai_statements(),
    };
    match body.filter(|_| reader.token().is_none()) {
        Some(body) => Ok(SyntaxTree { body }),
        None if reader.is_deep => Err(Unparsed::Deep),
        None => Err(Unparsed::At(reader.token().map_or(text.len(), |it| it.at))),
    }
}

/// The tree of a source that is being typed, as far as it can be parsed.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) tree: SyntaxTree<'a>,
    /// Where something is missing or wrong: the first offset of each line.
    pub(super) broken: Vec<usize>,
    /// Names in the parts that could not be parsed: they may be declared there.
    pub(super) lost: Vec<&'a str>,
}

/// Parses a source that may be wrong: parts that cannot be parsed are left out.
pub(super) fn parse_draft(language: Language, text: &str) -> Result<Draft<'_>, Unparsed> {
    let tokens = lex(language, text).ok_or(Unparsed::At(0))?;
    let mut reader = TokenReader { recovers: true, ..TokenReader::new(&tokens) };
    let mut body = Vec::new();
    while reader.token().is_some() && !reader.is_deep {
        let before = reader.at;
        body.extend(match language {
            Language::Lua => reader.lua_block().unwrap_or_default(),
            Language::Rhai => reader.rhai_statements().unwrap_or_default(),
        });
        if reader.token().is_some() {
            // A closing token without an opening one.
            reader.report_broken();
            reader.at = reader.at.max(before) + 1;
        }
    }
    if reader.is_deep {
        return Err(Unparsed::Deep);
    }
    let TokenReader { mut broken, lost, .. } = reader;
    broken.dedup_by_key(|it| it.0);
    let broken = broken.into_iter().map(|it| it.1).collect();
    Ok(Draft { tree: SyntaxTree { body }, broken, lost })
}

/// Reads the tokens of a source.
struct TokenReader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: usize,
    links: usize,
    is_deep: bool,
    functions: usize,
    /// Whether wrong parts are left out.
    recovers: bool,
    /// Lines and offsets of wrong parts.
    broken: Vec<(u32, usize)>,
    lost: Vec<&'a str>,
}

/// Symbols and keywords that are inserted if they are missing.
const INSERTED: &[&str] = &[")", "]", "}", "end", "then", "do", "until", ":", "=>"];

impl<'t, 'a> TokenReader<'t, 'a> {
    fn new(tokens: &'t [Token<'a>]) -> Self {
        TokenReader {
            tokens,
            at: 0,
            depth: 0,
            links: 0,
            is_deep: false,
            functions: 0,
            recovers: false,
            broken: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Records a mistake before the next token.
    fn report_broken(&mut self) {
        let last = self.at.checked_sub(1).and_then(|it| self.tokens.get(it));
        let at = last.map_or(0, |it| it.at + it.text.len());
        self.broken.push((last.map_or(1, |it| it.last_line), at));
    }

    /// Leaves out a statement that cannot be parsed, to the end of its line, if the reader recovers.
    fn leave_out(&mut self, from: usize) -> Option<()> {
        if !self.recovers || self.is_deep {
            return None;
        }
        self.report_broken();
        let line_of = |at: usize| self.tokens.get(at).map(|it| it.line);
        let is_line_end = self.at > from && line_of(self.at) > line_of(self.at - 1);
        if !is_line_end {
            let line = line_of(self.at);
            while self.at <= from || line_of(self.at).is_some_and(|it| Some(it) == line) {
                self.at += 1;
            }
        }
        let left_out = self.tokens.get(from..self.at).unwrap_or_default();
        let names = left_out.iter().filter(|it| it.kind == TokenKind::Name);
        self.lost.extend(names.map(|it| it.text));
        Some(())
    }

    /// Inserts a missing value, if the reader recovers.
    fn missing(&mut self) -> Option<Expr<'a>> {
        if !self.recovers {
            return None;
        }
        self.report_broken();
        let (_, at) = self.broken.last()?;
        Some(Expr { kind: ExprKind::Nil, span: Span { at: *at, len: 0 } })
    }

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
        if self.eat(text) {
            return Some(());
        }
        if self.recovers && INSERTED.contains(&text) {
            self.report_broken();
            return Some(());
        }
        None
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

    /// Takes a name, including keywords that are names here.
    fn word(&mut self) -> Option<Name<'a>> {
        let is_word = |it: &Token<'_>| matches!(it.kind, TokenKind::Name | TokenKind::Keyword);
        let last = self.at.checked_sub(1).and_then(|it| self.tokens.get(it)).copied();
        let is_here =
            |it: &Token<'_>| !self.recovers || last.is_some_and(|last| last.last_line == it.line);
        if let Some(token) = self.token().filter(is_word).filter(is_here) {
            self.at += 1;
            return Some(Name { text: token.text, span: span(&token) });
        }
        let missing = self.missing()?;
        Some(Name { text: "", span: missing.span })
    }

    /// Returns whether this name is next.
    fn is_name(&self, text: &str) -> bool {
        self.token().is_some_and(|it| it.kind == TokenKind::Name && it.text == text)
    }

    /// Reads a construct that may contain itself.
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

    /// Counts a member, a call or an operator in a chain.
    fn link(&mut self, row: &mut usize) -> Option<()> {
        let (each, more) = LINKS_MAX;
        *row += 1;
        self.links += usize::from(*row > each);
        self.is_deep |= self.links > more;
        (!self.is_deep).then_some(())
    }

    /// Returns the offset of the next token.
    fn here(&self) -> usize {
        self.token().map_or(usize::MAX, |it| it.at)
    }

    /// Returns the expression from `start` to the last token.
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
            self.expect(STRING_CONTINUES)?;
            self.next().filter(|it| it.kind == TokenKind::Text)?;
        }
        Some(self.since(start, ExprKind::Interpolated(parts)))
    }

    fn function(
        &mut self,
        parameters: Vec<Name<'a>>,
        is_method: bool,
        body: Vec<Stmt<'a>>,
    ) -> FunctionNode<'a> {
        let id = self.functions;
        self.functions += 1;
        FunctionNode { id, parameters, is_method, body }
    }
}

fn span(token: &Token<'_>) -> Span {
    Span { at: token.at, len: token.text.len() }
}
