//! A Rust file as the rules see it: its code without comments and strings, its strings, and the paths that it names.

use std::ops::Range;

/// Returns the code of a file: comments and strings are blank, everything else keeps its position.
pub(super) fn code(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    for (range, _) in opaque(text) {
        for byte in code.get_mut(range).into_iter().flatten().filter(|it| **it != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8(code).expect("whole characters are blank")
}

/// Returns the code of a file without its tests: blocks and items under `#[cfg(test)]` are blank.
pub(super) fn production(text: &str) -> String {
    let mut code = code(text).into_bytes();
    for range in test_items(text) {
        for byte in code.get_mut(range).into_iter().flatten().filter(|it| **it != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8(code).expect("whole characters are blank")
}

/// Returns the items under `#[cfg(test)]`, with that attribute.
pub(super) fn test_items(text: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let code = code(text);
    let starts = code.match_indices(MARK).map(|(place, _)| place);
    starts.map(|start| start..end_of_item(&code, start + MARK.len())).collect()
}

/// Returns the end of the item that starts here: its last brace, or its semicolon.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    let rest = code.get(start..).unwrap_or_default();
    for (place, character) in rest.char_indices().map(|(place, it)| (start + place, it)) {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && character == '}' {
                    return place + 1;
                }
            }
            ';' if depth == 0 => return place + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the string literals of a file without its tests, with the line of each.
pub(super) fn strings(text: &str) -> Vec<(usize, &str)> {
    let tests = test_items(text);
    let is_test = |place: usize| tests.iter().any(|it| it.contains(&place));
    let (mut line, mut place, mut found) = (1, 0, Vec::new());
    for (range, is_string) in opaque(text) {
        line += text.get(place..range.start).unwrap_or_default().matches('\n').count();
        place = range.start;
        if is_string && !is_test(place) {
            found.extend(text.get(range).map(|it| (line, it)));
        }
    }
    found
}

/// Returns comments, strings and characters, and which of them are strings.
fn opaque(text: &str) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(rest) = text.get(place..).filter(|it| !it.is_empty()) {
        let is_word = text.get(..place).and_then(|it| it.chars().next_back()).is_some_and(is_word);
        let (length, is_string) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with('"') {
            (quoted(rest), true)
        } else if let Some(length) = raw(rest).filter(|_| !is_word) {
            (length, true)
        } else if let Some(length) = character(rest) {
            (length, false)
        } else {
            place += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        found.push((place..place + length, is_string));
        place += length;
    }
    found
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the length of the string that starts here.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            '"' if !is_escaped => return place + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Returns the length of the raw string that starts here, if one does.
fn raw(text: &str) -> Option<usize> {
    let body = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = body.chars().take_while(|it| *it == '#').count();
    let start = text.len() - body.len() + hashes;
    text.get(start..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = text.get(start + 1..)?.find(&end)?;
    Some(start + 1 + length + end.len())
}

/// Returns the length of the character literal that starts here, if one does: `'a` alone is a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('\'')?.chars();
    let first = rest.next()?;
    if first == '\\' {
        return text.get(3..)?.find('\'').map(|it| it + 4);
    }
    (rest.next()? == '\'').then_some(2 + first.len_utf8())
}

/// Returns the paths of the imports in code, and the name that each has from then on.
pub(super) fn imports(code: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for tree in uses(code).into_iter().filter_map(|it| code.get(it)) {
        let tokens = tokens(tree);
        branch(&mut tokens.iter().map(String::as_str).peekable(), &[], &mut found);
    }
    found
}

/// Returns the trees of the `use` statements in code.
fn uses(code: &str) -> Vec<Range<usize>> {
    let starts = code
        .match_indices("use ")
        .map(|(place, _)| place)
        .filter(|it| !code.get(..*it).and_then(|it| it.chars().next_back()).is_some_and(is_word));
    let trees = starts.map(|it| it + "use ".len());
    trees.filter_map(|it| Some(it..it + code.get(it..)?.find(';')?)).collect()
}

/// Returns words, and the symbols between them.
fn tokens(tree: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for character in tree.chars() {
        let is_in_word = is_word(character);
        match found.last_mut() {
            Some(word) if is_in_word && is_open => word.push(character),
            _ if is_in_word || matches!(character, '{' | '}' | ',' | '*') => {
                found.push(character.into());
            }
            _ => {}
        }
        is_open = is_in_word;
    }
    found
}

/// Reads one branch of a tree of imports.
fn branch<'a>(
    tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    prefix: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) {
    let mut path = prefix.to_vec();
    let mut name = None;
    while let Some(token) = tokens.peek().copied() {
        match token {
            "," | "}" => break,
            "{" => {
                tokens.next();
                while tokens.peek().is_some_and(|it| *it != "}") {
                    branch(tokens, &path, found);
                    tokens.next_if_eq(&",");
                }
                tokens.next();
                return;
            }
            "as" => {
                tokens.next();
                name = tokens.next().map(str::to_owned);
                break;
            }
            "self" if !path.is_empty() && path.last().is_some_and(|it| it != "super") => {
                tokens.next();
            }
            word => {
                path.push(word.to_owned());
                tokens.next();
            }
        }
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    found.push((path, name));
}

/// Returns the paths in code that begin with `crate`, `self` or `super`, including those outside of imports.
pub(super) fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let uses = uses(code);
    for first in ["crate::", "self::", "super::"] {
        for (place, _) in code.match_indices(first) {
            let before = code.get(..place).unwrap_or_default();
            let is_import = uses.iter().any(|it| it.contains(&place));
            if is_import
                || before.ends_with("::")
                || before.ends_with("(in ")
                || before.chars().next_back().is_some_and(is_word)
            {
                continue;
            }
            let rest = code.get(place..).unwrap_or_default();
            let end = rest.find(|it: char| !is_word(it) && it != ':').unwrap_or(rest.len());
            let words = rest.get(..end).unwrap_or_default().split("::").filter(|it| !it.is_empty());
            found.push(words.map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn code_has_no_comments_and_no_strings() {
    let text =
        "let a = \"use b;\"; // use c;\nlet d = r#\"use \"e\";\"#; let f = '\"'; fn g<'a>() {}";
    let code = code(text);
    assert_eq!(code.len(), text.len());
    assert!(!code.contains("use"), "{code}");
    assert!(code.contains("fn g<'a>() {}"), "{code}");
    let strings: Vec<_> = strings(text).into_iter().map(|(_, it)| it).collect();
    assert_eq!(strings, ["\"use b;\"", "r#\"use \"e\";\"#"]);
}

#[test]
fn imports_are_paths_with_names() {
    let told = |code: &str| {
        let found = imports(code).into_iter();
        found.map(|(path, name)| format!("{} {name}", path.join("::"))).collect::<Vec<_>>()
    };
    let nested = "use crate::a::{self, b::{c, d as e}, f::*};";
    assert_eq!(
        told(nested),
        ["crate::a a", "crate::a::b::c c", "crate::a::b::d e", "crate::a::f::* *"]
    );
    assert_eq!(told("pub(super) use super::super::a;"), ["super::super::a a"]);
    assert_eq!(paths("x(crate::a::b::<T>(), super::c)").len(), 2);
}

#[test]
fn tests_are_no_production() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
    let production = production(text);
    assert!(!production.contains("fn b"), "{production}");
    assert!(production.contains("fn c"), "{production}");
}
