//! `ctx.warnings`: the warnings of an admission response.

use serde_json::Value;

use super::{Handle, HandleType, Method};
use crate::call::Warnings;
use crate::scripting::{
    handles::leftovers::CallPart,
    values::{HostValue, Nested, account::Account, refused::Refused},
};

impl Handle for CallPart<Warnings> {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::List)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy(&self.all().into(), depth)
    }

    fn snapshot(&self) -> Option<Vec<Value>> {
        Some(self.all().into_iter().map(Value::from).collect())
    }

    fn len(&self) -> usize {
        self.all().len()
    }
}

impl HandleType for CallPart<Warnings> {
    const TYPE: &'static str = "warnings";
    const METHODS: &'static [Method<Self>] =
        &[APPEND, Method { name: "push", shown: "ctx.warnings.push", ..APPEND }];

    fn is(&self, other: &Self) -> bool {
        Warnings::is(self, other)
    }
}

const APPEND: Method<CallPart<Warnings>> = Method {
    name: "append",
    shown: "ctx.warnings.append",
    only: None,
    arguments: (1, 1),
    keeps: true,
    body: |it, given| {
        let text = given.first().unwrap_or(&Value::Null);
        it.add(&text.as_str().map_or_else(|| text.to_string(), str::to_owned))?;
        Ok(HostValue::Nil)
    },
};
