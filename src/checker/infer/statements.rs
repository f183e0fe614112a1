//! Checks statements.

use super::{
    super::{
        known,
        tree::{Expr, ExprKind, FunctionNode, ItemKey, Name, Stmt},
        types::Type,
    },
    InferenceWalk, Rule,
};
use crate::scripting::{Language, module_file, module_library};

impl<'a> InferenceWalk<'_, 'a> {
    pub(super) fn statements(&mut self, body: &[Stmt<'a>]) {
        for statement in body {
            if !self.step() {
                return;
            }
            self.statement(statement);
        }
    }

    fn block(&mut self, body: &[Stmt<'a>]) {
        self.scoped(|walk| walk.statements(body));
    }

    fn statement(&mut self, statement: &Stmt<'a>) {
        match statement {
            Stmt::Declare(names, values) => self.declaration(names, values),
            Stmt::Assign(targets, values) => self.assignment(targets, values),
            Stmt::Expr(value) => drop(self.value(value)),
            Stmt::Function(target, function) => self.defined(target, function),
            Stmt::LocalFunction(name, function) => {
                self.declare(name.text, Type::Function(function.id));
                self.function(function);
            }
            Stmt::NamedFunction(_, function) => {
                let around = std::mem::take(&mut self.scopes);
                self.function(function);
                self.scopes = around;
            }
            Stmt::Block(body) => self.block(body),
            Stmt::While(condition, body) => self.repeated(condition, |walk| {
                // `while 1 do` is intended.
                if matches!(condition.bare().kind, ExprKind::Number(_)) {
                    walk.value(condition);
                } else {
                    walk.condition(condition);
                }
                walk.in_branch(|walk| walk.block(body));
            }),
            Stmt::Repeat(body, condition) => self.repeated(condition, |walk| {
                walk.scoped(|walk| {
                    walk.statements(body);
                    walk.condition(condition);
                });
            }),
            Stmt::If(branches, otherwise) => {
                for (condition, body) in branches {
                    self.condition(condition);
                    self.in_branch(|walk| walk.block(body));
                }
                self.in_branch(|walk| walk.block(otherwise.as_deref().unwrap_or_default()));
            }
            Stmt::Count(name, bounds, body) => {
                self.values(bounds);
                self.scoped(|walk| {
                    walk.declare(name.text, Type::Number);
                    walk.statements(body);
                });
            }
            Stmt::Each(names, values, body) => self.each(names, values, body),
            Stmt::Return(values) => {
                self.activity += 1;
                self.returned(values);
            }
            Stmt::Jump => self.activity += 1,
            Stmt::Import(path, name) => {
                let module = self.imported(path);
                if let Some(name) = name {
                    self.declare(name.text, module);
                }
            }
            Stmt::Try(body, name, handler) => {
                self.tries += 1;
                self.in_branch(|walk| walk.block(body));
                self.tries -= 1;
                self.scoped(|walk| {
                    if let Some(name) = name {
                        walk.declare(name.text, Type::Any);
                    }
                    walk.statements(handler);
                });
            }
            Stmt::Switch(all) => self.in_branch(|walk| walk.values(all)),
        }
    }

    fn declaration(&mut self, names: &[Name<'a>], values: &[Expr<'a>]) {
        let mut types = Vec::new();
        for (place, value) in values.iter().enumerate() {
            // The table of this variable, whose number is known already if it is the first.
            let is_table = matches!(value.bare().kind, ExprKind::Table(_)) && self.is_lua();
            let ty = self.expr(value);
            let is_own = is_table && place == 0 && names.len() == 1;
            types.push(if is_own { Type::Own(self.next_variable()) } else { ty });
        }
        for (place, name) in names.iter().enumerate() {
            let ty = types.get(place).cloned().unwrap_or(Type::Any);
            let is_last = place + 1 >= values.len() && names.len() > values.len();
            let ty = if is_last { Type::Any } else { ty };
            if let Type::Own(_) = ty
                && ty != Type::Own(self.next_variable())
            {
                // A second name for the table.
                self.escape(&ty);
            }
            let is_constant = self.is_constant(self.next_variable());
            if !is_constant {
                self.escape(&ty);
            }
            self.declare(name.text, ty);
        }
        for extra in types.iter().skip(names.len()) {
            self.escape(extra);
        }
    }

    fn is_constant(&self, variable: usize) -> bool {
        self.facts.variables.get(variable).is_some_and(|it| it.assigned == 0)
    }

    fn assignment(&mut self, targets: &[Expr<'a>], values: &[Expr<'a>]) {
        let types: Vec<Type> = values.iter().map(|it| self.expr(it)).collect();
        for (place, target) in targets.iter().enumerate() {
            let ty = types.get(place).cloned().unwrap_or(Type::Any);
            self.own_update(target, values.get(place));
            let holder = self.assign(target, ty);
            if let (Some(Type::Object(schema, true)), Some(value)) = (holder, values.get(place)) {
                self.fields_of(&schema, value);
            }
        }
        for extra in types.iter().skip(targets.len()) {
            self.escape(extra);
        }
    }

    /// Checks an assignment. Returns the type of the target, if it is a member and its type is known.
    fn assign(&mut self, target: &Expr<'a>, ty: Type) -> Option<Type> {
        match &target.bare().kind {
            ExprKind::Name(name) => {
                if let Some(id) = self.variable(name) {
                    self.escape(&ty);
                    self.note_name(name, target.span, &Type::Any);
                    if let Some(variable) = self.next.variables.get_mut(id) {
                        variable.assigned += 1;
                    }
                } else if self.is_lua() {
                    if let Type::Own(_) = ty {
                        self.escape(&ty);
                    }
                    self.assign_global(name, ty);
                } else {
                    self.escape(&ty);
                    self.name(name, target.span, false);
                }
            }
            ExprKind::Member(of, name, _) => {
                self.next.fields.insert(name.text);
                self.escape(&ty);
                let holder = self.expr(of);
                self.note_member(&holder, *name);
                return self.assign_member(&holder, of, *name);
            }
            ExprKind::Index(of, key) => {
                self.escape(&ty);
                let holder = self.expr(of);
                self.value(key);
                match key.literal() {
                    Some(name) => drop(self.next.fields.insert(name)),
                    None => self.escape(&holder),
                }
                if matches!(holder, Type::View | Type::Object(_, false)) {
                    self.read_only(target);
                }
            }
            _ => {
                self.escape(&ty);
                self.value(target);
            }
        }
        None
    }

    fn assign_global(&mut self, name: &'a str, ty: Type) {
        let known = self.next.globals.entry(name).or_insert((0, ty));
        known.0 += 1;
    }

    /// Checks an assignment to a member.
    fn assign_member(&mut self, holder: &Type, of: &Expr<'a>, name: Name<'a>) -> Option<Type> {
        match holder {
            Type::Ctx(ctx) if ctx.is_certain() => {
                let shown = self.written(of.span, "ctx");
                let message = format!("{shown}.{} cannot be assigned", name.text);
                let hint = "change the object through `ctx.patch`, keep data in `ctx.memo`";
                self.report(Rule::ReadOnly, name.span, message, Some(hint.into()));
            }
            Type::View | Type::Object(_, false) => {
                let shown = self.written(of.span, "this value");
                let message = format!("{shown} is read-only");
                let hint = "change the object through `ctx.patch`, or change a `kopf.copy` of it";
                self.report(Rule::ReadOnly, of.span, message, Some(hint.into()));
            }
            Type::Class(_) | Type::Object(_, true) => return Some(self.member(holder, of, name)),
            _ => {}
        }
        None
    }

    fn read_only(&mut self, target: &Expr<'a>) {
        let message = "this value is read-only".to_owned();
        let hint = "change the object through `ctx.patch`, or change a `kopf.copy` of it";
        self.report(Rule::ReadOnly, target.span, message, Some(hint.into()));
    }

    /// Checks a function statement of Lua, such as `function a.b() end`.
    fn defined(&mut self, target: &Expr<'a>, function: &FunctionNode<'a>) {
        let own = Type::Function(function.id);
        match &target.kind {
            ExprKind::Name(name) if self.variable(name).is_none() => self.assign_global(name, own),
            ExprKind::Name(_) => drop(self.assign(target, own)),
            _ => {
                self.next.escaped.insert(function.id);
                if let ExprKind::Member(of, name, _) = &target.kind {
                    self.next.fields.insert(name.text);
                    self.expr(of);
                }
            }
        }
        self.function(function);
    }

    fn each(&mut self, names: &[Name<'a>], values: &[Expr<'a>], body: &[Stmt<'a>]) {
        let types: Vec<Type> = values.iter().map(|it| self.value(it)).collect();
        let item = match types.first() {
            Some(Type::ListOf(item)) => known::type_of(**item),
            Some(Type::View) => Type::View,
            Some(Type::Object(schema, writes)) => {
                schema.item().map_or(Type::Any, |it| Type::Object(it, *writes))
            }
            Some(_) | None => Type::Any,
        };
        let place = usize::from(self.is_lua());
        let key = self.key_of_loop(names, values, types.first());
        self.scoped(|walk| {
            for (at, name) in names.iter().enumerate() {
                let ty = if at == place { item.clone() } else { Type::Any };
                let ty = if at == 0 { key.clone().unwrap_or(ty) } else { ty };
                walk.declare(name.text, ty);
            }
            walk.in_branch(|walk| walk.statements(body));
        });
    }

    fn returned(&mut self, values: &[Expr<'a>]) {
        let types: Vec<Type> = values.iter().map(|it| self.expr(it)).collect();
        self.result(values, &types);
        let is_module = self.depth == 0 && self.is_lua() && self.scopes.len() == 1;
        if let ([ty @ Type::Own(_)], true) = (types.as_slice(), is_module) {
            self.next.returned = Some(ty.clone());
            return;
        }
        for ty in &types {
            self.escape(ty);
        }
    }

    pub(super) fn values(&mut self, all: &[Expr<'a>]) {
        for value in all {
            self.value(value);
        }
    }

    /// Returns the module of an `import`.
    pub(super) fn imported(&mut self, path: &Expr<'a>) -> Type {
        self.value(path);
        path.literal().map_or(Type::Any, |it| self.module(it))
    }

    /// Returns the module with this name.
    pub(super) fn module(&mut self, name: &str) -> Type {
        let is_lua = self.is_lua();
        let name = name.strip_prefix("./").unwrap_or(name);
        let mut path = name.to_owned();
        if is_lua && !name.contains("..") {
            path = name.strip_suffix(".lua").unwrap_or(name).replace('.', "/");
        }
        if let Some(library) = module_library(&path) {
            return known::section(library).map_or(Type::Any, Type::Section);
        }
        let extension = match self.text.language {
            Language::Lua => "lua",
            Language::Rhai => "rhai",
        };
        let Ok(file) = module_file(&path, extension) else { return Type::Any };
        let found = self.program.files.iter().position(|it| std::path::Path::new(it) == file);
        if found.is_none() {
            self.next.missing.insert(file);
        }
        // A file of the script has precedence.
        found
            .map(Type::Module)
            .or_else(|| known::section(name).map(Type::Section))
            .unwrap_or(Type::Any)
    }

    /// Walks the keys of a table.
    pub(super) fn key(&mut self, key: &ItemKey<'a>) {
        match key {
            ItemKey::Place => {}
            ItemKey::Name(name) => drop(self.next.fields.insert(name.text)),
            ItemKey::Computed(key) => {
                self.value(key);
                self.next.fields.extend(key.literal());
            }
        }
    }
}
