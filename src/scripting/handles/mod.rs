//! The objects of the host that scripts use in place, such as `ctx.memo`: the same in both languages.
//!
//! [`Handle`] says what a script can do with one, [`HandleType`] what it has by name. The macro at the end lists the types; each
//! engine has one adapter, which registers all of them. What only one of the languages has, such as the list functions of
//! Rhai, is in its engine.

mod conditions;
pub(super) mod ctx;
mod document;
mod index;
pub(super) mod leftovers;
mod path;
mod settings;
mod settings_access;
mod stopped;
mod tree;
pub(crate) mod unknown;
mod warnings;
mod withdraw;

use std::{ops::Deref, sync::Arc};

use serde_json::Value;

pub(crate) use self::{
    document::{Memo, Patch, Transformations},
    index::{Store, values},
    stopped::StopFlag,
};
use self::{path::Paths, stopped::Reasons};
use super::{
    terms::Language,
    values::{HostValue, Key, Nested, Passed},
};
use crate::call::{Index, Warnings};
use crate::logic::handlers::function::Function;
use crate::scripting::{
    handles::{leftovers::CallPart, settings_access::SettingsAccess},
    values::{
        account::Account,
        conditions::Conditions,
        refused::{HOST_OBJECT, Refused},
        text,
    },
};

/// What a script can do with an object of the host.
pub(crate) trait Handle: 'static {
    /// Returns what it is as data, if it is data.
    fn kind(&self) -> Option<Nested>;

    /// Copies the data, which have this many levels of a value around them.
    fn copy(&self, _account: &mut Account<'_>, _depth: usize) -> Result<Value, Refused> {
        Err(Refused::because(HOST_OBJECT))
    }

    /// Returns what it prints as.
    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        self.copy(account, 0).map(|it| text::shown(&it)).map_err(|it| it.to_string())
    }

    /// Returns what is at a key.
    fn get(&self, _key: &Key<'_>) -> Result<HostValue, String> {
        Ok(HostValue::Nil)
    }

    /// The same for something that may not be there: nothing comes into being.
    fn find(&self, key: &Key<'_>) -> Result<HostValue, String> {
        self.get(key)
    }

    /// The same for one step of a path, where places count from 0.
    fn step(&self, step: &Value) -> Option<HostValue> {
        self.find(&Key::of(step)).ok()
    }

    /// Whether something is at a key.
    fn has(&self, key: &Key<'_>) -> Result<bool, String> {
        Ok(!matches!(self.find(key)?, HostValue::Nil))
    }

    /// Changes what is at a key.
    fn set(&self, _key: &Key<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Takes out what is at a key.
    fn remove(&self, _key: &Key<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Adds a function of the script.
    fn append(&self, _function: Function) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Returns the keys of a map, as they are now.
    fn keys(&self) -> Box<dyn Iterator<Item = Value>> {
        Box::new(std::iter::empty())
    }

    /// Returns the items of a list that a loop over it may change.
    fn snapshot(&self) -> Option<Vec<Value>> {
        None
    }

    /// Returns the number of items.
    fn len(&self) -> usize {
        0
    }

    /// Whether it is a place where nothing is yet.
    fn is_absent(&self) -> bool {
        false
    }

    /// Whether what scripts wait for has happened.
    fn is_set(&self) -> bool {
        false
    }
}

/// What objects of one type have.
pub(crate) trait HandleType: Handle + Clone + Send + Sync + Into<AnyHandle> {
    /// What the languages call the type.
    const TYPE: &'static str;
    /// What can be looked up.
    const KEYS: Keys = Keys::None;
    /// Properties besides what can be looked up.
    const FIELDS: &'static [&'static str] = &[];
    /// Methods besides those of maps and lists.
    const METHODS: &'static [Method<Self>] = &[];
    /// What else scripts can do.
    const USE: Use = Use::Read;
    /// Whether it prints as a text of its own instead of its data.
    const IS_TEXT: bool = false;

    /// Whether both are the same object.
    fn is(&self, other: &Self) -> bool;
}

/// What can be looked up in a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Nothing.
    None,
    /// Names.
    Names,
    /// Names, and resource selectors as they are written in lists.
    Selectors,
    /// The places of a list.
    Places,
    /// Anything.
    Any,
}

/// What else scripts can do with a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing.
    Read,
    /// Nothing; it is too large to be converted as a whole when a part is looked up.
    LookUp,
    /// Change it like a map.
    Change,
    /// Add functions to it.
    Append,
    /// Wait for it.
    Wait,
}

/// A method of a handle.
pub(crate) struct Method<H> {
    pub(crate) name: &'static str,
    /// What errors call it.
    pub(crate) shown: &'static str,
    /// The only language that has it, if not both have.
    pub(crate) only: Option<Language>,
    /// The minimum and maximum number of arguments.
    pub(crate) arguments: (usize, usize),
    /// Whether the host keeps what it is called with.
    pub(crate) keeps: bool,
    /// Gets the maximum number of arguments: those that were left out are null.
    pub(crate) body: fn(&H, &[Value]) -> Result<HostValue, String>,
}

/// What handles need to know of the engine.
#[derive(Clone)]
pub(crate) struct Border {
    language: Language,
    /// What counts the paths of handles, if the engine does not.
    paths: Option<Arc<Paths>>,
}

impl Border {
    /// Rhai, whose memory includes the paths.
    pub(crate) const RHAI: Border = Border { language: Language::Rhai, paths: None };

    /// A VM of Lua with this much memory.
    pub(crate) fn of_lua(memory_limit: usize) -> Self {
        Border { language: Language::Lua, paths: Some(Arc::new(Paths::new(memory_limit))) }
    }

    /// Whether a path was refused since the last time: handles that nobody has any more are there until they are collected.
    pub(crate) fn take_refusal(&self) -> bool {
        self.paths.as_ref().is_some_and(|it| it.take_refusal())
    }
}

/// Makes a native value of a handle.
pub(crate) trait Wrap {
    type Wrapped;

    fn wrap<H: HandleType>(self, handle: H) -> Self::Wrapped;
}

/// Does something for each type of handles.
pub(crate) trait ForEachType {
    fn visit<H: HandleType>(&mut self);
}

macro_rules! handles {
    ($($name:ident($handle:ty)),* $(,)?) => {
        /// A handle of any type.
        pub(crate) enum AnyHandle {
            $($name($handle),)*
        }

        impl AnyHandle {
            /// Makes a native value of it.
            pub(crate) fn wrap<W: Wrap>(self, wrapper: W) -> W::Wrapped {
                match self {
                    $(AnyHandle::$name(it) => wrapper.wrap(it),)*
                }
            }

            /// Whether both are the same object.
            pub(crate) fn is(&self, other: &AnyHandle) -> bool {
                match (self, other) {
                    $((AnyHandle::$name(one), AnyHandle::$name(other)) => HandleType::is(one, other),)*
                    _ => false,
                }
            }
        }

        impl Deref for AnyHandle {
            type Target = dyn Handle;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(AnyHandle::$name(it) => it,)*
                }
            }
        }

        $(impl From<$handle> for AnyHandle {
            fn from(handle: $handle) -> Self {
                AnyHandle::$name(handle)
            }
        })*

        /// Visits the types of handles.
        pub(crate) fn for_each_type(visitor: &mut impl ForEachType) {
            $(visitor.visit::<$handle>();)*
        }
    };
}

handles! {
    Conditions(CallPart<Conditions>),
    Index(Index),
    Memo(Memo),
    Patch(Patch),
    Reasons(Reasons),
    Settings(SettingsAccess),
    Stopped(StopFlag),
    Store(Store),
    Transformations(Transformations),
    Warnings(CallPart<Warnings>),
}
