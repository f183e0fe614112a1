//! Permissions of scripts: `--allow-net`, `--allow-env`, `--allow-read`, `--allow-insecure`,
//! `--allow-scratch`, and the same in `kopf.yaml`.

use std::path::{Path, PathBuf};

use super::Note;
use crate::cli::{
    args::GrantArgs,
    config::{Config, ScriptEntry},
    environment::Environment,
    report::Report,
};
use crate::logic::access::grants::{Access, Grants, Permission};

/// Combines the three sources; for each option, only the one with the highest precedence counts. Permissions that the file grants
/// to single scripts are added.
pub(super) fn grants(
    args: &GrantArgs,
    variables: &Environment<'_>,
    file: &Config,
) -> Result<Grants, Report> {
    let (current_directory, file_directory) = (absolute(Path::new("")), directory(file));
    let mut grants = Grants::default();
    for what in Permission::ALL {
        let typed = typed(args, what);
        let variable = what.option().to_ascii_uppercase().replace('-', "_");
        let set = variables.text(&variable).map(|it| split(&it, what, true)).unwrap_or_default();
        if !typed.is_empty() {
            allow(
                &mut grants.all,
                what,
                typed,
                (&format!("--{}", what.option()), &current_directory),
            )?;
        } else if !set.is_empty() {
            allow(&mut grants.all, what, &set, (&variables.name(&variable), &current_directory))?;
        } else if let Some((texts, place)) = file.texts_at(what.option()) {
            let place = format!("{place}: {}", what.option());
            let texts: Vec<_> = texts.iter().flat_map(|it| split(it, what, false)).collect();
            allow(&mut grants.all, what, &texts, (&place, &file_directory))?;
        }
    }
    for ScriptEntry { name, grants: entries } in &file.scripts {
        let mut access = Access::default();
        for (what, texts, place) in entries {
            let place = format!("{place}: {}", what.option());
            let texts: Vec<_> = texts.iter().flat_map(|it| split(it, *what, false)).collect();
            allow(&mut access, *what, &texts, (&place, &file_directory))?;
        }
        grants.scripts.push((name.clone(), access));
    }
    Ok(grants)
}

/// Returns a log line about the permissions, for later reference.
pub(super) fn note(grants: &Grants) -> Option<Note> {
    let mut granted_texts = granted(&grants.all);
    for (name, access) in &grants.scripts {
        let more = granted(access);
        if !more.is_empty() {
            granted_texts.push(format!("{} for {name}", more.join(" ")));
        }
    }
    (!granted_texts.is_empty())
        .then(|| Note::Info(format!("Granted to scripts: {}", granted_texts.join(" "))))
}

fn granted(access: &Access) -> Vec<String> {
    let options = Permission::ALL.into_iter().map(|it| (it.option(), access.granted(it)));
    let options = options.filter(|(_, granted)| !granted.is_empty());
    options.map(|(option, granted)| format!("--{option}={}", granted.join(","))).collect()
}

fn typed(args: &GrantArgs, what: Permission) -> &[String] {
    match what {
        Permission::Net => &args.allow_net,
        Permission::Env => &args.allow_env,
        Permission::Read => &args.allow_read,
        Permission::Insecure => &args.allow_insecure,
        Permission::Scratch => &args.allow_scratch,
    }
}

/// Splits a list at commas, except for a path in a file, which may contain commas.
fn split(text: &str, what: Permission, is_variable: bool) -> Vec<String> {
    let is_whole = matches!(what, Permission::Read | Permission::Scratch) && !is_variable;
    let parts =
        text.split(|it: char| (!is_whole && it == ',') || (is_variable && it.is_whitespace()));
    // An empty item between separators is ignored, but an empty string is an error.
    parts.filter(|it| !is_variable || !it.is_empty()).map(str::to_owned).collect()
}

fn allow(
    access: &mut Access,
    what: Permission,
    texts: &[String],
    (place, base): (&str, &Path),
) -> Result<(), Report> {
    for text in texts {
        access.allow(what, text, base).map_err(|problem| {
            Report::usage(format!("{place}: {problem}")).with_hint(format!(
                "--{} takes {}",
                what.option(),
                what.example()
            ))
        })?;
    }
    Ok(())
}

/// Returns the directory of a file, to which its relative paths are relative.
fn directory(file: &Config) -> PathBuf {
    absolute(file.path.parent().unwrap_or(Path::new("")))
}

/// Returns the absolute path. Without a current directory, relative paths stay relative, and nothing matches them.
fn absolute(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_default()
}
