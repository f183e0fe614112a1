//! The texts of a script: its modules, and the files that its templates load.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use regex::Regex;

use crate::scripting::Source;

/// The extension of files whose name is written without one.
const EXTENSION: &str = "j2";
/// Maximum number of files that a script loads.
const FILES_MAX: usize = 256;
const DEPTH_MAX: usize = 4;

/// A tag with a literal name.
static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"\{%[-+]?\s*(?:include|import|from)\s+["']([-._A-Za-z0-9/]+)["']"#).ok()
});

/// Returns the texts of the files that templates of a script may load, by their path below its directory: all `.j2` files there,
/// and those of other extensions that a text names.
pub(in crate::cli) fn templates_of(source: &Source) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<String> = texts_of(source).into_iter().map(|(_, text)| text).collect();
    let Some(directory) = Path::new(&source.name).parent() else { return found };
    if !waiting.iter().any(|it| it.contains("template")) {
        return found;
    }
    collect(directory, "", DEPTH_MAX, &mut found);
    waiting.extend(found.values().cloned());
    while let (Some(text), true) = (waiting.pop(), found.len() < FILES_MAX) {
        for name in named(&text) {
            // Neither hidden nor outside of the directory.
            if found.contains_key(&name)
                || name.split('/').any(|it| it.is_empty() || it.starts_with('.'))
            {
                continue;
            }
            if let Ok(text) = fs::read_to_string(directory.join(&name)) {
                waiting.push(text.clone());
                found.insert(name, text);
            }
        }
    }
    found
}

/// Returns the texts of a script and its modules, by name.
pub(super) fn texts_of(source: &Source) -> Vec<(String, String)> {
    let mut texts = vec![(source.name.clone(), source.text.clone())];
    for module in source.modules.taken() {
        let text = module.path.as_deref().and_then(|it| fs::read_to_string(it).ok());
        texts.extend(text.map(|it| (module.name.display().to_string(), it)));
    }
    texts
}

/// Returns the files that tags in a text name.
fn named(text: &str) -> Vec<String> {
    let tags = TAG.iter().flat_map(|it| it.captures_iter(text));
    let names = tags.filter_map(|it| it.get(1)).map(|it| it.as_str());
    let full = |name: &str| match Path::new(name).extension() {
        Some(_) => name.to_owned(),
        None => format!("{name}.{EXTENSION}"),
    };
    names.map(full).collect()
}

/// Adds the `.j2` files of a directory. Unreadable files are ignored.
fn collect(directory: &Path, prefix: &str, depth: usize, found: &mut BTreeMap<String, String>) {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
    let place = if directory == Path::new("") { Path::new(".") } else { directory };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if found.len() >= FILES_MAX || name.starts_with('.') || !name.chars().all(is_plain) {
            continue;
        }
        let (path, shown) = (directory.join(&name), format!("{prefix}{name}"));
        if path.is_dir() {
            if let Some(depth) = depth.checked_sub(1) {
                collect(&path, &format!("{shown}/"), depth, found);
            }
        } else if path.extension().is_some_and(|it| it == EXTENSION)
            && let Ok(text) = fs::read_to_string(&path)
        {
            found.insert(shown, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_files() {
        let text = "{% include \"a\" %}{%- from 'lib/b.html' import x -%}{%import \"c.j2\" as c%}{{ include \"d\" }}{% include name %}";
        assert_eq!(named(text), ["a.j2", "lib/b.html", "c.j2"]);
    }
}
