//! Reads `scripts:`, the permissions of single scripts.

use super::{Config, OptionType, YamlEntry, YamlNode, entries, option, wrong};
use crate::cli::report::Report;
use crate::logic::{access::grants::Permission, text::nearest::nearest};

/// The permissions of one script.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptEntry {
    /// The end of its path.
    pub name: String,
    /// The permissions, their values, and their location in the file.
    pub grants: Vec<(Permission, Vec<String>, String)>,
}

/// Reads the scripts with their permissions:
/// ```yaml
/// scripts:
///   database.lua: {allow-env: PG_*}
/// ```
pub(super) fn read(
    scripts: &YamlNode,
    place: &dyn Fn(u64) -> String,
    config: &mut Config,
) -> Result<(), Report> {
    let expected = "scripts with their permissions, such as `handlers.lua: {allow-env: APP_*}`";
    for YamlEntry { line, key: name, value } in entries(scripts, expected, place)? {
        if name.trim_matches(['/', '.']).is_empty() {
            return Err(wrong(&place(*line), &format!("`{name}` is not a script")));
        }
        let mut grants = Vec::new();
        for YamlEntry { line, key, value } in entries(value, "the permissions of a script", place)?
        {
            let what = Permission::ALL.into_iter().find(|it| it.option() == key);
            let what = what.ok_or_else(|| unknown(&place(*line), key))?;
            let value =
                option(what.option(), OptionType::Texts, value, &place(value.line.max(*line)))?;
            let texts = value.as_array().into_iter().flatten();
            let texts = texts.filter_map(|it| it.as_str().map(str::to_owned)).collect();
            grants.push((what, texts, place(*line)));
        }
        config.scripts.push(ScriptEntry { name: name.clone(), grants });
    }
    Ok(())
}

fn unknown(place: &str, key: &str) -> Report {
    let known = Permission::ALL.map(Permission::option);
    let problem = wrong(place, &format!("a script has no option `{key}`"));
    problem.with_hint(match nearest(key, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the options of a script are: {}", known.join(", ")),
    })
}
