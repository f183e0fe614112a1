//! Adapter: Lua and Rhai. One script file is one sandboxed VM and one failure domain.
//!
//! [`ScriptHost`] is the `ports::Scripts` of the operator: it finds the script of a function and hands the call to its
//! engine. Engines differ only in how values and calls look inside; what a script sees is decided in `ctx.rs`, what a
//! declaration means in `logic/declare.rs`.

mod children;
pub(crate) mod ctx;
mod diagnostics;
mod fingerprint;
mod hierarchy;
mod host;
mod logins;
mod lua;
mod names;
mod posting;
mod print;
mod refused;
mod rhai;
mod settings_access;
mod stopped;
mod text;
mod withdraw;

use std::{path::PathBuf, sync::Arc};

pub use self::{
    diagnostics::LoadError,
    host::{Prepared, ScriptHost, ScriptSet},
};
use crate::logic::{function::ScriptId, grants::Grants, handler::Handler, lifecycle::Chooser};
use crate::ports::{BoxFuture, Scripts};
use crate::settings::Sandbox;

/// On which terms scripts run.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Where.
    pub placement: Placement,
    /// How much they may use up.
    pub limits: Sandbox,
    /// What they may reach outside of their sandbox.
    pub grants: Arc<Grants>,
}

impl From<Placement> for Terms {
    /// The usual limits, and no grants.
    fn from(placement: Placement) -> Self {
        Terms { placement, limits: Sandbox::default(), grants: Arc::default() }
    }
}

/// Where the VMs of scripts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each script on threads of its own, so that a busy one delays nobody.
    Threads,
    /// On the runtime of the caller, whose clock may be paused: for tests.
    CurrentRuntime,
}

/// The text of one script file.
#[derive(Clone, Debug)]
pub struct Source {
    /// As shown in messages: the path as the user gave it.
    pub name: String,
    /// The file, for finding modules beside it; `None` for texts that are in no file.
    pub path: Option<PathBuf>,
    /// Its content.
    pub text: String,
}

/// A script whose top level has run.
pub(crate) struct Loaded {
    /// Calls its functions; it knows no others.
    pub(crate) engine: Arc<dyn Scripts>,
    /// What it declared, in order.
    pub(crate) handlers: Vec<Handler>,
    /// The default lifecycles it set, in order.
    pub(crate) lifecycles: Vec<Chooser>,
}

/// Loads one script: compiles it, runs its top level, collects its declarations.
pub(crate) type Load =
    fn(ScriptId, &Source, &Terms) -> BoxFuture<'static, Result<Loaded, LoadError>>;
