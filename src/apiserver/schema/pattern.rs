//! Regular expressions in the syntax of Go, in linear time.

use regex::{Regex, RegexBuilder};

/// Limit of a compiled expression, in bytes. Go limits repetitions to 1000 instead, which allows about as much.
const SIZE_MAX: usize = 4 << 20;

/// Compiles an expression in the syntax of Go. The error is a message of this library.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern);
    let built = RegexBuilder::new(&translated).size_limit(SIZE_MAX).build();
    built.map_err(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return "expression is too big".into();
        }
        // The parser shows the position in several lines; the last one is the message.
        let text = error.to_string();
        let line = text.lines().last().unwrap_or_default();
        let (words, part) = in_words_of_go(line.trim_start_matches("error: "), pattern);
        format!("error parsing regexp: {words}: `{part}`")
    })
}

/// Returns the message of Go for common mistakes, with the part of the expression that it shows; other messages are those of the
/// library.
fn in_words_of_go<'a>(error: &'a str, pattern: &'a str) -> (&'a str, &'a str) {
    let from = |needle: &str, length: Option<usize>| {
        let found = pattern.find(needle).and_then(|at| pattern.get(at..)).unwrap_or(pattern);
        length.and_then(|it| found.get(..it)).unwrap_or(found)
    };
    if error.starts_with("look-around") {
        let kinds =
            ["(?=", "(?!", "(?<"].into_iter().filter_map(|it| Some((pattern.find(it)?, it)));
        return ("invalid or unsupported Perl syntax", kinds.min().map_or(pattern, |(_, it)| it));
    }
    match error {
        "unclosed group" => ("missing closing )", pattern),
        "unopened group" => ("unexpected )", pattern),
        "unclosed character class" => ("missing closing ]", from("[", None)),
        "repetition operator missing expression" => {
            let operator = pattern.find(['*', '+', '?']).and_then(|at| pattern.get(at..=at));
            ("missing argument to repetition operator", operator.unwrap_or(pattern))
        }
        "unrecognized escape sequence" | "backreferences are not supported" => {
            ("invalid escape sequence", from("\\", Some(2)))
        }
        other => (other, pattern),
    }
}

/// Rewrites the differences between the syntaxes: classes such as `\d` are ASCII in Go; braces that are no repetition and brackets
/// inside of brackets are literals; `\Q…\E` quotes.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut class = BracketState::Outside;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match (c, &class) {
            ('\\', _) => escape(after, !matches!(class, BracketState::Outside), &mut out),
            ('[', BracketState::Outside) => {
                class = BracketState::Start;
                out.push('[');
                match after.strip_prefix('^') {
                    Some(after) => {
                        out.push('^');
                        after
                    }
                    None => after,
                }
            }
            ('[', _) if after.starts_with(':') && after.contains(":]") => {
                let end = after.find(":]").map_or(after.len(), |it| it + 2);
                let (name, after) = after.split_at_checked(end).unwrap_or((after, ""));
                out.push('[');
                out.push_str(name);
                after
            }
            // The first bracket in a class is a literal.
            (']', BracketState::Inside) => {
                class = BracketState::Outside;
                out.push(']');
                after
            }
            ('[' | ']' | '&' | '~', BracketState::Start | BracketState::Inside) => {
                out.push('\\');
                out.push(c);
                after
            }
            ('{', BracketState::Outside) if !is_repetition(after) => {
                out.push_str("\\{");
                after
            }
            _ => {
                out.push(c);
                after
            }
        };
        // The class has just been opened: anything written after its bracket ends the start.
        let opened =
            c == '[' && (out.ends_with('[') || out.ends_with("[^")) && !out.ends_with("\\[");
        if matches!(class, BracketState::Start) && !opened {
            class = BracketState::Inside;
        }
    }
    out
}

enum BracketState {
    Outside,
    /// Directly after the opening bracket.
    Start,
    Inside,
}

/// Writes an escaped character or a class. Returns the rest of the expression.
fn escape<'a>(after: &'a str, in_class: bool, out: &mut String) -> &'a str {
    let Some(c) = after.chars().next() else {
        out.push('\\');
        return after;
    };
    let rest = after.get(c.len_utf8()..).unwrap_or_default();
    let ascii = match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'b' if !in_class => "(?-u:\\b)",
        'B' if !in_class => "(?-u:\\B)",
        _ => "",
    };
    if !ascii.is_empty() {
        out.push_str(ascii);
        return rest;
    }
    if c == 'Q' && !in_class {
        let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
        out.push_str(&regex::escape(quoted));
        return rest;
    }
    out.push('\\');
    out.push(c);
    // A named class keeps its braces.
    if matches!(c, 'p' | 'P' | 'x') && rest.starts_with('{') {
        let end = rest.find('}').map_or(rest.len(), |it| it + 1);
        let (name, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        out.push_str(name);
        return rest;
    }
    rest
}

/// Returns whether the text after an opening brace makes it a repetition: `3}`, `3,}`, `3,5}`.
fn is_repetition(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |it: &str| it.chars().all(|c| c.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}
