//! A template as a tree.

use serde_json::Value;

use crate::scripting::functions::{pace, types::Failure};
use crate::scripting::values::text::did_you_mean;

/// How deep conditions and loops may be nested.
const DEPTH_MAX: usize = 32;
/// How many filters one value may have.
const FILTERS_MAX: usize = 100;
/// The filters.
pub(super) const FILTERS: [&str; 11] = [
    "base64", "default", "indent", "join", "json", "length", "lower", "quote", "trim", "upper",
    "yaml",
];

/// One part of a template.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Value(Expression<'a>),
    /// The first part whose condition is true; the last one may have none.
    If(Vec<(Option<Condition<'a>>, Vec<Part<'a>>)>),
    For {
        key: Option<&'a str>,
        item: &'a str,
        list: Expression<'a>,
        body: Vec<Part<'a>>,
    },
}

/// A value with what is made of it.
#[derive(Debug)]
pub(super) struct Expression<'a> {
    pub(super) value: Operand<'a>,
    pub(super) filters: Vec<(&'a str, Option<Value>)>,
    /// In messages.
    pub(super) line: usize,
}

/// Something that has a value.
#[derive(Debug)]
pub(super) enum Operand<'a> {
    Path(&'a str),
    Literal(Value),
}

/// What is true or not.
#[derive(Debug)]
pub(super) struct Condition<'a> {
    pub(super) negated: bool,
    pub(super) left: Expression<'a>,
    /// What it is compared with, and whether it must be equal.
    pub(super) right: Option<(bool, Expression<'a>)>,
}

/// A piece of the text.
enum Token<'a> {
    Text(&'a str),
    Value(&'a str, usize),
    Tag(&'a str, usize),
}

/// Reads a template; the error says where it is wrong.
pub(super) fn parse(text: &str) -> Result<Vec<Part<'_>>, String> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: tokens.into_iter().peekable(), depth: 0 };
    let parts = reader.parts()?;
    match reader.tokens.next() {
        Some(Token::Tag(tag, line)) => {
            Err(format!("line {line}: `{{% {tag} %}}` has no matching start tag"))
        }
        Some(Token::Text(_) | Token::Value(..)) | None => Ok(parts),
    }
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let (mut tokens, mut rest, mut line, mut trims) = (Vec::new(), text, 1, false);
    while !rest.is_empty() {
        pace::short_step(tokens.len()).map_err(Failure::into_message)?;
        let begin = opening(rest);
        let (mut before, inside) =
            rest.split_at_checked(begin.unwrap_or(rest.len())).unwrap_or((rest, ""));
        let lines = before.matches('\n').count();
        if std::mem::take(&mut trims) {
            before = before.trim_start();
        }
        let Some((opening, inside)) = inside.split_at_checked(2) else {
            tokens.push(Token::Text(before));
            break;
        };
        line += lines;
        let closing = match opening {
            "{{" => "}}",
            "{%" => "%}",
            _ => "#}",
        };
        let Some(end) = end_of(inside, closing) else {
            return Err(format!("line {line}: `{opening}` has no `{closing}`"));
        };
        let (content, after) = inside.split_at_checked(end).unwrap_or((inside, ""));
        let content_lines = content.matches('\n').count();
        let (content, before) = match content.strip_prefix('-') {
            Some(content) => (content, before.trim_end()),
            None => (content, before),
        };
        let content = content.strip_suffix('-').map_or(content, |content| {
            trims = true;
            content
        });
        tokens.push(Token::Text(before));
        match opening {
            "{{" => tokens.push(Token::Value(content.trim(), line)),
            "{%" => tokens.push(Token::Tag(content.trim(), line)),
            _ => {}
        }
        line += content_lines;
        rest = after.get(2..).unwrap_or_default();
    }
    tokens.retain(|it| !matches!(it, Token::Text("")));
    Ok(tokens)
}

/// Where the next tag begins.
fn opening(text: &str) -> Option<usize> {
    let mut braces = text.match_indices('{').map(|(at, _)| at);
    braces.find(|at| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// Where a tag ends: not in a text of it.
fn end_of(inside: &str, closing: &str) -> Option<usize> {
    if closing == "#}" {
        return inside.find(closing);
    }
    let mut quoted = false;
    for (at, character) in inside.char_indices() {
        if character == '"' {
            quoted = !quoted;
        }
        if !quoted && inside.get(at..).is_some_and(|it| it.starts_with(closing)) {
            return Some(at);
        }
    }
    None
}

struct Reader<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token<'a>>>,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Everything up to a tag that ends something.
    fn parts(&mut self) -> Result<Vec<Part<'a>>, String> {
        let mut parts = Vec::new();
        while let Some(token) =
            self.tokens.next_if(|it| !matches!(it, Token::Tag(tag, _) if is_end(tag)))
        {
            pace::short_step(parts.len()).map_err(Failure::into_message)?;
            parts.push(match token {
                Token::Text(text) => Part::Text(text),
                Token::Value(text, line) => Part::Value(expression(text, line)?),
                Token::Tag(tag, line) => self.block(tag, line)?,
            });
        }
        Ok(parts)
    }

    fn block(&mut self, tag: &'a str, line: usize) -> Result<Part<'a>, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("line {line}: nested deeper than {DEPTH_MAX} levels"));
        }
        let (word, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let part = match word {
            "if" => self.branches(rest, line)?,
            "for" => self.repeated(rest, line)?,
            _ => {
                let near = did_you_mean(
                    word,
                    ["if", "for", "else", "elif", "endif", "endfor"].into_iter(),
                    "",
                );
                return Err(format!("line {line}: there is no `{{% {word} %}}`{near}"));
            }
        };
        self.depth -= 1;
        Ok(part)
    }

    fn branches(&mut self, first: &'a str, line: usize) -> Result<Part<'a>, String> {
        let mut branches = Vec::new();
        let mut next = Some(condition(first, line)?);
        loop {
            let is_last = next.is_none();
            branches.push((next, self.parts()?));
            match self.tokens.next() {
                Some(Token::Tag("endif", _)) => return Ok(Part::If(branches)),
                Some(Token::Tag("else", _)) if !is_last => next = None,
                Some(Token::Tag(tag, line)) if tag.starts_with("elif ") && !is_last => {
                    next = Some(condition(tag.strip_prefix("elif ").unwrap_or_default(), line)?);
                }
                Some(Token::Tag(tag, line)) => {
                    return Err(format!("line {line}: `{{% {tag} %}}` before `{{% endif %}}`"));
                }
                Some(Token::Text(_) | Token::Value(..)) | None => {
                    return Err(format!("line {line}: `{{% if %}}` has no `{{% endif %}}`"));
                }
            }
        }
    }

    fn repeated(&mut self, rest: &'a str, line: usize) -> Result<Part<'a>, String> {
        let wrong = || {
            format!(
                "line {line}: expected `{{% for item in path %}}` or `{{% for key, item in path %}}`"
            )
        };
        let (names, list) = rest.split_once(" in ").ok_or_else(wrong)?;
        let (key, item) = match names.split_once(',') {
            Some((key, item)) => (Some(key.trim()), item.trim()),
            None => (None, names.trim()),
        };
        if !is_name(item) || !key.is_none_or(is_name) {
            return Err(wrong());
        }
        let list = expression(list.trim(), line)?;
        let body = self.parts()?;
        match self.tokens.next() {
            Some(Token::Tag("endfor", _)) => Ok(Part::For { key, item, list, body }),
            Some(Token::Tag(tag, line)) => {
                Err(format!("line {line}: `{{% {tag} %}}` before `{{% endfor %}}`"))
            }
            Some(Token::Text(_) | Token::Value(..)) | None => {
                Err(format!("line {line}: `{{% for %}}` has no `{{% endfor %}}`"))
            }
        }
    }
}

fn is_end(tag: &str) -> bool {
    matches!(tag.split_whitespace().next(), Some("endif" | "endfor" | "else" | "elif"))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

fn condition(text: &str, line: usize) -> Result<Condition<'_>, String> {
    let (negated, text) = match text.trim().strip_prefix("not ") {
        Some(rest) => (true, rest),
        None => (false, text.trim()),
    };
    for (sign, is_equal) in [("==", true), ("!=", false)] {
        let mut halves = apart(text, sign).into_iter();
        if let (Some(left), Some(right), None) = (halves.next(), halves.next(), halves.next()) {
            let right = Some((is_equal, expression(right.trim(), line)?));
            return Ok(Condition { negated, left: expression(left.trim(), line)?, right });
        }
    }
    Ok(Condition { negated, left: expression(text, line)?, right: None })
}

/// The parts between separators that are not in a quoted text.
fn apart<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        if character == '"' {
            quoted = !quoted;
        }
        if !quoted && at >= begin && text.get(at..).is_some_and(|it| it.starts_with(separator)) {
            parts.push(text.get(begin..at).unwrap_or_default());
            begin = at + separator.len();
        }
    }
    parts.push(text.get(begin..).unwrap_or_default());
    parts
}

fn expression(text: &str, line: usize) -> Result<Expression<'_>, String> {
    let parts = apart(text, "|");
    if parts.len() > FILTERS_MAX {
        return Err(format!("line {line}: more than {FILTERS_MAX} filters of one value"));
    }
    let mut parts = parts.into_iter().map(str::trim);
    let value = operand(parts.next().unwrap_or_default(), line)?;
    let filters: Result<Vec<_>, _> = parts.map(|it| filter(it, line)).collect();
    Ok(Expression { value, filters: filters?, line })
}

fn operand(text: &str, line: usize) -> Result<Operand<'_>, String> {
    if let Ok(literal) = serde_json::from_str(text) {
        return Ok(Operand::Literal(literal));
    }
    let is_path = text.split('.').all(|it| {
        !it.is_empty()
            && it
                .chars()
                .all(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | '/' | '[' | ']'))
    });
    if is_path {
        return Ok(Operand::Path(text));
    }
    Err(format!("line {line}: expected a path such as `spec.items[0].name`, got `{text}`"))
}

fn filter(text: &str, line: usize) -> Result<(&str, Option<Value>), String> {
    let (name, argument) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.strip_suffix(')')),
        None => (text, None),
    };
    if !FILTERS.contains(&name) {
        let near = did_you_mean(name, FILTERS.into_iter(), "");
        return Err(format!("line {line}: there is no filter `{name}`{near}"));
    }
    let argument = argument.map(|it| {
        serde_json::from_str(it.trim()).map_err(|_problem| {
            format!("line {line}: expected a string in double quotes or a number in `{text}`")
        })
    });
    Ok((name, argument.transpose()?))
}
