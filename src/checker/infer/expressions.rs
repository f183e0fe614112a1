//! Checks expressions and names.

use super::{
    super::{
        known,
        tree::{Expr, ExprKind, MemberAccess, Name, Span},
        types::Type,
    },
    InferenceWalk, Rule,
    spot::{SpotKind, offset},
};

impl<'a> InferenceWalk<'_, 'a> {
    /// Walks an expression whose value is not tracked any further.
    pub(super) fn value(&mut self, value: &Expr<'a>) -> Type {
        let ty = self.expr(value);
        self.escape(&ty);
        ty
    }

    /// Walks an expression, and returns its type.
    pub(super) fn expr(&mut self, value: &Expr<'a>) -> Type {
        if !self.step() {
            return Type::Any;
        }
        match &value.kind {
            ExprKind::Nil | ExprKind::Bool(_) | ExprKind::Rest => Type::Any,
            ExprKind::Number(_) => Type::Number,
            ExprKind::Text(_) => Type::Text,
            ExprKind::Interpolated(parts) => {
                self.values(parts);
                Type::Text
            }
            ExprKind::Name(name) => self.name(name, value.span, false),
            ExprKind::Member(of, name, access) => {
                let holder = self.expr(of);
                self.note_member(&holder, *name);
                if let (Type::Module(module), MemberAccess::Scoped) = (&holder, access) {
                    self.module_variable(*module, of, *name);
                }
                self.member(&holder, of, *name)
            }
            ExprKind::Index(of, key) => {
                let holder = self.expr(of);
                self.value(key);
                match holder {
                    Type::View => Type::View,
                    Type::Object(schema, writes) => match schema.item() {
                        Some(item) => Type::Object(item, writes),
                        None => Type::Any,
                    },
                    Type::ListOf(item) => known::type_of(*item),
                    _ => Type::Any,
                }
            }
            ExprKind::Call(function, arguments) => self.call(value.span, function, arguments),
            ExprKind::Method(of, name, arguments) => self.method(of, *name, arguments),
            ExprKind::Function(function) => {
                self.function(function);
                Type::Function(function.id)
            }
            ExprKind::Table(items) => {
                for item in items {
                    self.key(&item.key);
                    self.value(&item.value);
                }
                Type::Any
            }
            ExprKind::List(items) => {
                self.values(items);
                Type::Any
            }
            ExprKind::Not(inner) => self.condition(inner),
            ExprKind::Unary(inner) => {
                self.value(inner);
                Type::Any
            }
            ExprKind::Binary(operator, left, right) => self.binary(operator, left, right),
            ExprKind::Parens(inner) => self.expr(inner),
            ExprKind::Choice(parts) => {
                let [condition, first, second] = parts.as_ref();
                self.condition(condition);
                let first = self.value(first);
                first.join(self.value(second))
            }
            ExprKind::Block(body) => {
                self.scoped(|walk| walk.statements(body));
                Type::Any
            }
        }
    }

    fn binary(&mut self, operator: &str, left: &Expr<'a>, right: &Expr<'a>) -> Type {
        let (expr, left) = (left, self.value(left));
        if matches!(operator, "and" | "or" | "&&" | "||")
            && !matches!(expr.kind, ExprKind::Binary(..))
        {
            // `a and 0 or 1` is a conditional expression.
            self.truth(expr, &left);
        }
        let right = self.value(right);
        match operator {
            ".." if self.is_lua() => Type::Text,
            "or" | "and" | "??" => left.join(right),
            "+" | "-" | "*" | "/" | "//" | "%" | "^" if self.is_lua() => Type::Number,
            _ => Type::Any,
        }
    }

    /// Handles the use of a name, which may be the function of a call.
    pub(super) fn name(&mut self, name: &'a str, span: Span, is_called: bool) -> Type {
        let ty = self.type_of_name(name, span, is_called);
        self.note_name(name, span, &ty);
        ty
    }

    /// Records a name without a path.
    pub(super) fn note_name(&mut self, name: &'a str, span: Span, ty: &Type) {
        self.note(Name { text: name, span }, |walk| {
            let declared = walk.variable(name).and_then(|it| walk.names.get(it)).copied();
            let declared =
                declared.or_else(|| walk.facts.globals.get_key_value(name).map(|it| *it.0));
            let declared = declared.or_else(|| walk.tops.get_key_value(name).map(|it| *it.0));
            let declared = declared.or_else(|| walk.functions.get_key_value(name).map(|it| *it.0));
            let at = declared.and_then(|it| offset(walk.text.content, it));
            SpotKind::Name(ty.clone(), walk.visible(), at)
        });
    }

    fn type_of_name(&mut self, name: &'a str, span: Span, is_called: bool) -> Type {
        if let Some(id) = self.variable(name) {
            return self.types.get(id).cloned().unwrap_or(Type::Any);
        }
        // The table of all globals allows assignments to any of them.
        self.next.is_dynamic |= name == "_G";
        let known = if self.is_lua() { self.global(name) } else { self.top(name) };
        if let Some(known) = known {
            return known;
        }
        if self.reports {
            self.report_unknown(name, span, is_called);
        }
        Type::Any
    }

    pub(super) fn report_unknown(&mut self, name: &'a str, span: Span, is_called: bool) {
        let mut visible = self.visible();
        visible.extend(known::sections());
        if self.is_lua() {
            visible.extend(known::lua::FUNCTIONS.iter().map(|(it, _)| *it));
            visible.extend(known::lua::LIBRARIES.iter().map(|(it, _)| *it));
        } else if is_called {
            visible.extend(known::rhai::FUNCTIONS.iter().map(|(it, _)| *it));
        }
        let hint = known::hint("", name, visible);
        let (rule, what) = if is_called {
            (Rule::UnknownFunction, "function")
        } else {
            (Rule::UnknownVariable, "variable")
        };
        self.report(rule, span, format!("there is no {what} `{name}`"), hint);
    }

    /// Returns the type of a global of Lua, if it exists.
    fn global(&self, name: &str) -> Option<Type> {
        if let Some((count, ty)) = self.facts.globals.get(name) {
            return Some(if *count == 1 { ty.clone() } else { Type::Any });
        }
        if self.next.globals.contains_key(name) || self.program.globals.contains(name) {
            return Some(Type::Any);
        }
        if let Some(section) = known::section(name) {
            return Some(Type::Section(section));
        }
        if let Some((library, members)) = known::lua::LIBRARIES.iter().find(|(it, _)| *it == name) {
            return Some(Type::Std(library, members));
        }
        if let Some((_, arguments)) = known::lua::FUNCTIONS.iter().find(|(it, _)| *it == name) {
            let function = |it: (usize, usize)| Type::StdFunction(name.into(), it);
            return Some(arguments.map_or(Type::Any, function));
        }
        let is_dynamic = self.facts.is_dynamic || self.program.is_dynamic;
        (known::lua::UNCHECKED.contains(&name) || is_dynamic).then_some(Type::Any)
    }

    /// Returns the type of a name of Rhai's top level, if it exists.
    fn top(&self, name: &str) -> Option<Type> {
        if let Some(ty) = self.tops.get(name) {
            return Some(ty.clone());
        }
        if let Some(functions) = self.functions.get(name) {
            let [(_, id)] = functions.as_slice() else { return Some(Type::Any) };
            return Some(Type::Function(*id));
        }
        if let Some(section) = known::section(name) {
            return Some(Type::Section(section));
        }
        matches!(name, "this" | "global" | "_").then_some(Type::Any)
    }
}
