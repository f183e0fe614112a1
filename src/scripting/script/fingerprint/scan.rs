//! Characters into tokens: what the lexers of both languages share.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Name,
    Keyword,
    Number,
    /// A string, or a part of one.
    Text,
    Symbol,
}

/// A token. Comments and white space are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Where it begins: the offset in bytes.
    pub(crate) at: usize,
    /// The line where it begins, from 1.
    pub(crate) line: u32,
    /// Where it ends: strings can be long.
    pub(crate) last_line: u32,
}

/// Opens an expression inside a string; closed by [`TEXT_GOES_ON`].
pub(crate) const EXPRESSION: &str = "${";
/// Closes an expression inside a string: another part of the string follows.
pub(crate) const TEXT_GOES_ON: &str = "}$";

impl Token<'_> {
    /// Whether it is this symbol or this keyword.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Symbol | Kind::Keyword) && self.text == text
    }

    /// Whether it is one of these symbols or keywords.
    pub(crate) fn is_one_of(&self, texts: &[&str]) -> bool {
        texts.iter().any(|it| self.is(it))
    }
}

/// Reads a text from its beginning to its end.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    tokens: Vec<Token<'a>>,
    /// Of each expression inside a string: how many braces are open in it.
    expressions: Vec<u32>,
}

/// Where a token began.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: usize,
    line: u32,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0, line: 1, tokens: Vec::new(), expressions: Vec::new() }
    }

    /// What was read; `None` if an expression inside a string has no end.
    pub(super) fn finish(self) -> Option<Vec<Token<'a>>> {
        self.expressions.is_empty().then_some(self.tokens)
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

    /// Takes this if it comes next.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let is_next = self.rest().starts_with(prefix);
        if is_next {
            prefix.chars().for_each(|_| {
                self.bump();
            });
        }
        is_next
    }

    pub(super) fn eat_while(&mut self, is_wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_wanted) {
            self.bump();
        }
    }

    /// Takes everything up to this and this too; `None` if it does not come.
    pub(super) fn eat_past(&mut self, end: &str) -> Option<()> {
        while !self.eat(end) {
            self.bump()?;
        }
        Some(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, line: self.line }
    }

    /// A number, which begins here. A point is a part of it if what comes after the point says so.
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
        self.push(Kind::Number, mark);
    }

    /// Everything since then is one token.
    pub(super) fn push(&mut self, kind: Kind, since: Mark) {
        let text = self.text.get(since.at..self.at).unwrap_or_default();
        self.tokens.push(Token {
            kind,
            text,
            at: since.at,
            line: since.line,
            last_line: self.line,
        });
    }

    fn push_symbol(&mut self, text: &'static str) {
        let (at, line) = (self.at, self.line);
        self.tokens.push(Token { kind: Kind::Symbol, text, at, line, last_line: line });
    }

    /// A name or a keyword.
    pub(super) fn word(&mut self, keywords: &[&str]) {
        let mark = self.mark();
        self.eat_while(|it| it.is_ascii_alphanumeric() || it == '_');
        let text = self.text.get(mark.at..self.at).unwrap_or_default();
        self.push(if keywords.contains(&text) { Kind::Keyword } else { Kind::Name }, mark);
    }

    /// A quoted string; the mark is at its beginning. `None` if it has no end.
    pub(super) fn quoted(&mut self, quote: char, mark: Mark) -> Option<()> {
        loop {
            match self.bump()? {
                '\\' => drop(self.bump()),
                it if it == quote => break,
                _ => {}
            }
        }
        self.push(Kind::Text, mark);
        Some(())
    }

    /// A part of a string in backticks: to its end, or to an expression, which `opening` begins.
    pub(super) fn in_backticks(&mut self, opening: &str, escape: Option<char>) -> Option<()> {
        let mark = self.mark();
        loop {
            if self.rest().starts_with(opening) {
                self.push(Kind::Text, mark);
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
        self.push(Kind::Text, mark);
        Some(())
    }

    /// Counts a brace. Whether it closes an expression inside a string.
    pub(super) fn brace(&mut self, brace: &str) -> bool {
        let Some(open) = self.expressions.last_mut() else { return false };
        match brace {
            "{" | "#{" => *open += 1,
            "}" if *open > 0 => *open -= 1,
            "}" => {
                self.expressions.pop();
                self.push_symbol(TEXT_GOES_ON);
                return true;
            }
            _ => {}
        }
        false
    }

    /// The longest of these symbols that comes next; `None` if it is none.
    pub(super) fn symbol(&mut self, symbols: &[&str]) -> Option<&'a str> {
        let mark = self.mark();
        let found = symbols.iter().filter(|it| self.rest().starts_with(**it));
        let longest = found.max_by_key(|it| it.len())?;
        self.eat(longest);
        let text = self.text.get(mark.at..self.at).unwrap_or_default();
        if !self.brace(text) {
            self.push(Kind::Symbol, mark);
        }
        Some(text)
    }

    /// Whether the last symbol has closed an expression, so that a string goes on.
    pub(super) fn is_in_text(&self) -> bool {
        self.tokens.last().is_some_and(|it| it.text == TEXT_GOES_ON)
    }
}
