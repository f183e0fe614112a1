//! Declarations of handlers.

use super::{
    super::{
        tree::{Expr, ExprKind},
        types::{Ctx, Type},
    },
    Walk,
};
use crate::logic::handlers::handler::Kind;
use crate::scripting::surface::Signature;

impl<'a> Walk<'_, 'a> {
    /// `kopf.on_create("pods", { retries = 3 }, function(ctx) … end)`
    pub(super) fn declares(
        &mut self,
        path: &str,
        (signature, kind): (&'static Signature, Kind),
        arguments: &[Expr<'a>],
    ) {
        let is_table = |it: &Expr<'_>| matches!(it.bare().kind, ExprKind::Table(_));
        let options = arguments.iter().position(is_table);
        let last = arguments.len().checked_sub(1);
        // The words of the selector: those before the options and the function.
        let words = arguments.iter().take(options.or(last).unwrap_or_default());
        let words: Option<Vec<&str>> = words.map(Expr::literal).collect();
        let words = words.filter(|_| signature.selects).unwrap_or_default();
        let object = self.program.kind_of(&words);
        for (place, argument) in arguments.iter().enumerate() {
            if Some(place) == options {
                self.options(path, signature, argument);
                continue;
            }
            let ty = self.expr(argument);
            match ty {
                Type::Function(id) if Some(place) == last => {
                    let mut ctx = Ctx::of(kind.category());
                    ctx.kind = object;
                    self.record(id, 0, Type::Ctx(ctx));
                }
                _ => self.escape(&ty),
            }
        }
    }
}
