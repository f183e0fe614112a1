//! Rust closures as scripts: for tests of the reactor that need no script language.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::call::{Invocation, Question, Scripts};
use crate::logic::{
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::{Handler, Kind},
        outcome::{CallEnd, Raised, RaisedKind},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;

type NativeCall = Arc<dyn Fn(Arc<Invocation>) -> BoxFuture<'static, CallEnd> + Send + Sync>;
type Filter = Arc<dyn Fn(&Invocation, Option<Option<Value>>) -> Result<bool, Raised> + Send + Sync>;
type Choice = Arc<dyn Fn(&Resource) -> Result<bool, Raised> + Send + Sync>;
type Compute = Arc<dyn Fn(&Invocation) -> Result<Value, Raised> + Send + Sync>;
type Transform = Arc<dyn Fn(Value) -> Value + Send + Sync>;

#[derive(Clone)]
enum Native {
    Call(NativeCall),
    Filter(Filter),
    Choice(Choice),
    Compute(Compute),
    Transform(Transform),
}

/// A table of closures that acts as one script.
#[derive(Clone, Default)]
pub struct NativeScripts(Arc<Mutex<Vec<Native>>>);

impl NativeScripts {
    /// Adds a handler function.
    pub fn handler(
        &self,
        name: &str,
        call: impl Fn(Arc<Invocation>) -> BoxFuture<'static, CallEnd> + Send + Sync + 'static,
    ) -> Function {
        self.add(name, Native::Call(Arc::new(call)))
    }

    /// Adds a filter function.
    pub fn filter(
        &self,
        name: &str,
        filter: impl Fn(&Invocation, Option<Option<Value>>) -> Result<bool, Raised>
        + Send
        + Sync
        + 'static,
    ) -> Function {
        self.add(name, Native::Filter(Arc::new(filter)))
    }

    /// Adds the function of a selector.
    pub fn choice(
        &self,
        name: &str,
        choice: impl Fn(&Resource) -> Result<bool, Raised> + Send + Sync + 'static,
    ) -> Function {
        self.add(name, Native::Choice(Arc::new(choice)))
    }

    /// Adds a function that is called for its return value.
    pub fn computation(
        &self,
        name: &str,
        compute: impl Fn(&Invocation) -> Result<Value, Raised> + Send + Sync + 'static,
    ) -> Function {
        self.add(name, Native::Compute(Arc::new(compute)))
    }

    /// Adds a transformation of a raw body.
    pub fn transformation(
        &self,
        name: &str,
        transform: impl Fn(Value) -> Value + Send + Sync + 'static,
    ) -> Function {
        self.add(name, Native::Transform(Arc::new(transform)))
    }

    fn add(&self, name: &str, native: Native) -> Function {
        let mut table = self.0.lock();
        table.push(native);
        Function::new(ScriptId(0), u32::try_from(table.len() - 1).unwrap_or(u32::MAX), name)
    }

    fn find(&self, function: &Function) -> Option<Native> {
        let table = self.0.lock();
        table.get(usize::try_from(function.slot).ok()?).cloned()
    }
}

impl Scripts for NativeScripts {
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let Some(Native::Call(call)) = self.find(&invocation.handler.function) else {
            return Box::pin(async { CallEnd::Raised(unknown("handler")) });
        };
        call(invocation)
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        let answer = if let Some(Native::Filter(filter)) = self.find(&question.function) {
            filter(&invocation, question.about)
        } else {
            Err(unknown("filter"))
        };
        Box::pin(async { answer })
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        let answer = if let Some(Native::Choice(choice)) = self.find(&function) {
            choice(&resource)
        } else {
            Err(unknown("function of a selector"))
        };
        Box::pin(async { answer })
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        let found = self.find(&function);
        let computed = if let Some(Native::Compute(compute)) = &found {
            compute(&invocation)
        } else if let (Some(Native::Transform(transform)), Some(about)) = (&found, about) {
            Ok(transform(about))
        } else {
            Err(unknown("computation"))
        };
        Box::pin(async { computed })
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        let changed = if let Some(Native::Transform(transform)) = self.find(&function) {
            Ok(transform(body))
        } else {
            Err(unknown("transformation"))
        };
        Box::pin(async { changed })
    }
}

/// Declares a handler. Panics if the declaration is invalid.
#[track_caller]
pub fn declared(
    kind: Kind,
    selectors: Vec<Argument>,
    options: Vec<(String, Argument)>,
    function: Function,
) -> Handler {
    let location = "test:1".into();
    let declared = declare(Declaration { kind, selectors, options, function, location });
    declared.expect("a valid declaration")
}

/// Declares a handler of [`super::examples`] without options.
pub fn handler_of_examples(kind: Kind, function: Function) -> Handler {
    declared(kind, vec![Argument::Value("kopfexamples".into())], Vec::new(), function)
}

fn unknown(what: &str) -> Raised {
    Raised { kind: RaisedKind::Permanent, message: format!("no such {what}"), trace: None }
}
