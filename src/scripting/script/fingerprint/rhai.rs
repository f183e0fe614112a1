//! Splits Rhai into the statements of its top level; `lua.rs` says what must be right.

use super::{
    Dialect,
    scan::{EXPRESSION, STRING_CONTINUES, Scanner, Token, TokenKind},
    statements::{Inside, Placed, Splitter, Statement},
};

/// The syntax of Rhai.
pub(super) const DIALECT: Dialect = Dialect {
    declaring: &["let", "const"],
    assigning: &["=", "+=", "-=", "*=", "/=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>="],
    accessing: &[".", "?.", "::"],
    method: ".",
    member: "",
    keyed: ":",
    calls_with_literals: false,
    names_functions: Some("Fn"),
    fresh: &["#{", "["],
    harmless: &[
        "kopf",
        "Fn",
        "type_of",
        "to_string",
        "parse_int",
        "parse_float",
        "parse_json",
        "range",
        "print",
        "debug",
        "max",
        "min",
        "abs",
        "json",
        "yaml",
        "base64",
        "hash",
        "time",
        "quantity",
        "semver",
    ],
    harmless_members: &[],
    harmless_methods: &[
        "len",
        "to_string",
        "to_int",
        "to_float",
        "to_upper",
        "to_lower",
        "split",
        "contains",
        "keys",
        "values",
        "is_empty",
        "starts_with",
        "ends_with",
        "sub_string",
        "index_of",
        "map",
        "filter",
        "reduce",
        "some",
        "all",
        "find",
        "get",
        "trim",
        "join",
    ],
    changing: &[],
    opaque: &[],
    wrapping: &[],
};

/// Begin statements that end with a block.
const BLOCKS: &[&str] =
    &["fn", "private", "if", "for", "while", "loop", "do", "switch", "try", "{"];

/// Returns whether this word is reserved.
#[rustfmt::skip] // one line for each would be long
fn is_keyword(text: &str) -> bool {
    matches!(text, "let" | "const" | "fn" | "private" | "if" | "else" | "switch" | "do" | "while"
        | "until" | "loop" | "for" | "in" | "break" | "continue" | "return" | "throw" | "try" |
        "catch" | "import" | "export" | "as" | "true" | "false" | "this")
}

/// Returns whether this is an operator or punctuation.
#[rustfmt::skip] // one line for each would be long
fn is_symbol(text: &str) -> bool {
    matches!(text, "+" | "-" | "*" | "/" | "%" | "!" | "=" | "<" | ">" | "(" | ")" | "{" | "}" |
        "[" | "]" | ";" | ":" | "," | "." | "&" | "|" | "^" | "$" | "@" | "?" | "~" | "#{" | "=="
        | "!=" | "<=" | ">=" | "&&" | "||" | "**" | "<<" | ">>" | ".." | "..=" | "::" | "=>" |
        "??" | "?." | "?[" | "+=" | "-=" | "*=" | "/=" | "%=" | "**=" | "&=" | "|=" | "^=" | "<<="
        | ">>=")
}

/// Returns the statements of the top level; `None` if this is not Rhai.
pub(super) fn statements(text: &str) -> Option<Vec<Statement<'_>>> {
    split(&lex(Scanner::new(text))?.finish()?)
}

/// Reads a source to its end; `None` if that is not possible.
pub(super) fn lex(mut scanner: Scanner<'_>) -> Option<Scanner<'_>> {
    if scanner.rest().starts_with("#!") {
        scanner.eat_while(|it| it != '\n');
    }
    while let Some(next) = scanner.peek() {
        let mark = scanner.mark();
        match next {
            _ if next.is_whitespace() => drop(scanner.bump()),
            _ if scanner.eat("//") => scanner.eat_while(|it| it != '\n'),
            _ if scanner.eat("/*") => block_comment(&mut scanner)?,
            '"' | '\'' => {
                scanner.bump();
                scanner.quoted(next, mark)?;
            }
            '`' => {
                scanner.bump();
                scanner.in_backticks("${", None)?;
            }
            '#' if raw(scanner.rest()).is_some() => {
                let level = raw(scanner.rest())?;
                scanner.eat(&format!("{}\"", "#".repeat(level)));
                scanner.eat_past(&format!("\"{}", "#".repeat(level)))?;
                scanner.push(TokenKind::Text, mark);
            }
            _ if next.is_ascii_alphabetic() || next == '_' => scanner.word(is_keyword),
            _ if next.is_ascii_digit() => number(&mut scanner),
            _ => {
                scanner.symbol(is_symbol)?;
                if scanner.is_in_text() {
                    scanner.in_backticks("${", None)?;
                }
            }
        }
    }
    Some(scanner)
}

/// Skips a block comment. They nest.
fn block_comment(scanner: &mut Scanner<'_>) -> Option<()> {
    let mut depth = 1;
    while depth > 0 {
        if scanner.eat("*/") {
            depth -= 1;
        } else if scanner.eat("/*") {
            depth += 1;
        } else {
            scanner.bump()?;
        }
    }
    Some(())
}

/// Returns the number of `#` that open a raw string, if one begins here.
fn raw(rest: &str) -> Option<usize> {
    let level = rest.chars().take_while(|it| *it == '#').count();
    rest.chars().nth(level).is_some_and(|it| it == '"').then_some(level)
}

fn number(scanner: &mut Scanner<'_>) {
    // `1..2` is a range, `1.max(2)` a call.
    scanner.number(true, |after| after.starts_with(|it: char| it.is_ascii_digit()));
}

/// A construct that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RhaiConstruct {
    Parens,
    Brackets,
    Map,
    Block,
    /// Between `fn` and its brace.
    Head,
    Function,
    /// Between the parentheses of `fn`.
    Parameters,
    /// Between the bars of a closure.
    Bars,
    /// Before the body of a closure.
    Body,
    /// A closure without braces: it ends with the argument or the item that contains it.
    Expression,
}

fn split<'a>(tokens: &[Token<'a>]) -> Option<Vec<Statement<'a>>> {
    let mut splitter = Splitter::default();
    let mut open: Vec<RhaiConstruct> = Vec::new();
    let mut tokens = tokens.iter().copied().peekable();
    let mut before: Option<Token<'a>> = None;
    while let Some(token) = tokens.next() {
        if token.is_one_of(&[",", ";", ")", "]", "}", STRING_CONTINUES]) {
            while open.pop_if(|it| *it == RhaiConstruct::Expression).is_some() {}
        }
        close(&mut open, &token)?;
        if token.is(";") && open.is_empty() {
            splitter.end();
            before = None;
            continue;
        }
        splitter.push(place(token, &open));
        advance(&mut open, &token, before.as_ref());
        if token.is("}") && open.is_empty() && is_complete(splitter.first(), tokens.peek()) {
            splitter.end();
            before = None;
            continue;
        }
        before = Some(token);
    }
    while open.pop_if(|it| *it == RhaiConstruct::Expression).is_some() {}
    open.is_empty().then(|| splitter.finish())
}

/// Returns whether a statement with this first token ends with the brace that closes now.
fn is_complete(first: Option<&Token<'_>>, next: Option<&Token<'_>>) -> bool {
    let is_loop = first.is_some_and(|it| it.is("do"));
    let goes_on: &[&str] = if is_loop { &["while", "until"] } else { &["else", "catch"] };
    first.is_some_and(|it| it.is_one_of(BLOCKS)) && !next.is_some_and(|it| it.is_one_of(goes_on))
}

/// Closes what the token closes; `None` if that is not open.
fn close(open: &mut Vec<RhaiConstruct>, token: &Token<'_>) -> Option<()> {
    let closed: &[RhaiConstruct] = match token.text {
        _ if token.kind != TokenKind::Symbol => return Some(()),
        ")" | STRING_CONTINUES => &[RhaiConstruct::Parens, RhaiConstruct::Parameters],
        "]" => &[RhaiConstruct::Brackets],
        "}" => &[RhaiConstruct::Map, RhaiConstruct::Block, RhaiConstruct::Function],
        _ => return Some(()),
    };
    open.pop_if(|it| closed.contains(it)).map(drop)
}

/// Opens what the token opens.
fn advance(open: &mut Vec<RhaiConstruct>, token: &Token<'_>, before: Option<&Token<'_>>) {
    if let Some(body @ RhaiConstruct::Body) = open.last_mut() {
        if token.is("{") {
            *body = RhaiConstruct::Function;
            return;
        }
        *body = RhaiConstruct::Expression;
    }
    if let Some(head @ RhaiConstruct::Head) = open.last_mut()
        && token.is("{")
    {
        *head = RhaiConstruct::Function;
        return;
    }
    if open.last() == Some(&RhaiConstruct::Bars) {
        if token.is("|") {
            open.pop();
            open.push(RhaiConstruct::Body);
        }
        return;
    }
    let opened = match token.text {
        _ if !matches!(token.kind, TokenKind::Symbol | TokenKind::Keyword) => None,
        "(" if open.last() == Some(&RhaiConstruct::Head) => Some(RhaiConstruct::Parameters),
        "(" | EXPRESSION => Some(RhaiConstruct::Parens),
        "[" | "?[" => Some(RhaiConstruct::Brackets),
        "#{" => Some(RhaiConstruct::Map),
        "{" => Some(RhaiConstruct::Block),
        "fn" => Some(RhaiConstruct::Head),
        "|" if is_operand(before) => Some(RhaiConstruct::Bars),
        "||" if is_operand(before) => Some(RhaiConstruct::Body),
        _ => None,
    };
    open.extend(opened);
}

/// Returns whether an operand follows this token, so that a bar begins a closure.
fn is_operand(before: Option<&Token<'_>>) -> bool {
    before.is_none_or(|it| match it.kind {
        TokenKind::Name | TokenKind::Number | TokenKind::Text => false,
        TokenKind::Symbol => !it.is_one_of(&[")", "]", "}"]),
        TokenKind::Keyword => !it.is_one_of(&["this", "true", "false"]),
    })
}

fn place<'a>(token: Token<'a>, open: &[RhaiConstruct]) -> Placed<'a> {
    let is_function = |it: &RhaiConstruct| {
        matches!(
            it,
            RhaiConstruct::Head
                | RhaiConstruct::Function
                | RhaiConstruct::Bars
                | RhaiConstruct::Body
                | RhaiConstruct::Expression
        )
    };
    let inside = match open.last() {
        None => Inside::Nothing,
        Some(RhaiConstruct::Map) => Inside::Table,
        Some(RhaiConstruct::Parens) => Inside::Parens,
        Some(RhaiConstruct::Parameters | RhaiConstruct::Bars) => Inside::Parameters,
        Some(RhaiConstruct::Brackets) => Inside::Brackets,
        Some(
            RhaiConstruct::Block
            | RhaiConstruct::Head
            | RhaiConstruct::Function
            | RhaiConstruct::Body
            | RhaiConstruct::Expression,
        ) => Inside::Block,
    };
    Placed { token, in_function: open.iter().any(is_function), inside }
}
