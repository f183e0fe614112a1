//! Splits characters into tokens: the part that the lexers of both languages share.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TokenKind {
    Name,
    Keyword,
    Number,
    /// A string, or a part of one.
    Text,
    Symbol,
}

/// A token. Comments and white space are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// The offset of its first byte.
    pub(crate) at: usize,
    /// The line of its first character, from 1.
    pub(crate) line: u32,
    /// The line of its last character: strings can span lines.
    pub(crate) last_line: u32,
}

/// The number of characters of the longest symbol of both languages.
const SYMBOL_MAX: usize = 3;
/// Opens an expression inside a string; closed by [`STRING_CONTINUES`].
pub(crate) const EXPRESSION: &str = "${";
/// Closes an expression inside a string: another part of the string follows.
pub(crate) const STRING_CONTINUES: &str = "}$";

impl Token<'_> {
    /// Returns whether it is this symbol or keyword.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Symbol | TokenKind::Keyword) && self.text == text
    }

    /// Returns whether it is one of these symbols or keywords.
    pub(crate) fn is_one_of(&self, texts: &[&str]) -> bool {
        texts.iter().any(|it| self.is(it))
    }
}

/// Reads a source from its beginning to its end.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    tokens: Vec<Token<'a>>,
    /// The number of tokens so far, if only the last one is kept.
    count: Option<usize>,
    /// The number of open braces in each expression inside a string.
    expressions: Vec<u32>,
}

/// The start of a token.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: usize,
    line: u32,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0, line: 1, tokens: Vec::new(), count: None, expressions: Vec::new() }
    }

    /// Only counts the tokens, which takes no memory.
    pub(super) fn counting(text: &'a str) -> Self {
        Scanner { count: Some(0), ..Scanner::new(text) }
    }

    /// Returns the tokens; `None` if an expression inside a string has no end.
    pub(super) fn finish(self) -> Option<Vec<Token<'a>>> {
        self.expressions.is_empty().then_some(self.tokens)
    }

    /// Returns the number of tokens; `None` if an expression inside a string has no end.
    pub(super) fn counted(self) -> Option<usize> {
        self.expressions.is_empty().then_some(self.count.unwrap_or(self.tokens.len()))
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        if next == '\n' {
            self.line += 1;
        }
        Some(next)
    }

    /// Skips this prefix, which has no line break. Returns whether it was there.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let is_next = self.rest().starts_with(prefix);
        self.at += if is_next { prefix.len() } else { 0 };
        is_next
    }

    pub(super) fn eat_while(&mut self, is_wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_wanted) {
            self.bump();
        }
    }

    /// Skips everything up to and including `end`; `None` if it does not occur.
    pub(super) fn eat_past(&mut self, end: &str) -> Option<()> {
        while !self.eat(end) {
            self.bump()?;
        }
        Some(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, line: self.line }
    }

    /// Reads a number. `is_part` is passed what follows a point, and decides whether the point belongs to the number.
    pub(super) fn number(&mut self, has_exponent: bool, is_part: impl Fn(&str) -> bool) {
        let mark = self.mark();
        let mut before = ' ';
        while let Some(next) = self.peek() {
            let is_sign = matches!(next, '+' | '-') && matches!(before, 'e' | 'E') && has_exponent;
            let is_dot = self.rest().strip_prefix('.').is_some_and(&is_part);
            if !(next.is_ascii_alphanumeric() || next == '_' || is_dot || is_sign) {
                break;
            }
            before = next;
            self.bump();
        }
        self.push(TokenKind::Number, mark);
    }

    /// Adds everything since the mark as one token.
    pub(super) fn push(&mut self, kind: TokenKind, since: Mark) {
        let text = self.text.get(since.at..self.at).unwrap_or_default();
        self.add(Token { kind, text, at: since.at, line: since.line, last_line: self.line });
    }

    fn push_symbol(&mut self, text: &'static str) {
        let (at, line) = (self.at, self.line);
        self.add(Token { kind: TokenKind::Symbol, text, at, line, last_line: line });
    }

    fn add(&mut self, token: Token<'a>) {
        if let Some(count) = &mut self.count {
            *count += 1;
            self.tokens.clear();
        }
        self.tokens.push(token);
    }

    /// Reads a name or a keyword.
    pub(super) fn word(&mut self, is_keyword: impl Fn(&str) -> bool) {
        let mark = self.mark();
        self.eat_while(|it| it.is_ascii_alphanumeric() || it == '_');
        let text = self.text.get(mark.at..self.at).unwrap_or_default();
        self.push(if is_keyword(text) { TokenKind::Keyword } else { TokenKind::Name }, mark);
    }

    /// Reads a quoted string that begins at the mark. Returns `None` if it has no end.
    pub(super) fn quoted(&mut self, quote: char, mark: Mark) -> Option<()> {
        loop {
            match self.bump()? {
                '\\' => drop(self.bump()),
                it if it == quote => break,
                _ => {}
            }
        }
        self.push(TokenKind::Text, mark);
        Some(())
    }

    /// Reads a part of a string in backticks, up to its end or to an expression, which `opening` begins.
    pub(super) fn in_backticks(&mut self, opening: &str, escape: Option<char>) -> Option<()> {
        let mark = self.mark();
        loop {
            if self.rest().starts_with(opening) {
                self.push(TokenKind::Text, mark);
                self.eat(opening);
                self.push_symbol(EXPRESSION);
                self.expressions.push(0);
                return Some(());
            }
            match self.bump()? {
                '`' => break,
                it if Some(it) == escape => drop(self.bump()),
                _ => {}
            }
        }
        self.push(TokenKind::Text, mark);
        Some(())
    }

    /// Counts a brace. Returns whether it closes an expression inside a string.
    pub(super) fn brace(&mut self, brace: &str) -> bool {
        let Some(open) = self.expressions.last_mut() else { return false };
        match brace {
            "{" | "#{" => *open += 1,
            "}" if *open > 0 => *open -= 1,
            "}" => {
                self.expressions.pop();
                self.push_symbol(STRING_CONTINUES);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Reads the longest symbol that is next; `None` if none is.
    pub(super) fn symbol(&mut self, is_symbol: impl Fn(&str) -> bool) -> Option<&'a str> {
        let mark = self.mark();
        let heads = (1..=SYMBOL_MAX).rev().filter_map(|it| self.rest().get(..it));
        let text = heads.into_iter().find(|it| is_symbol(it))?;
        self.at += text.len();
        if !self.brace(text) {
            self.push(TokenKind::Symbol, mark);
        }
        Some(text)
    }

    /// Returns whether the last symbol has closed an expression, so that a string continues.
    pub(super) fn is_in_text(&self) -> bool {
        self.tokens.last().is_some_and(|it| it.text == STRING_CONTINUES)
    }
}
