//! Label selectors: `a=b,c in (d,e),!f`.

use std::collections::BTreeSet;

use crate::{metadata::names, refusal::go};

/// One requirement; all of them must be met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelRequirement {
    pub(crate) key: String,
    pub(crate) test: Test,
}

/// The operator and the values of a requirement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    /// Also met without the label.
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelRequirement {
    /// Returns whether a value, or the absence of the label, meets the requirement.
    pub(crate) fn fits(&self, value: Option<&str>) -> bool {
        let number = |value: Option<&str>| value.and_then(integer);
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|it| values.contains(it)),
            Test::NotIn(values) => value.is_none_or(|it| !values.contains(it)),
            Test::Above(limit) => number(value).is_some_and(|it| it > *limit),
            Test::Below(limit) => number(value).is_some_and(|it| it < *limit),
        }
    }
}

/// Parses a selector. The error is the message of the real server.
pub(crate) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser { tokens: scan(text), at: 0 };
    let mut rules = Vec::new();
    loop {
        match parser.peek() {
            SelectorToken::End => return Ok(rules),
            SelectorToken::Word(_) | SelectorToken::Symbol("!") => {}
            other @ SelectorToken::Symbol(_) => {
                let found = other.text();
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        rules.push(parser.rule().map_err(|it| format!("unable to parse requirement: {it}"))?);
        match parser.next() {
            SelectorToken::End => return Ok(rules),
            SelectorToken::Symbol(",") => match parser.peek() {
                SelectorToken::Word(_) | SelectorToken::Symbol("!") => {}
                other @ (SelectorToken::Symbol(_) | SelectorToken::End) => {
                    return Err(format!(
                        "found '{}', expected: identifier after ','",
                        other.text()
                    ));
                }
            },
            other @ (SelectorToken::Word(_) | SelectorToken::Symbol(_)) => {
                return Err(format!("found '{}', expected: ',' or 'end of string'", other.text()));
            }
        }
    }
}

/// Parses an integer like Go's `ParseInt`, which accepts a plus sign.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[derive(Clone, Debug, PartialEq)]
enum SelectorToken {
    /// A key or a value; also `in` and `notin`, which are operators only after a key.
    Word(String),
    Symbol(&'static str),
    End,
}

impl SelectorToken {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn scan(text: &str) -> Vec<SelectorToken> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let length = match rest.chars().next() {
            // The scanner of the real server takes a zero byte for the end.
            None | Some('\0') => return tokens,
            Some('=' | '!' | '(' | ')' | ',' | '>' | '<') => {
                let symbol = SYMBOLS.into_iter().find(|it| rest.starts_with(it)).unwrap_or("!");
                tokens.push(SelectorToken::Symbol(symbol));
                symbol.len()
            }
            Some(_) => {
                let ends = |it: char| "=!(),><\0 \t\r\n".contains(it);
                let length = rest.find(ends).unwrap_or(rest.len());
                let (word, after) = rest.split_at(length);
                tokens.push(SelectorToken::Word(word.to_owned()));
                length + usize::from(after.starts_with('\0'))
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
}

struct Parser {
    tokens: Vec<SelectorToken>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> SelectorToken {
        self.tokens.get(self.at).cloned().unwrap_or(SelectorToken::End)
    }

    fn next(&mut self) -> SelectorToken {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn rule(&mut self) -> Result<LabelRequirement, String> {
        let absent = self.peek() == SelectorToken::Symbol("!");
        if absent {
            self.at += 1;
        }
        let key = self.word()?;
        check(&names::qualified_name(&key), || {
            format!("<nil>: Invalid value: {}", go::quote(&key))
        })?;
        if absent {
            return Ok(LabelRequirement { key, test: Test::Absent });
        }
        if matches!(self.peek(), SelectorToken::End | SelectorToken::Symbol(",")) {
            return Ok(LabelRequirement { key, test: Test::Exists });
        }
        let test = self.test(&key)?;
        Ok(LabelRequirement { key, test })
    }

    fn word(&mut self) -> Result<String, String> {
        match self.next() {
            SelectorToken::Word(text) => Ok(text),
            other @ (SelectorToken::Symbol(_) | SelectorToken::End) => {
                Err(format!("found '{}', expected: identifier", other.text()))
            }
        }
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        let values = match operator.text() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => BTreeSet::from([self.value()?]),
            other => {
                return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let number = || {
            let number = values.first().and_then(|it| integer(it));
            let shown = values.first().map(|it| go::quote(it)).unwrap_or_default();
            number.ok_or_else(|| {
                format!("values[0]: Invalid value: {shown}: for 'Gt', 'Lt' operators, the value must be an integer")
            })
        };
        let limit = if matches!(operator.text(), ">" | "<") { number()? } else { 0 };
        for (at, value) in values.iter().enumerate() {
            check(&names::label_value(value), || {
                format!("values[{at}][{key}]: Invalid value: {}", go::quote(value))
            })?;
        }
        Ok(match operator.text() {
            ">" => Test::Above(limit),
            "<" => Test::Below(limit),
            "notin" | "!=" => Test::NotIn(values),
            _ => Test::In(values),
        })
    }

    /// Parses the value after `=`, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), SelectorToken::End | SelectorToken::Symbol(",")) {
            return Ok(String::new());
        }
        self.word()
    }

    /// Parses the values after `in`.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let opening = self.next();
        if opening != SelectorToken::Symbol("(") {
            return Err(format!("found '{}' expected: '('", opening.text()));
        }
        match self.peek() {
            SelectorToken::Symbol(")") => {
                self.at += 1;
                Ok(BTreeSet::from([String::new()]))
            }
            SelectorToken::Word(_) | SelectorToken::Symbol(",") => self.list(),
            other @ (SelectorToken::Symbol(_) | SelectorToken::End) => {
                Err(format!("found '{}', expected: ',', ')' or identifier", other.text()))
            }
        }
    }

    /// Parses values up to the closing parenthesis; a value between two commas may be empty.
    fn list(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                SelectorToken::Word(text) => {
                    values.insert(text);
                    match self.peek() {
                        SelectorToken::Symbol(",") => {}
                        SelectorToken::Symbol(")") => break,
                        other @ (SelectorToken::Word(_)
                        | SelectorToken::Symbol(_)
                        | SelectorToken::End) => {
                            return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                        }
                    }
                }
                SelectorToken::Symbol(",") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek() {
                        SelectorToken::Symbol(")") => {
                            values.insert(String::new());
                            break;
                        }
                        SelectorToken::Symbol(",") => {
                            values.insert(String::new());
                        }
                        SelectorToken::Word(_) | SelectorToken::Symbol(_) | SelectorToken::End => {}
                    }
                }
                other @ (SelectorToken::Symbol(_) | SelectorToken::End) => {
                    return Err(format!("found '{}', expected: ',', or identifier", other.text()));
                }
            }
        }
        self.at += 1;
        Ok(values)
    }
}

fn check(faults: &[String], what: impl FnOnce() -> String) -> Result<(), String> {
    if faults.is_empty() { Ok(()) } else { Err(format!("{}: {}", what(), faults.join("; "))) }
}
