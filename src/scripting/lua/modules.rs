//! Finds the modules that scripts `require`: files under the directory of the script, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use mlua::{Function as LuaFunction, Lua, Table};

use super::world::World;

/// The directory that modules of a script come from.
pub(super) struct Modules {
    /// `None` if the script is in no file.
    directory: Option<PathBuf>,
    /// As in messages: the directory of the script as the user gave it.
    shown: PathBuf,
}

impl Modules {
    /// The modules beside this script.
    pub(super) fn beside(script: Option<&Path>, shown: &str) -> Self {
        let directory = |it: &Path| it.parent().map(Path::to_path_buf).unwrap_or_default();
        Modules { directory: script.map(directory), shown: directory(Path::new(shown)) }
    }

    /// The key of a module, and its chunk unless a module of this key is loaded already.
    pub(super) fn find(
        &self,
        lua: &Lua,
        name: &str,
        loaded: &Table,
    ) -> mlua::Result<(String, Option<LuaFunction>)> {
        let relative = relative_path(name).map_err(mlua::Error::runtime)?;
        let key = self.shown.join(&relative).display().to_string();
        if loaded.contains_key(key.as_str())? {
            return Ok((key, None));
        }
        let text = self.read(name, &relative).map_err(mlua::Error::runtime)?;
        let world = World::of(lua)?;
        world.texts.borrow_mut().insert(key.clone(), Arc::from(text.as_str()));
        let chunk = lua.load(text).set_name(format!("@{key}"));
        let chunk = chunk.set_mode(mlua::chunk::ChunkMode::Text).set_environment(lua.globals());
        Ok((key, Some(chunk.into_function()?)))
    }

    fn read(&self, name: &str, relative: &Path) -> Result<String, String> {
        let Some(directory) = &self.directory else {
            return Err(format!("module '{name}' not found: the script is in no directory"));
        };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let shown = self.shown.join(relative);
        let missing = |error: std::io::Error| {
            format!("module '{name}' not found: {}: {error}", shown.display())
        };
        let root = directory.canonicalize().map_err(missing)?;
        // Links are followed, and the target is checked: a ConfigMap volume consists of links within itself.
        let file = directory.join(relative).canonicalize().map_err(missing)?;
        if !file.starts_with(&root) {
            let shown = shown.display();
            return Err(format!(
                "module '{name}' refused: {shown} leads out of the script's directory"
            ));
        }
        fs::read_to_string(&file).map_err(missing)
    }
}

/// `lib.naming` and `lib/naming` are `lib/naming.lua`.
fn relative_path(name: &str) -> Result<PathBuf, String> {
    let refused = |why: &str| Err(format!("module '{name}' refused: {why}"));
    if name.starts_with('/') || name.contains('\\') || name.contains('\0') {
        return refused("modules are named relative to the script's directory");
    }
    if name.split('/').any(|it| it == "..") || name.contains("..") {
        return refused("modules outside of the script's directory cannot be loaded");
    }
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = name.strip_suffix(".lua").unwrap_or(name);
    if name.is_empty() {
        return refused("the name is empty");
    }
    Ok(PathBuf::from(format!("{}.lua", name.replace('.', "/"))))
}
