//! Checks calls of functions.

use super::{
    super::{
        known,
        tree::{Expr, ExprKind, ItemKey, MemberAccess, Name, Span},
        types::Type,
    },
    InferenceWalk, Rule, lints, literals,
    spot::SpotKind,
};
use crate::logic::handlers::declare;
use crate::scripting::surface::{Callback, Item, ItemShape, Signature, Ty};

/// Functions that return whole objects.
const OBJECTS: &[&str] = &["kube.apply", "kube.create", "kube.get", "kube.patch", "kube.replace"];

impl<'a> InferenceWalk<'_, 'a> {
    pub(super) fn call(&mut self, span: Span, function: &Expr<'a>, arguments: &[Expr<'a>]) -> Type {
        let callee = match &function.bare().kind {
            ExprKind::Name(name) if self.is_lua() => self.name(name, function.span, true),
            ExprKind::Name(name) => return self.call_of_rhai(name, function.span, arguments),
            ExprKind::Member(of, name, access) => {
                let holder = self.expr(of);
                self.note_member(&holder, *name);
                self.own_function(&holder, of, (*name, *access), arguments);
                self.member(&holder, of, *name)
            }
            _ => self.expr(function),
        };
        self.activity += usize::from(lints::call_may_wait(&callee));
        self.called(&callee, (function, span), arguments)
    }

    /// Checks the call of a value.
    fn called(
        &mut self,
        callee: &Type,
        (function, span): (&Expr<'a>, Span),
        arguments: &[Expr<'a>],
    ) -> Type {
        match callee {
            Type::Callable(path, item) => {
                if let ItemShape::Method(_) = item.shape
                    && self.is_lua()
                {
                    self.without_receiver(path, function, arguments);
                    self.values(arguments);
                    return Type::Any;
                }
                self.call_of_surface(path, item, function.span, arguments)
            }
            Type::StdFunction(path, bounds) => {
                self.call_of_language(path, *bounds, span, arguments)
            }
            Type::Function(id) => {
                for (place, argument) in arguments.iter().enumerate() {
                    let ty = self.expr(argument);
                    self.record(*id, place, ty);
                }
                Type::Any
            }
            _ => {
                self.values(arguments);
                Type::Any
            }
        }
    }

    /// Reports a method that is called as a function: `ctx.logger.info("x")`.
    fn without_receiver(&mut self, path: &str, function: &Expr<'a>, arguments: &[Expr<'a>]) {
        let ExprKind::Member(of, name, _) = &function.bare().kind else { return };
        let receiver = self.written(of.span, "it");
        let has_receiver = arguments.first().is_some_and(|it| {
            self.written(it.span, "") == receiver || matches!(it.kind, ExprKind::Name(_))
        });
        if !has_receiver {
            let hint = format!("write `{receiver}:{}(…)`", name.text);
            let message = format!("{path} is a method: call it with a colon");
            self.report(Rule::Arguments, name.span, message, Some(hint));
        }
    }

    /// Checks the call of a function of a table of the script, or of a module.
    fn own_function(
        &mut self,
        holder: &Type,
        of: &Expr<'a>,
        (name, access): (Name<'a>, MemberAccess),
        arguments: &[Expr<'a>],
    ) {
        let is_closed = match holder {
            Type::Own(id) => self.facts.variables.get(*id).is_some_and(|it| !it.is_open),
            Type::Module(module) if access == MemberAccess::Scoped => {
                self.function_of_module(*module, of, name, arguments.len());
                return;
            }
            Type::Module(module) => {
                self.program.exports.get(*module).is_some_and(|it| it.is_closed)
            }
            _ => false,
        };
        if is_closed && !self.program.fields.contains(name.text) && self.reports {
            let shown = self.written(of.span, "the table");
            let known = self.program.fields.iter().copied();
            let hint = known::hint(&format!("{shown}."), name.text, known);
            let message = format!("there is no function {shown}.{}", name.text);
            self.report(Rule::UnknownFunction, name.span, message, hint);
        }
    }

    fn function_of_module(&mut self, module: usize, of: &Expr<'a>, name: Name<'a>, given: usize) {
        let Some(exports) = self.program.exports.get(module).filter(|it| it.is_closed) else {
            return;
        };
        let shown = self.written(of.span, "the module");
        match exports.functions.get(name.text) {
            Some(arities) if !arities.contains(&given) => {
                let message = wrong_arity(&format!("{shown}::{}", name.text), arities, given);
                self.report(Rule::Arguments, name.span, message, None);
            }
            None if !exports.variables.contains(name.text) => {
                let known = exports.functions.keys().copied();
                let hint = known::hint(&format!("{shown}::"), name.text, known);
                let message = format!("there is no function {shown}::{}", name.text);
                self.report(Rule::UnknownFunction, name.span, message, hint);
            }
            Some(_) | None => {}
        }
    }

    fn call_of_language(
        &mut self,
        path: &str,
        (least, most): (usize, usize),
        span: Span,
        arguments: &[Expr<'a>],
    ) -> Type {
        if path == "require" {
            self.values(arguments);
            let name = arguments.first().and_then(Expr::literal);
            let module = name.map_or(Type::Any, |it| self.module(it));
            // An unknown module may assign to globals.
            self.next.is_dynamic |= module == Type::Any;
            return module;
        }
        let types: Vec<Type> = arguments.iter().map(|it| self.value(it)).collect();
        let is_open = arguments.last().is_some_and(expands);
        let given = arguments.len();
        if (given < least && !is_open) || given.saturating_sub(usize::from(is_open)) > most {
            let message = wrong_count(path, (least, most), given);
            self.report(Rule::Arguments, span, message, None);
        }
        match path {
            "tostring" | "string.format" | "string.rep" | "string.upper" | "string.lower" => {
                Type::Text
            }
            "ipairs" | "pairs" => types.into_iter().next().unwrap_or(Type::Any),
            _ => Type::Any,
        }
    }

    fn call_of_rhai(&mut self, name: &'a str, span: Span, arguments: &[Expr<'a>]) -> Type {
        self.note_name(name, span, &Type::Any);
        let given = arguments.len();
        let is_own = self.functions.contains_key(name) || known::rhai::find(name).is_none();
        self.activity += usize::from(is_own || matches!(name, "sleep" | "exit"));
        let is_variable = self.variable(name).is_some() || self.tops.contains_key(name);
        if is_variable {
            self.values(arguments);
            return Type::Any;
        }
        if let Some(functions) = self.functions.get(name).cloned() {
            let fitting = functions.iter().find(|(arity, _)| *arity == given);
            if let Some((_, id)) = fitting {
                for (place, argument) in arguments.iter().enumerate() {
                    let ty = self.expr(argument);
                    self.record(*id, place, ty);
                }
                return Type::Any;
            }
            self.values(arguments);
            if !is_of_rhai(name, given) {
                let arities: Vec<_> = functions.iter().map(|(arity, _)| *arity).collect();
                self.report(Rule::Arguments, span, wrong_arity(name, &arities, given), None);
            }
            return Type::Any;
        }
        self.values(arguments);
        if let Some(arities) = known::rhai::find(name) {
            if !is_of_rhai(name, given) {
                self.report(Rule::Arguments, span, wrong_arity(name, arities, given), None);
            }
        } else if !known::rhai::SYNTAX.contains(&name) && !known::is_method(name) {
            self.report_function(name, span);
        }
        Type::Any
    }

    fn report_function(&mut self, name: &'a str, span: Span) {
        // A library is not a function, but its name is known.
        if self.reports {
            self.report_unknown(name, span, true);
        }
    }

    /// Checks the call of a function of `kopf` or of a library.
    pub(super) fn call_of_surface(
        &mut self,
        path: &str,
        item: &'static Item,
        span: Span,
        arguments: &[Expr<'a>],
    ) -> Type {
        let Some(signature) = item.signature() else {
            self.values(arguments);
            return Type::Any;
        };
        if let Some(Ty::Handler(kind)) = signature.handler {
            self.declares(path, (signature, kind), span, arguments);
            return Type::Any;
        }
        self.call_outside(path, span, arguments);
        let options_at = options_at(signature, arguments);
        for (place, argument) in arguments.iter().enumerate() {
            if Some(place) == options_at {
                self.options(path, signature, argument);
                continue;
            }
            if path.starts_with("kube.") {
                self.note_selector(argument);
            }
            let ty = self.expr(argument);
            let parameter = signature.parameters.get(place).copied().or(signature.rest);
            if let Some(parameter) = parameter {
                self.argument(&ty, parameter.ty);
                if parameter.required || !matches!(argument.bare().kind, ExprKind::Nil) {
                    self.literal(&format!("{path}: `{}`", parameter.name), parameter.ty, argument);
                }
            } else {
                self.escape(&ty);
            }
        }
        self.count(path, signature, (span, options_at), arguments);
        if OBJECTS.contains(&path) {
            return Type::Whole;
        }
        signature.returns.map_or(Type::Any, known::type_of)
    }

    /// Records a string that names a resource.
    pub(super) fn note_selector(&mut self, word: &Expr<'a>) {
        if let ExprKind::Text(text) = word.bare().kind {
            self.note(Name { text, span: word.span }, |_| SpotKind::Selector);
        }
    }

    /// Checks the number of arguments.
    fn count(
        &mut self,
        path: &str,
        signature: &Signature,
        (span, options_at): (Span, Option<usize>),
        arguments: &[Expr<'a>],
    ) {
        let least = signature.parameters.iter().filter(|it| it.required).count();
        let most = match signature.rest {
            Some(_) => usize::MAX,
            None => signature.parameters.len() + usize::from(!signature.options.is_empty()),
        };
        let is_open = self.is_lua() && arguments.last().is_some_and(expands);
        let given = arguments.len();
        let placed = given - usize::from(options_at.is_some());
        if (placed < least && !is_open) || given.saturating_sub(usize::from(is_open)) > most {
            let message =
                format!("{path} takes {}, got {}", signature.told(), arguments_text(given));
            self.report(Rule::Arguments, span, message, None);
        }
    }

    /// Handles a value that is passed for a parameter of this type.
    pub(super) fn argument(&mut self, ty: &Type, parameter: Ty) {
        if let (Type::Function(id), Some(callback)) = (ty, callback(parameter)) {
            for (place, (_, ty)) in callback.parameters.iter().enumerate() {
                self.record(*id, place, known::type_of(*ty));
            }
            return;
        }
        self.escape(ty);
    }

    /// Walks options, and checks their names and values.
    pub(super) fn options(&mut self, path: &str, signature: &'static Signature, given: &Expr<'a>) {
        let ExprKind::Table(items) = &given.bare().kind else { return };
        for item in items {
            let key = match (&item.key, &item.value.kind) {
                (ItemKey::Name(name), _) => Some(*name),
                // A name whose value is not typed yet.
                (ItemKey::Place, ExprKind::Name(text)) => {
                    Some(Name { text, span: item.value.span })
                }
                _ => None,
            };
            if let Some(key) = key {
                self.note(key, |_| SpotKind::Option(signature));
            }
            self.key(&item.key);
            let ty = self.expr(&item.value);
            let ItemKey::Name(name) = &item.key else {
                self.escape(&ty);
                continue;
            };
            // Some functions accept positional parameters as options, too.
            let mut known = signature.options.iter().chain(&signature.parameters);
            let Some(option) = known.find(|it| it.name == name.text) else {
                self.escape(&ty);
                if self.reports {
                    let hint = match signature.handler {
                        Some(Ty::Handler(kind)) => declare::option_hint(kind, name.text),
                        _ => known::hint("", name.text, signature.options.iter().map(|it| it.name)),
                    };
                    let message = format!("{path} has no option `{}`", name.text);
                    self.report(Rule::UnknownOption, name.span, message, hint);
                }
                continue;
            };
            self.argument(&ty, option.ty);
            if !matches!(item.value.bare().kind, ExprKind::Nil) {
                self.literal(&format!("option `{}`", option.name), option.ty, &item.value);
            }
        }
    }

    /// Reports a literal of the wrong type.
    fn literal(&mut self, what: &str, ty: Ty, given: &Expr<'a>) {
        if !self.reports || literals::accepts(ty, given, self.text.language) {
            return;
        }
        let message = format!("{what}: expected {}, got {}", ty.told(), literals::described(given));
        self.report(Rule::Type, given.span, message, literals::hint(ty, given));
    }
}

/// Returns the signature of functions of this type.
fn callback(ty: Ty) -> Option<&'static Callback> {
    match ty {
        Ty::Function(callback) => Some(callback),
        Ty::Either(all) => all.iter().find_map(|it| callback(*it)),
        Ty::Maybe(inner) => callback(*inner),
        Ty::Any
        | Ty::Nothing
        | Ty::Boolean
        | Ty::Text
        | Ty::Words(_)
        | Ty::Integer
        | Ty::Number
        | Ty::Duration
        | Ty::Map
        | Ty::List
        | Ty::ListOf(_)
        | Ty::Object
        | Ty::Class(_)
        | Ty::Iterator
        | Ty::Handler(_) => None,
    }
}

/// Returns the position of the options, if they are a literal.
fn options_at(signature: &'static Signature, arguments: &[Expr<'_>]) -> Option<usize> {
    let place = arguments.len().checked_sub(1)?;
    let least = signature.parameters.iter().filter(|it| it.required).count();
    let is_table = matches!(arguments.last()?.bare().kind, ExprKind::Table(_));
    if signature.options.is_empty() || !is_table || place < least {
        return None;
    }
    let takes_maps = signature.parameters.get(place).is_some_and(|it| literals::takes_maps(it.ty));
    (!takes_maps).then_some(place)
}

/// Returns whether an argument of Lua may be any number of arguments.
fn expands(argument: &Expr<'_>) -> bool {
    matches!(argument.kind, ExprKind::Rest | ExprKind::Call(..) | ExprKind::Method(..))
}

/// Returns whether Rhai itself has a function with this number of arguments.
fn is_of_rhai(name: &str, given: usize) -> bool {
    known::rhai::find(name).is_some_and(|it| it.contains(&given))
        || known::rhai::SYNTAX.contains(&name)
}

fn arguments_text(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}

fn wrong_count(path: &str, (least, most): (usize, usize), given: usize) -> String {
    let bounds = match most {
        usize::MAX => format!("at least {}", arguments_text(least)),
        _ if most == least => arguments_text(least),
        _ => format!("{least} to {}", arguments_text(most)),
    };
    format!("{path} takes {bounds}, got {given}")
}

fn wrong_arity(name: &str, arities: &[usize], given: usize) -> String {
    let mut arities = arities.to_vec();
    arities.sort_unstable();
    arities.dedup();
    let (last, others) = arities.split_last().unwrap_or((&0, &[]));
    let before: Vec<String> = others.iter().map(ToString::to_string).collect();
    let before = if before.is_empty() { String::new() } else { before.join(", ") + " or " };
    format!("{name} takes {before}{}, got {given}", arguments_text(*last))
}
