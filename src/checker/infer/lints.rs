//! Lints: code that is valid, but probably a mistake.

use std::path::Path;

use url::Url;

use super::{
    super::{
        finding::Raw,
        known,
        schemas::SchemaPart,
        tree::{Expr, ExprKind, ItemKey, Name, Span},
        types::Type,
    },
    InferenceWalk, Rule,
};
use crate::logic::{
    access::grants::{Denied, Permission},
    handlers::handler::{Category, Kind},
};

/// Libraries whose functions never wait.
const COMPUTING: &[&str] = &[
    "base64", "check", "deep", "env", "hash", "json", "jwt", "quantity", "random", "re", "semver",
    "template", "text", "time", "uuid", "yaml",
];
/// Functions of Luau that leave the current function, or call others.
const LEAVING: &[&str] = &["assert", "error", "pcall", "require", "xpcall"];
/// Functions whose results differ each time.
const VOLATILE: &[&str] = &[
    "crypto.ca",
    "crypto.certificate",
    "crypto.csr",
    "crypto.fernet_encrypt",
    "crypto.fernet_key",
    "crypto.key",
    "hash.argon2",
    "hash.bcrypt",
    "math.random",
    "os.clock",
    "os.time",
    "random.bytes",
    "random.integer",
    "random.number",
    "random.string",
    "time.now",
    "time.stamp",
    "timestamp",
    "uuid.v4",
];
/// Functions that return different results for different arguments.
const FORMATTING: &[&str] =
    &["string.format", "to_string", "tostring", "time.format", "time.stamp"];

impl<'a> InferenceWalk<'_, 'a> {
    /// Walks code that runs only sometimes, or several times.
    pub(super) fn in_branch(&mut self, inside: impl FnOnce(&mut Self)) {
        self.branches += 1;
        inside(self);
        self.branches -= 1;
    }

    /// Walks a condition, and checks its truth.
    pub(super) fn condition(&mut self, condition: &Expr<'a>) -> Type {
        let ty = self.value(condition);
        self.truth(condition, &ty);
        Type::Any
    }

    /// Checks a value that is used as a boolean.
    pub(super) fn truth(&mut self, value: &Expr<'a>, ty: &Type) {
        let bare = value.bare();
        if let ExprKind::Binary("and" | "or" | "&&" | "||", _, right) = &bare.kind {
            // The left side was checked already.
            self.truth(right, &Type::Any);
            return;
        }
        if let Type::Class(section) = ty
            && section.name == "Stopped"
        {
            let shown = self.written(bare.span, "this");
            let message = format!("{shown} is the flag itself, not its value");
            let sign = if self.is_lua() { ":" } else { "." };
            let hint = format!(
                "write `{shown}{sign}is_set()`, or `{shown}{sign}wait(\"5s\")` to pause, too"
            );
            self.report(Rule::AlwaysTrue, bare.span, message, Some(hint));
            return;
        }
        let Some(what) = self.never_false(bare) else { return };
        let message = if self.is_lua() {
            format!("{what} is always true in Lua, also if it is 0 or \"\"")
        } else {
            format!("{what} is not a condition: Rhai accepts only true and false")
        };
        let shown = self.written(bare.span, "it");
        let (other, none) = if what == "a string" { ("~=", "\"\"") } else { (">", "0") };
        let other = if self.is_lua() || other == ">" { other } else { "!=" };
        self.report(
            Rule::AlwaysTrue,
            bare.span,
            message,
            Some(format!("compare it: `{shown} {other} {none}`")),
        );
    }

    /// Returns the type of a value that is certainly a number or a string.
    fn never_false(&self, value: &Expr<'a>) -> Option<&'static str> {
        let is_lua = self.is_lua();
        match &value.kind {
            ExprKind::Number(_)
            | ExprKind::Unary(_)
            | ExprKind::Binary("-" | "*" | "/" | "%", ..) => Some("a number"),
            ExprKind::Text(_) | ExprKind::Interpolated(_) => Some("a string"),
            ExprKind::Binary("+" | "//" | "^", ..) if is_lua => Some("a number"),
            ExprKind::Binary("..", ..) if is_lua => Some("a string"),
            ExprKind::Call(function, _) if is_lua => {
                let path = path_of(function);
                match path.as_deref()? {
                    "tostring" | "string.format" | "string.rep" | "string.lower"
                    | "string.upper" => Some("a string"),
                    "string.len" | "os.time" | "os.clock" | "math.floor" | "math.ceil"
                    | "math.max" | "math.min" | "math.abs" => Some("a number"),
                    _ => None,
                }
                .filter(|_| self.is_of_luau(function))
            }
            ExprKind::Method(_, name, arguments)
                if !is_lua && name.text == "len" && arguments.is_empty() =>
            {
                let is_own =
                    self.functions.contains_key("len") || self.program.fields.contains("len");
                (!is_own).then_some("a number")
            }
            _ => None,
        }
    }

    /// Returns whether the first name of a path is not a variable of the script.
    fn is_of_luau(&self, path: &Expr<'a>) -> bool {
        root_of(path)
            .is_some_and(|it| self.variable(it).is_none() && !self.facts.globals.contains_key(it))
    }

    /// Walks a loop, and reports one that never waits.
    pub(super) fn repeated(&mut self, condition: &Expr<'a>, inside: impl FnOnce(&mut Self)) {
        let before = self.activity;
        inside(self);
        let is_endless = match &condition.bare().kind {
            ExprKind::Bool(value) => *value,
            ExprKind::Number(_) => true,
            _ => mentions(condition, "stopped"),
        };
        if is_endless && self.activity == before {
            let message =
                "this loop never waits: it uses CPU time until the call reaches its limit"
                    .to_owned();
            let sign = if self.is_lua() { ":" } else { "." };
            let hint = format!("wait in the loop, such as with `ctx.stopped{sign}wait(\"5s\")`");
            self.report(Rule::BusyLoop, condition.span, message, Some(hint));
        }
    }

    /// Returns whether a method may wait, or leave a loop.
    pub(super) fn may_wait(&self, holder: &Type, name: &str) -> bool {
        match holder {
            Type::Class(section) => match section.name {
                "Logger" => false,
                "Stopped" => name != "is_set",
                _ => true,
            },
            Type::Section(section) => !COMPUTING.contains(&section.name),
            Type::Text => false,
            _ => self.is_lua() || self.functions.contains_key(name) || !known::is_of_rhai(name),
        }
    }

    /// Returns the type of the variable of a Luau loop that has only one variable: the key, not the item.
    pub(super) fn key_of_loop(
        &self,
        names: &[Name<'a>],
        values: &[Expr<'a>],
        ty: Option<&Type>,
    ) -> Option<Type> {
        let ([_], [value], true) = (names, values, self.is_lua()) else { return None };
        let called = match &value.bare().kind {
            ExprKind::Call(function, _) if self.is_of_luau(function) => path_of(function),
            _ => None,
        };
        let is_list = match ty {
            Some(Type::ListOf(_)) => true,
            Some(Type::Object(schema, _)) => schema.is_list(),
            Some(_) | None => match &value.bare().kind {
                ExprKind::Table(items) => {
                    !items.is_empty() && items.iter().all(|it| matches!(it.key, ItemKey::Place))
                }
                _ => false,
            },
        };
        if called.as_deref() == Some("ipairs") || is_list {
            return Some(Type::Place(true));
        }
        matches!(ty, Some(Type::View | Type::Object(..))).then_some(Type::Place(false))
    }

    /// Reports a key that is used as an item.
    pub(super) fn item_expected(&mut self, is_certain: bool, of: &Expr<'a>) {
        let shown = self.written(of.span, "it");
        let what = if is_certain { "the position in the list" } else { "the key" };
        let message = format!("{shown} is {what}, not the item");
        let hint = format!("write `for _, {shown} in … do`");
        self.report(Rule::LoopVariable, of.span, message, Some(hint));
    }

    /// Checks a write to the status of an object.
    pub(super) fn status_is_written(&mut self, schema: &SchemaPart, name: Name<'a>) {
        let kinds = self.program.knowledge.kinds.clone();
        let found = kinds.iter().enumerate().find(|(_, it)| schema.is_of(it) && !it.has_status);
        let Some((at, kind)) = found else { return };
        if self.reports && self.statuses.insert(at) {
            let shown = kind.names.first().map(String::as_str).unwrap_or_default();
            let message = format!("the CRD of {shown} has no `subresources.status`");
            let hint = "add `subresources: {status: {}}` to its version: otherwise, each change of the status counts as a change of \
                        the object, and anyone who may change the object may also change its status";
            self.report(Rule::StatusSubresource, name.span, message, Some(hint.into()));
        }
    }

    /// Returns the enclosing handler, if this is its own code.
    fn handler(&self) -> Option<super::DeclaredHandler> {
        self.handlers.last().copied().flatten()
    }

    /// Reports an assignment to the patch that changes the object each time, and so causes the same handler again.
    pub(super) fn own_update(&mut self, target: &Expr<'a>, value: Option<&Expr<'a>>) {
        let (Some(handler), Some(value), true) = (self.handler(), value, self.reports) else {
            return;
        };
        let Some(path) = path_of(target) else { return };
        let Some((holder, path)) = path.split_once(".patch.") else { return };
        let is_counted = match handler.kind {
            Kind::Event => true,
            Kind::Update => {
                path.starts_with("spec.")
                    || path.starts_with("metadata.labels.")
                    || path.starts_with("meta.labels.")
            }
            _ => false,
        };
        let is_ctx = self.variable(holder).and_then(|it| self.types.get(it));
        let is_ctx = matches!(is_ctx, Some(Type::Ctx(_)));
        if !is_counted || handler.is_filtered || self.branches > 0 || !is_ctx {
            return;
        }
        let own = format!("{holder}.{path}");
        if is_volatile(value) || counts(value, &own) {
            let message =
                "each call changes the object, and the change calls this handler again".to_owned();
            let hint = "change it only under a condition, keep the value in the status, or choose the changes with `field` or `when`";
            let hint = if handler.kind == Kind::Event {
                "change it only under a condition, or keep the value in `ctx.memo`"
            } else {
                hint
            };
            self.report(Rule::UpdateLoop, target.span, message, Some(hint.into()));
        }
    }

    /// Checks the values that a function returns.
    pub(super) fn result(&mut self, values: &[Expr<'a>], types: &[Type]) {
        let stores = self.handler().is_some_and(|it| it.kind.category() == Category::Changing);
        let ([value], [ty], true) = (values, types, stores) else { return };
        let is_object = match &value.bare().kind {
            ExprKind::Member(of, name, _) => {
                let ctx = match &of.bare().kind {
                    ExprKind::Name(name) => self.variable(name).and_then(|it| self.types.get(it)),
                    _ => None,
                };
                matches!(ctx, Some(Type::Ctx(_))) && matches!(name.text, "body" | "object")
            }
            _ => *ty == Type::Whole,
        };
        if is_object {
            let message =
                "the handler returns a whole object, which is stored in the status".to_owned();
            let hint = "return only what is needed, such as the name";
            self.report(Rule::WholeObject, value.span, message, Some(hint.into()));
        }
    }

    /// Checks whether a call of a function of the surface has external effects.
    pub(super) fn call_outside(&mut self, path: &str, span: Span, arguments: &[Expr<'a>]) {
        if !self.reports {
            return;
        }
        let Some((library, function)) = path.split_once('.') else { return };
        let is_free = |walk: &Self| {
            let handler = walk.handler();
            let changes = |it: super::DeclaredHandler| {
                it.kind.category() == Category::Changing && !it.is_bounded
            };
            walk.tries == 0 && handler.is_some_and(changes)
        };
        if library == "http" && is_free(self) {
            let message = format!("{path} may fail, and the handler has no limit of attempts");
            let hint = "add `retries` or `timeout` to the options of the handler";
            self.report(Rule::UnboundedRetries, span, message, Some(hint.into()));
        }
        let place = usize::from(path == "http.request");
        let wanted = match (library, arguments.get(place)) {
            ("http", Some(url)) => address(url),
            ("env", Some(name)) if function == "get" => name.literal().map(NeededAccess::Variable),
            ("files", Some(path)) => {
                path.literal().filter(|it| it.starts_with('/')).map(NeededAccess::File)
            }
            _ => None,
        };
        if let (Some(wanted), Some(argument)) = (wanted, arguments.get(place)) {
            self.granted(&wanted, argument.span);
        }
    }

    fn granted(&mut self, wanted: &NeededAccess<'_>, span: Span) {
        let Some(access) = self.program.knowledge.access.clone() else { return };
        let (is_granted, denied, permission) = match wanted {
            NeededAccess::Host(host, port) => {
                (access.allows_net(host, *port), Denied::net(host, *port), Permission::Net)
            }
            NeededAccess::Variable(name) => {
                (access.allows_env(name), Denied::env(name), Permission::Env)
            }
            NeededAccess::File(path) => {
                let path = Path::new(path);
                (access.allows_read(path), Denied::read(path), Permission::Read)
            }
        };
        if is_granted {
            return;
        }
        let (grant, message) =
            ((permission.option(), denied.wanted().to_owned()), denied.to_string());
        let (message, hint) = message.split_once("; ").unwrap_or((&message, ""));
        let raw = Raw {
            span,
            rule: Rule::NotGranted,
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
            grant: Some(grant),
        };
        self.found.push(raw);
    }
}

/// Returns whether a call may wait, or leave a loop.
pub(super) fn call_may_wait(callee: &Type) -> bool {
    match callee {
        Type::StdFunction(path, _) => LEAVING.contains(&&**path) || path.starts_with("coroutine."),
        Type::Callable(path, _) => {
            let library = path.split(['.', ':']).next().unwrap_or_default();
            !COMPUTING.contains(&library)
        }
        Type::Class(section) => section.name != "Stopped",
        _ => true,
    }
}

/// The access that a call needs.
enum NeededAccess<'a> {
    Host(String, u16),
    Variable(&'a str),
    File(&'a str),
}

/// Returns the host of a URL whose beginning is a literal.
fn address<'a>(url: &Expr<'_>) -> Option<NeededAccess<'a>> {
    let text = match &url.bare().kind {
        ExprKind::Binary(".." | "+", left, _) => {
            let mut first = left;
            while let ExprKind::Binary(".." | "+", left, _) = &first.bare().kind {
                first = left;
            }
            let text = first.literal()?;
            // The host ends here.
            text.split_once("://")?.1.contains('/').then_some(text)?
        }
        _ => url.literal()?,
    };
    let url = Url::parse(text).ok()?;
    Some(NeededAccess::Host(url.host_str()?.to_owned(), url.port_or_known_default()?))
}

/// Returns a name with its members: `ctx.patch.spec.x`. Paths of Rhai's libraries look the same.
fn path_of(value: &Expr<'_>) -> Option<String> {
    match &value.bare().kind {
        ExprKind::Name(name) => Some((*name).to_owned()),
        ExprKind::Member(of, name, _) => Some(format!("{}.{}", path_of(of)?, name.text)),
        _ => None,
    }
}

fn root_of<'a>(value: &Expr<'a>) -> Option<&'a str> {
    let mut it = value.bare();
    while let ExprKind::Member(of, ..) = &it.kind {
        it = of.bare();
    }
    match it.kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

/// Returns whether a condition depends on this member only.
fn mentions(value: &Expr<'_>, name: &str) -> bool {
    match &value.bare().kind {
        ExprKind::Not(inner) => mentions(inner, name),
        ExprKind::Member(of, member, _) | ExprKind::Method(of, member, _) => {
            member.text == name || mentions(of, name)
        }
        ExprKind::Call(function, _) => mentions(function, name),
        _ => false,
    }
}

/// Returns whether a value differs each time.
fn is_volatile(value: &Expr<'_>) -> bool {
    let called = |path: &str, arguments: &[Expr<'_>]| {
        let path = path.replace("::", ".");
        let is_plain = path != "time.stamp" || arguments.is_empty();
        (VOLATILE.contains(&path.as_str()) && is_plain)
            || (FORMATTING.contains(&path.as_str()) && arguments.iter().any(is_volatile))
    };
    match &value.bare().kind {
        ExprKind::Call(function, arguments) => {
            path_of(function).is_some_and(|it| called(&it, arguments))
        }
        ExprKind::Method(of, name, arguments) => {
            let library =
                path_of(of).is_some_and(|it| called(&format!("{it}.{}", name.text), arguments));
            library || (FORMATTING.contains(&name.text) && is_volatile(of))
        }
        ExprKind::Binary("..", left, right) => is_volatile(left) || is_volatile(right),
        ExprKind::Interpolated(parts) => parts.iter().any(is_volatile),
        _ => false,
    }
}

/// Returns whether a value is the field with something added.
fn counts(value: &Expr<'_>, path: &str) -> bool {
    let ExprKind::Binary("+" | "-" | "..", left, right) = &value.bare().kind else { return false };
    let is_literal = |it: &Expr<'_>| match &it.bare().kind {
        ExprKind::Number(text) => text.parse().is_ok_and(|it: f64| it != 0.0),
        ExprKind::Text(text) => text.len() > 2,
        _ => false,
    };
    let is_field = |it: &Expr<'_>| match &it.bare().kind {
        ExprKind::Binary("or" | "??", first, _) => path_of(first).as_deref() == Some(path),
        _ => path_of(it).as_deref() == Some(path),
    };
    (is_field(left) && is_literal(right)) || (is_literal(left) && is_field(right))
}
