//! `require`: see `scripting/script/modules` for where modules come from.

use std::sync::Arc;

use mlua::{Function as LuaFunction, Lua, Table, chunk::ChunkMode};

use super::world::World;
use crate::scripting::{
    Source, functions,
    script::modules::{self, ModuleProblem},
};

/// The sources that the modules of one script are loaded from.
pub(super) struct LuaModules {
    available: modules::Modules,
    /// The name of the script in messages.
    script: String,
}

impl LuaModules {
    /// Returns the modules of this script.
    pub(super) fn of(source: &Source) -> Self {
        LuaModules { available: source.modules.clone(), script: source.name.clone() }
    }

    /// Returns the key of a module, and its chunk unless a module with this key is already loaded.
    pub(super) fn find(
        &self,
        lua: &Lua,
        name: &str,
        loaded: &Table,
    ) -> mlua::Result<(String, Option<LuaFunction>)> {
        let failed = |it: ModuleProblem| mlua::Error::runtime(format!("module '{name}' {it}"));
        if let Some(library) = modules::library_of(&with_slashes(name)) {
            return Ok((name.to_owned(), Some(library_chunk(lua, library)?)));
        }
        let file = modules::file_of(&with_slashes(name), "lua").map_err(failed)?;
        let key = modules::shown(&self.script, &file);
        if loaded.contains_key(key.as_str())? {
            return Ok((key, None));
        }
        let text = match self.available.read(&file, &self.script) {
            Ok(text) => text,
            // A module of the script takes precedence over a library.
            Err(problem) => match functions::find(name) {
                Some(library) => return Ok((key, Some(library_chunk(lua, library.name)?))),
                None => return Err(failed(problem)),
            },
        };
        let world = World::of(lua)?;
        world.sources.insert(&key, Arc::clone(&text));
        let chunk = lua.load(&*text).set_name(format!("@{key}"));
        let chunk = chunk.set_mode(ChunkMode::Text).set_environment(lua.globals());
        Ok((key, Some(chunk.into_function()?)))
    }
}

/// Returns a chunk that loads a library as a module: the global of its name.
fn library_chunk(lua: &Lua, name: &'static str) -> mlua::Result<LuaFunction> {
    lua.create_function(move |lua, ()| {
        // The host's globals, because the script may have overwritten its own.
        let own = lua.globals().metatable();
        let host: Option<Table> = own.map(|it| it.raw_get("__index")).transpose()?;
        host.unwrap_or_else(|| lua.globals()).get::<Table>(name)
    })
}

/// Normalizes names: `lib.naming` and `lib/naming` are the same, with or without the extension.
fn with_slashes(name: &str) -> String {
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = name.strip_suffix(".lua").unwrap_or(name);
    // Names that lead out of the directory are not changed, so that they are rejected as written.
    if name.starts_with('.') || name.contains("..") { name.into() } else { name.replace('.', "/") }
}
