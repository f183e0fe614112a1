//! `ctx.conditions`: its methods and its data.

use serde_json::Value;

use super::{Handle, HandleType, Method};
use crate::scripting::{
    handles::leftovers::CallPart,
    terms::Language,
    values::{HostValue, Nested, account::Account, conditions::Conditions, refused::Refused},
};

impl Handle for CallPart<Conditions> {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::List)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy(&self.json(), depth)
    }

    fn snapshot(&self) -> Option<Vec<Value>> {
        Some(self.list())
    }

    fn len(&self) -> usize {
        self.list().len()
    }
}

impl HandleType for CallPart<Conditions> {
    const TYPE: &'static str = "conditions";
    const METHODS: &'static [Method<Self>] = &[
        Method {
            name: "set",
            shown: "ctx.conditions.set",
            only: None,
            arguments: (2, 4),
            keeps: true,
            body: |it, given| Conditions::set(it, given).map(|()| HostValue::Nil),
        },
        Method {
            name: "get",
            shown: "ctx.conditions.get",
            only: None,
            arguments: (1, 1),
            keeps: false,
            body: |it, given| Conditions::get(it, first(given)).map(HostValue::some),
        },
        IS_TRUE,
        // `is` is a keyword of Rhai.
        Method { name: "is", only: Some(Language::Lua), ..IS_TRUE },
        Method {
            name: "remove",
            shown: "ctx.conditions.remove",
            only: None,
            arguments: (1, 1),
            keeps: true,
            body: |it, given| Conditions::remove(it, first(given)).map(|()| HostValue::Nil),
        },
    ];

    fn is(&self, other: &Self) -> bool {
        self.is_of(other)
    }
}

const IS_TRUE: Method<CallPart<Conditions>> = Method {
    name: "is_true",
    shown: "ctx.conditions.is_true",
    only: None,
    arguments: (1, 1),
    keeps: false,
    body: |it, given| it.holds(first(given)).map(|it| HostValue::Json(it.into())),
};

fn first(given: &[Value]) -> &Value {
    given.first().unwrap_or(&Value::Null)
}
