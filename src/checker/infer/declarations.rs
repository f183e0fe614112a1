//! Checks declarations of handlers.

use super::{
    super::{
        tree::{Expr, ExprKind, ItemKey, Span, TableItem},
        types::{Ctx, DeclaredHandler, Type},
    },
    InferenceWalk, Rule,
};
use crate::logic::handlers::handler::Kind;
use crate::scripting::surface::Signature;

impl<'a> InferenceWalk<'_, 'a> {
    /// Checks a declaration: `kopf.on_create("pods", { retries = 3 }, function(ctx) … end)`.
    pub(super) fn declares(
        &mut self,
        path: &str,
        (signature, kind): (&'static Signature, Kind),
        span: Span,
        arguments: &[Expr<'a>],
    ) {
        let options = arguments.iter().position(|it| matches!(it.bare().kind, ExprKind::Table(_)));
        let last = arguments.len().checked_sub(1);
        // The words of the selector: those before the options and the function.
        let words = arguments.iter().take(options.or(last).unwrap_or_default());
        let words: Option<Vec<&str>> = words.map(Expr::literal).collect();
        let is_literal = words.is_some() || !signature.selects;
        let words = words.filter(|_| signature.selects).unwrap_or_default();
        let items = match options.and_then(|it| arguments.get(it)).map(|it| &it.bare().kind) {
            Some(ExprKind::Table(items)) => items.as_slice(),
            Some(_) | None => &[],
        };
        let declared = declared(kind, items);
        // An unknown option may be a misspelt `interval`, and is reported as unknown.
        let is_other = |name: &str| {
            !matches!(name, "interval" | "idle" | "schedule")
                && signature.options.iter().any(|it| it.name == name)
        };
        if kind == Kind::Timer && is_literal && names(items).all(|it| it.is_some_and(is_other)) {
            let message = format!("{path} without `interval` calls the function only once");
            let hint = "add `interval`, such as \"10m\"; or `idle`, to call it when the object has not changed for a while";
            self.report(Rule::TimerInterval, span, message, Some(hint.into()));
        }
        let object = self.program.kind_of(&words);
        for (place, argument) in arguments.iter().enumerate() {
            if Some(place) == options {
                self.options(path, signature, argument);
                continue;
            }
            if signature.selects {
                self.note_selector(argument);
            }
            let ty = self.expr(argument);
            match ty {
                Type::Function(id) if Some(place) == last => {
                    let mut ctx = Ctx::of(kind.category());
                    ctx.kind = object;
                    ctx.declared = Some(declared);
                    self.record(id, 0, Type::Ctx(ctx));
                }
                _ => self.escape(&ty),
            }
        }
    }
}

/// Options that do not filter changes.
const UNFILTERED: &[&str] = &["id", "param", "errors", "timeout", "retries", "backoff"];
/// Options that limit the attempts.
const BOUNDS: &[&str] = &["errors", "timeout", "retries"];

/// Returns the names of options; `None` for a name that is computed.
fn names<'i, 'a>(
    items: &'i [TableItem<'a>],
) -> impl Iterator<Item = Option<&'a str>> + use<'i, 'a> {
    items.iter().map(|it| match &it.key {
        ItemKey::Name(name) => Some(name.text),
        ItemKey::Place | ItemKey::Computed(_) => None,
    })
}

fn declared(kind: Kind, options: &[TableItem<'_>]) -> DeclaredHandler {
    let is_among = |all: &[&str], it: Option<&str>| it.is_none_or(|it| all.contains(&it));
    DeclaredHandler {
        kind,
        is_filtered: !names(options).all(|it| it.is_some() && is_among(UNFILTERED, it)),
        is_bounded: names(options).any(|it| is_among(BOUNDS, it)),
    }
}
