//! One script: its engine, its code, its top level, and calls of its functions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use kopf_rhai::{names, problem};
use parking_lot::{Mutex, MutexGuard};
use rhai::{
    AST, ASTNode, Caches, Dynamic, Engine, EvalAltResult, EvalContext, FnPtr, GlobalRuntimeState,
    ImmutableString, LexError, NativeCallContext, Position, Scope, Stmt, Token,
};
use serde_json::Value;

use super::{
    api::{self, Kopf},
    context::{self, Ctx},
    errors::{self, ErrorSources},
    functions::Functions,
    handles, limits,
    modules::RhaiModules,
    rules::{self, Short},
    value,
    view::{self, View},
};
use crate::call::Invocation;
use crate::logic::handlers::{
    declare::DeclareError,
    function::{Function, ScriptId},
    handler::{Handler, Kind},
    lifecycle::Chooser,
    outcome::Raised,
};
use crate::scripting::{
    LoadError, Source, Terms,
    blocking::{control, inline::InlineFunction},
    functions::{Surroundings, declaring::TopLevel},
    values::refused::SizeLimit,
};
use crate::settings::Sandbox;

/// Maximum nesting of an expression, at the top level and in functions. Nested closures are one expression.
pub(super) const EXPRESSION_DEPTHS_MAX: (usize, usize) = (64, 64);
/// Maximum number of modules of one script.
const MODULES_MAX: usize = 64;
/// Maximum number of properties that get a getter, which takes memory of the script: more than long scripts have.
const PROPERTIES_MAX: usize = 300;

/// State that the host functions share with the script.
pub(super) struct Shared {
    /// The name for messages, and the engine's name for the main file.
    pub(super) name: ImmutableString,
    pub(super) functions: Functions,
    pub(super) sources: Arc<ErrorSources>,
    /// What library functions need to know about the script.
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) top_level: TopLevel,
    /// The variables of the top level: Rhai hides them from named functions.
    globals: Mutex<BTreeMap<String, Dynamic>>,
    /// Names that are assigned to anywhere: Rhai cannot assign to a value that comes from the resolver.
    assigned: OnceLock<BTreeSet<String>>,
    /// The number of parameters of each function of the main file; several for overloads.
    arities: OnceLock<BTreeMap<String, Vec<usize>>>,
    /// Loop variables of the main file that only their loop changes.
    loops: OnceLock<BTreeSet<String>>,
}

/// A loaded script, its handlers, and the default lifecycles it set.
type LoadedRhai = (RhaiScript, Vec<Handler>, Vec<Chooser>);

/// A script whose top level has run.
pub(super) struct RhaiScript {
    engine: Engine,
    shared: Arc<Shared>,
    /// The state with the imports of the top level, which every call starts from.
    global: GlobalRuntimeState,
    /// The handlers that it declared after a restart: keeps their functions referenced.
    kept: Vec<Handler>,
    /// Those declared functions that are short.
    short: Short,
}

impl Shared {
    /// Creates the shared data of a script that is about to be loaded.
    pub(super) fn of(id: ScriptId, source: &Source, terms: &Terms) -> Self {
        Shared {
            name: source.name.as_str().into(),
            functions: Functions::new(id),
            sources: Arc::new(ErrorSources::new(terms.limits.clone())),
            surroundings: Surroundings::of(
                terms,
                &source.name,
                source.modules.files_of(&source.name),
            ),
            top_level: TopLevel::default(),
            globals: Mutex::default(),
            assigned: OnceLock::new(),
            arities: OnceLock::new(),
            loops: OnceLock::new(),
        }
    }

    /// Returns how many of the offered arguments a function takes; fails with the number that it needs if that is more.
    fn parameters(&self, pointer: &FnPtr, offered: usize) -> Result<usize, usize> {
        let captured = pointer.curry().len();
        let Some(arities) = self.arities.get().and_then(|it| it.get(pointer.fn_name())) else {
            // A function of the host, or of a module.
            return Ok(offered);
        };
        let fitting = || arities.iter().filter_map(|it| it.checked_sub(captured));
        let least = || fitting().min().unwrap_or_default();
        fitting().filter(|it| *it <= offered).max().ok_or_else(least)
    }

    /// Fails if a function needs more arguments than it will get; `gets` describes what it gets.
    pub(super) fn check_arity(
        &self,
        pointer: &FnPtr,
        offered: usize,
        gets: &str,
    ) -> Result<(), DeclareError> {
        let checked = self.parameters(pointer, offered).map(drop);
        checked.map_err(|wrong| too_many_parameters(pointer, wrong, gets).into())
    }

    fn globals(&self) -> MutexGuard<'_, BTreeMap<String, Dynamic>> {
        self.globals.lock()
    }

    /// Shares the variables of the top level with the functions of the script.
    fn publish(&self, scope: &mut Scope<'_>) {
        let names: Vec<String> = scope.iter_raw().map(|(name, ..)| name.to_owned()).collect();
        let mut globals = self.globals();
        for name in names {
            let value = match scope.get_mut(&name) {
                Some(variable) => {
                    if !variable.is_shared() {
                        *variable = variable.take().into_shared();
                    }
                    variable.clone()
                }
                // A constant.
                None => scope.get(&name).cloned().unwrap_or_default(),
            };
            globals.insert(name, value);
        }
    }

    /// Resolves names that the engine does not find, or should not: `kopf`, variables of the top level, handles in local variables. `None`
    /// leaves the name to the engine.
    fn resolve(
        &self,
        name: &str,
        index: usize,
        context: &EvalContext<'_, '_, '_, '_, '_, '_>,
    ) -> Result<Option<Dynamic>, Box<EvalAltResult>> {
        // Also if a closure has captured it: a closure inside of that one would find it locked.
        if name == "kopf" {
            return Ok(Some(Dynamic::from(Kopf)));
        }
        let scope = context.scope();
        let local = match index.checked_sub(1) {
            Some(from_the_end) => scope.iter_raw().nth(from_the_end).map(|(_, _, value)| value),
            None => scope.get(name),
        };
        if let Some(value) = local {
            limits::check_size(value)?;
            let is_main = context.source() == Some(self.name.as_str());
            let is_copied =
                self.is_handle(name, value) || (is_main && self.is_of_loop(name, value));
            return Ok(is_copied.then(|| value.clone()));
        }
        // A module has its own variables.
        let main = context.source() == Some(self.name.as_str());
        let global = if main { self.globals().get(name).cloned() } else { None };
        global.iter().try_for_each(limits::check_size)?;
        Ok(global.or_else(|| api::library(name)))
    }

    /// Returns whether a variable is a loop variable with a plain value: a closure then captures its value in this iteration.
    ///
    /// Rhai has one variable for all iterations. Sub-handlers that are declared in a loop would all see its last value.
    fn is_of_loop(&self, name: &str, value: &Dynamic) -> bool {
        let is_plain = value.is_string()
            || value.is_int()
            || value.is_float()
            || value.is_bool()
            || value.is_char();
        is_plain && !value.is_shared() && self.loops.get().is_some_and(|names| names.contains(name))
    }

    /// Returns whether a variable holds a handle of the host, whose clones refer to the same object.
    ///
    /// Rhai locks a variable that a closure captures, so `ctx.spec.items.filter(|it| it.name == ctx.name)` would fail on its own lock. A
    /// handle that is resolved here is captured as a clone instead.
    fn is_handle(&self, name: &str, value: &Dynamic) -> bool {
        let assigned = || self.assigned.get().is_some_and(|names| names.contains(name));
        !value.is_shared()
            && (value.is::<Ctx>()
                || value.is::<View>()
                || handles::is_handle(value)
                || api::is_library(value))
            && !assigned()
    }
}

/// Compiles a script and runs its top level. Needs a deep stack.
pub(super) fn load(id: ScriptId, source: &Source, terms: &Terms) -> Result<LoadedRhai, LoadError> {
    let limits = &terms.limits;
    let shared = Arc::new(Shared::of(id, source, terms));
    shared.sources.texts.insert(&source.name, source.text.as_str().into());
    let mut engine = engine(&shared, source, limits);
    let failed =
        |error: Box<EvalAltResult>| errors::load_error(*error, &source.name, &shared.sources);
    let compiled = engine.compile(&source.text);
    // If a limit is reached, the parser stops early, with an error that does not say so.
    control::step().map_err(|abort| failed(abort.into()))?;
    let mut ast = compiled.map_err(|error| failed(error.into()))?;
    ast.set_source(source.name.as_str());
    rules::check_calls(&ast).map_err(failed)?;
    let assigned = shared.assigned.get_or_init(|| names::assigned(&ast));
    shared.loops.get_or_init(|| names::loop_constants(&ast, assigned));
    shared.arities.get_or_init(|| names::functions(&ast));
    view::register_fields(&mut engine, names::properties(&ast, PROPERTIES_MAX));
    let global = run_top_level(&engine, &ast, &shared);
    shared.surroundings.scratch.free(None);
    let global = global.map_err(failed)?;
    source.modules.settle();
    let (handlers, lifecycles) = shared.top_level.finish();
    let short = Short::find(&ast, &shared.functions.names(), &shared.globals());
    let script = RhaiScript { engine, shared, global, kept: Vec::new(), short };
    Ok((script, handlers, lifecycles))
}

fn engine(shared: &Arc<Shared>, source: &Source, limits: &Sandbox) -> Engine {
    let mut engine = Engine::new();
    let (top, inside) = EXPRESSION_DEPTHS_MAX;
    #[expect(deprecated, reason = "marked so only because its signature may change")]
    engine.on_parse_token(|token, _, _| match control::progress() {
        Some(abort) => {
            let error = LexError::Runtime(errors::describe(abort));
            Token::LexError(error.into())
        }
        None => token,
    });
    let (print, debug) = (shared.surroundings.printer.clone(), shared.surroundings.printer.clone());
    engine
        .set_max_call_levels(limits.call_depth)
        .set_max_expr_depths(top, inside)
        .set_max_modules(MODULES_MAX)
        .disable_symbol("eval")
        .set_module_resolver(RhaiModules::of(source, Arc::clone(&shared.sources)))
        .on_progress(|_| control::operation().map(Dynamic::from))
        .on_print(move |text| print.print(text))
        .on_debug(move |text, source, position| {
            debug.print(&format!("{}:{position:?} | {text}", source.unwrap_or_default()));
        });
    let names = Arc::clone(shared);
    #[expect(deprecated, reason = "marked so only because its signature may change")]
    engine.on_var(move |name, index, context| {
        control::end_at_variable()?;
        names.resolve(name, index, &context)
    });
    limits::register(&mut engine);
    value::register(&mut engine);
    view::register(&mut engine);
    context::register(&mut engine, shared);
    api::register(&mut engine, shared);
    engine
}

/// Runs the top level; returns the state that later calls start from.
///
/// It runs statement by statement, because functions that the top level calls must see the variables declared before.
fn run_top_level(
    engine: &Engine,
    ast: &AST,
    shared: &Shared,
) -> Result<GlobalRuntimeState, Box<EvalAltResult>> {
    let mut global = engine.new_global_runtime_state();
    global.source = Some(shared.name.clone());
    global.lib.push(ast.shared_lib().clone());
    let mut scope = Scope::new();
    let mut caches = Caches::new();
    // All at once if there is a `return`: for a single statement, Rhai does not report that it has returned.
    let step = if returns(ast) { ast.statements().len().max(1) } else { 1 };
    for statements in ast.statements().chunks(step) {
        #[expect(deprecated, reason = "the only way to keep the imports of the top level")]
        let result = engine.eval_statements_raw(&mut global, &mut caches, &mut scope, statements);
        if let Some(abort) = control::overdue() {
            return Err(result
                .err()
                .filter(|it| errors::is_abort(it))
                .unwrap_or_else(|| abort.raised().into()));
        }
        drop(result?);
        shared.publish(&mut scope);
    }
    Ok(global)
}

fn returns(ast: &AST) -> bool {
    ast.statements().iter().any(|statement| {
        let mut found = false;
        statement.walk(&mut Vec::new(), &mut |path| {
            let node = path.last();
            found |= matches!(node, Some(ASTNode::Stmt(Stmt::Return(..))));
            !found
        });
        found
    })
}

fn too_many_parameters(pointer: &FnPtr, count: usize, gets: &str) -> String {
    let name = pointer.fn_name();
    let name = if errors::is_anonymous(name) { "the function".into() } else { format!("`{name}`") };
    format!("{name} has {count} parameters: {gets}")
}

impl Drop for RhaiScript {
    fn drop(&mut self) {
        self.kept.clear();
        self.shared.functions.clear();
        // Breaks a reference cycle: functions of the engine share the variables, and variables hold functions.
        let globals = std::mem::take(&mut *self.shared.globals());
        drop(globals);
    }
}

impl RhaiScript {
    /// Frees the scratch data of a call that has ended.
    pub(super) fn ended(&self, call: &Arc<Invocation>) {
        self.shared.surroundings.scratch.free(Some(call));
    }

    /// Returns how a call of this function can run inline, if it can.
    pub(super) fn inline(&self, function: &Function, call: &Invocation) -> Option<InlineFunction> {
        let is_one_of = |names| self.shared.functions.is_one_of(names, function);
        let kind = if is_one_of(&self.short.0.straight) {
            InlineFunction::Straight
        } else if is_one_of(&self.short.0.repeatable) {
            InlineFunction::Repeatable(function.slot)
        } else {
            return None;
        };
        self.short.is_for(call).then_some(kind)
    }

    /// Returns the next slot; all assigned slots are below it.
    pub(super) fn slots(&self) -> u32 {
        self.shared.functions.next()
    }

    /// Takes over from an earlier state of the same script: keeps the functions of these handlers alive, and never assigns slots below
    /// `slots`.
    pub(super) fn keep(&mut self, handlers: Vec<Handler>, slots: u32) {
        self.kept = handlers;
        self.shared.functions.skip_to(slots);
    }

    /// Calls a function with as many of these arguments as it has parameters. Fails if it needs more.
    pub(super) fn call(
        &self,
        function: &Function,
        arguments: Vec<Dynamic>,
    ) -> Result<Dynamic, Raised> {
        // Captured values may be nested too deep for the operator's stack.
        if !control::is_inline() {
            self.shared.functions.sweep();
        }
        let pointer = self.shared.functions.find(function).ok_or_else(|| {
            Raised::of_host(format!("the function {} is no longer loaded", function.name))
        })?;
        // The call was aborted while it waited for its turn: it must have no effect.
        if let Some(abort) = control::overdue() {
            return Err(errors::aborted(abort));
        }
        let result = self.invoke(&pointer, arguments);
        // Some of Rhai's functions swallow the abort of a function that they call.
        if let Some(abort) = control::overdue() {
            let place = (self.shared.name.as_str(), &*self.shared.sources);
            return Err(match result {
                Ok(_) => errors::aborted(abort),
                Err(error) => errors::place_of_abort(*error, abort, place),
            });
        }
        control::keep_result();
        match result.map_err(|error| *error) {
            // `exit` ends the call with a value.
            Ok(value) | Err(EvalAltResult::Exit(value, _)) => Ok(value),
            Err(error) => Err(self.raised(error)),
        }
    }

    fn invoke(
        &self,
        pointer: &FnPtr,
        mut arguments: Vec<Dynamic>,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let taken = self.parameters(pointer, arguments.len())?;
        arguments.truncate(taken);
        let context = NativeCallContext::new_with_all_fields(
            &self.engine,
            pointer.fn_name(),
            None,
            &self.global,
            Position::NONE,
        );
        pointer.call_raw(&context, None, arguments)
    }

    /// Returns how many of the offered arguments a function takes: handlers need not declare arguments that they do not use.
    fn parameters(&self, pointer: &FnPtr, offered: usize) -> Result<usize, Box<EvalAltResult>> {
        self.shared.parameters(pointer, offered).map_err(|wrong| {
            let gets = format!("it is called with {offered}");
            problem(too_many_parameters(pointer, wrong, &gets))
        })
    }

    /// Converts the result of a function of such a handler into JSON. Fails if it is not data or too large.
    pub(super) fn result(value: &Dynamic, kind: Kind) -> Result<Value, Raised> {
        let room = SizeLimit::of_result(Some(kind), control::sizes().0);
        Self::unless_over(value::to_kept("the result", value, (room, 0)).map_err(errors::of_value))
    }

    /// Converts a value that the script passes to the host into JSON. Fails if it is not data.
    pub(super) fn json(name: &str, value: &Dynamic) -> Result<Value, Raised> {
        Self::unless_over(value::to_json(name, value).map_err(errors::of_value))
    }

    fn unless_over(json: Result<Value, Raised>) -> Result<Value, Raised> {
        // An abort takes precedence: it may be why the value could not be read to its end.
        control::overdue().map_or(json, |abort| Err(errors::aborted(abort)))
    }

    fn raised(&self, error: EvalAltResult) -> Raised {
        errors::raised(error, &self.shared.name, &self.shared.sources)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, ScriptId, Shared, Source, Terms, engine};
    use crate::scripting::Placement;

    #[test]
    fn the_language_measures_no_value() {
        let (source, terms) = (Source::alone("it.rhai", ""), Terms::from(Placement::Threads));
        let shared = Arc::new(Shared::of(ScriptId(0), &source, &terms));
        let engine = engine(&shared, &source, &terms.limits);
        // With any of these limits, each operation measures a value with everything inside of it: filling a list takes quadratic time.
        let limits = [engine.max_array_size(), engine.max_map_size(), engine.max_string_size()];
        assert_eq!(limits, [0; 3]);
    }
}
