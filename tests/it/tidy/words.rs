//! Words that users should not read: the *not* columns of the style sheet, in messages, in the documentation of scripts and in
//! `docs/`.

use std::{fs, path::Path};

use super::{own_files, root, source};

/// Words and phrases that are never used, and their replacements.
const FORBIDDEN: &[(&str, &str)] = &[
    ("a clock that does not wait", "virtual clock"),
    ("a thing of the past", "deprecated"),
    ("afresh", "again, restarted"),
    ("anew", "reload, again"),
    ("beside", "alongside, next to"),
    ("for ever", "permanently"),
    ("for good", "permanently"),
    ("goes on", "keeps running, continues"),
    ("makes no sense", "is invalid"),
    ("of their own", "separate"),
    ("question", "request"),
    ("questions", "requests"),
    ("server of your own", "API server"),
    ("so many", "at most N"),
    ("tells", "returns, reports"),
    ("thing", "argument, parameter, field, option"),
    ("things", "arguments, parameters, fields, options"),
    ("whole number", "integer"),
];

/// Words that are ordinary ones too, with the number of their uses, which may only fall.
const COUNTED: &[(&str, &str, usize)] = &[
    ("answer", "response", 1),
    ("answers", "responses", 1),
    ("definition", "CRD", 1),
    ("gives", "returns", 2),
    ("logins", "credentials, authentication", 1),
    ("nothing", "nil, null, none", 31),
    ("text", "string", 12),
    ("texts", "strings", 1),
    ("the most", "at most", 2),
];

/// Returns what users read, with its position: strings of the program, pages of documentation.
fn read() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for file in own_files().iter().filter(|it| !it.is_test()) {
        let lines: Vec<_> = file.text.lines().collect();
        for (line, text) in source::strings(&file.text) {
            let is_reason = lines.get(line - 1).is_some_and(|it| it.contains("reason = "));
            // A string without a space is a name; users do not see the reasons of exceptions.
            if text.contains(' ') && !is_reason {
                found.push((format!("{}:{line}", file.path.display()), without_names(text)));
            }
        }
    }
    pages(&root().join("docs"), &mut found);
    found
}

/// Removes `{names}` in formats and `code`.
fn without_names(text: &str) -> String {
    let mut depth = 0_usize;
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => shown.push(character),
            _ => {}
        }
    }
    shown.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase()
}

fn pages(directory: &Path, found: &mut Vec<(String, String)>) {
    let entries = fs::read_dir(directory).expect("a directory").flatten().map(|it| it.path());
    for path in entries {
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            let text = fs::read_to_string(&path).expect("a string");
            let mut is_code = false;
            for (index, line) in text.lines().enumerate() {
                is_code ^= line.trim_start().starts_with("```");
                if !is_code {
                    let place = path.strip_prefix(root()).expect("inside the project").display();
                    found.push((format!("{place}:{}", index + 1), without_names(line)));
                }
            }
        }
    }
}

/// Returns where a word is used, as a whole word.
fn uses<'a>(word: &str, texts: &'a [(String, String)]) -> Vec<&'a str> {
    let is_word = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
    let mut found = Vec::new();
    for (place, text) in texts {
        for (start, _) in text.match_indices(word) {
            let before = text.get(..start).and_then(|it| it.chars().next_back());
            let after = text.get(start + word.len()..).and_then(|it| it.chars().next());
            if !before.is_some_and(is_word) && !after.is_some_and(is_word) {
                found.push(place.as_str());
            }
        }
    }
    found
}

#[test]
fn users_read_the_words_of_their_field() {
    let texts = read();
    let mut wrong = Vec::new();
    for (word, instead) in FORBIDDEN {
        for place in uses(word, &texts) {
            wrong.push(format!("{place}: `{word}`: write {instead}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_words_are_not_used_more_often() {
    let texts = read();
    let mut wrong = Vec::new();
    for (word, instead, max) in COUNTED {
        let places = uses(word, &texts);
        let count = places.len();
        if count > *max {
            let places = places.join(" ");
            wrong.push(format!(
                "`{word}` is there {count} times, {max} are allowed: write {instead}: {places}"
            ));
        } else if count < *max {
            wrong.push(format!("`{word}` is there only {count} times: lower its count of {max}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
