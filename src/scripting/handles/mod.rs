//! The objects of the host that scripts use in place, such as `ctx.memo`: the same in both languages.
//!
//! [`Handle`] is what a script can do with one, [`HandleType`] its properties and methods. The macro at the end lists the types;
//! each engine has one adapter, which registers all of them. What only one language has, such as the list functions of Rhai, is in
//! its engine.

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
    document::{Memo, PatchHandle, Transformations},
    index::{Store, values},
    stopped::StopFlag,
};
use self::{path::Paths, stopped::Reasons};
use super::{
    terms::Language,
    values::{HostValue, LookupKey, Nested, Passed},
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

/// The operations of scripts on an object of the host.
pub(crate) trait Handle: 'static {
    /// Returns the kind of its data; `None` if it is not data.
    fn kind(&self) -> Option<Nested>;

    /// Copies the data; `depth` levels of a value are around them.
    fn copy(&self, _account: &mut Account<'_>, _depth: usize) -> Result<Value, Refused> {
        Err(Refused::because(HOST_OBJECT))
    }

    /// Returns the string that it prints as.
    fn text(&self, account: &mut Account<'_>) -> Result<String, String> {
        self.copy(account, 0).map(|it| text::shown(&it)).map_err(|it| it.to_string())
    }

    /// Returns the value at a key.
    fn get(&self, _key: &LookupKey<'_>) -> Result<HostValue, String> {
        Ok(HostValue::Nil)
    }

    /// Returns the value at a key that may be missing: no level is created.
    fn find(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        self.get(key)
    }

    /// Returns the value at one step of a path, where indexes count from 0.
    fn step(&self, step: &Value) -> Option<HostValue> {
        self.find(&LookupKey::of(step)).ok()
    }

    /// Returns whether a key exists.
    fn has(&self, key: &LookupKey<'_>) -> Result<bool, String> {
        Ok(!matches!(self.find(key)?, HostValue::Nil))
    }

    /// Changes the value at a key.
    fn set(&self, _key: &LookupKey<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Removes a key and its value.
    fn remove(&self, _key: &LookupKey<'_>, _value: &dyn Passed) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Adds a function of the script.
    fn append(&self, _function: Function) -> Result<(), String> {
        Err(text::READ_ONLY.to_owned())
    }

    /// Returns the current keys of a map.
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

    /// Returns whether it is a level of a patch that does not exist yet.
    fn is_absent(&self) -> bool {
        false
    }

    /// Returns whether the event that scripts wait for has happened.
    fn is_set(&self) -> bool {
        false
    }
}

/// The properties of one type of objects.
pub(crate) trait HandleType: Handle + Clone + Send + Sync + Into<AnyHandle> {
    /// The name of the type in the languages.
    const TYPE: &'static str;
    /// The keys that can be looked up.
    const KEYS: HandleKeys = HandleKeys::None;
    /// Properties in addition to the keys.
    const FIELDS: &'static [&'static str] = &[];
    /// Methods in addition to those of maps and lists.
    const METHODS: &'static [Method<Self>] = &[];
    /// Further operations that scripts can use.
    const USE: Use = Use::Read;
    /// Whether it prints as a special string instead of its data.
    const IS_TEXT: bool = false;

    /// Returns whether both are the same object.
    fn is(&self, other: &Self) -> bool;
}

/// The keys that can be looked up in a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleKeys {
    /// No keys can be looked up.
    None,
    /// The names of its fields.
    Names,
    /// Names, and resource selectors in their list form.
    Selectors,
    /// Indexes of a list.
    Places,
    /// Keys of any type.
    Any,
}

/// Further operations on a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Only reading: it never changes.
    Read,
    /// Only reading; too large to be converted as a whole when a part is looked up.
    LookUp,
    /// Changes, as to a map.
    Change,
    /// Appending functions of the script.
    Append,
    /// Waiting for its event.
    Wait,
}

/// A method of a handle.
pub(crate) struct Method<H> {
    pub(crate) name: &'static str,
    /// The name in errors.
    pub(crate) shown: &'static str,
    /// The only language that has it; `None`: both.
    pub(crate) only: Option<Language>,
    /// The minimum and maximum number of arguments.
    pub(crate) arguments: (usize, usize),
    /// Whether the host keeps the arguments.
    pub(crate) keeps: bool,
    /// Receives the maximum number of arguments: those that were left out are null.
    pub(crate) body: fn(&H, &[Value]) -> Result<HostValue, String>,
}

/// The properties of the engine that handles depend on.
#[derive(Clone)]
pub(crate) struct Border {
    language: Language,
    /// Counts the paths of handles, if the engine does not.
    paths: Option<Arc<Paths>>,
}

impl Border {
    /// The border of Rhai, whose memory includes the paths.
    pub(crate) const RHAI: Border = Border { language: Language::Rhai, paths: None };

    /// Returns the border of a Lua VM with this memory limit, in bytes.
    pub(crate) fn of_lua(memory_limit: usize) -> Self {
        Border { language: Language::Lua, paths: Some(Arc::new(Paths::new(memory_limit))) }
    }

    /// Returns whether a path was refused since the last call: unreachable handles keep their paths until they are collected.
    pub(crate) fn take_refusal(&self) -> bool {
        self.paths.as_ref().is_some_and(|it| it.take_refusal())
    }
}

/// Converts a handle to a native value.
pub(crate) trait Wrap {
    type Wrapped;

    fn wrap<H: HandleType>(self, handle: H) -> Self::Wrapped;
}

/// A visitor of the types of handles.
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
            /// Converts it to a native value.
            pub(crate) fn wrap<W: Wrap>(self, wrapper: W) -> W::Wrapped {
                match self {
                    $(AnyHandle::$name(it) => wrapper.wrap(it),)*
                }
            }

            /// Returns whether both are the same object.
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
    PatchHandle(PatchHandle),
    Reasons(Reasons),
    Settings(SettingsAccess),
    Stopped(StopFlag),
    Store(Store),
    Transformations(Transformations),
    Warnings(CallPart<Warnings>),
}
