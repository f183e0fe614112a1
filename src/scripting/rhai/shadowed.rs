//! Functions of a script that Rhai would call instead of those of `kopf`.
//!
//! For Rhai, `kopf.fail("x")` is a method call, and a function `fail` of the script with one parameter is a method of
//! everything: it would be called, silently, and endlessly if it is the caller itself. Such a script is refused.

use rhai::{AST, ASTNode, Expr, Position};

use super::errors::Refused;

/// The first call of `kopf` that means a function of the script, and what to do about it.
pub(super) fn find(ast: &AST) -> Option<(Position, Refused)> {
    let mut found = None;
    ast.walk(&mut |path| {
        if let Some(ASTNode::Expr(Expr::Dot(dot, ..))) = path.last()
            && let Expr::Variable(receiver, ..) = &dot.lhs
            && receiver.1 == "kopf"
            && let Some((name, arguments, position)) = method(&dot.rhs)
            && ast.iter_functions().any(|it| it.name == name && it.params.len() == arguments)
        {
            found = Some((position, refused(name)));
        }
        found.is_none()
    });
    found
}

/// Name, number of arguments and place of a method call, also if more follows after it.
fn method(expression: &Expr) -> Option<(&str, usize, Position)> {
    if let Expr::MethodCall(call, position) = expression {
        return Some((&call.name, call.args.len(), *position));
    }
    if let Expr::Dot(chain, ..) | Expr::Index(chain, ..) = expression {
        return method(&chain.lhs);
    }
    None
}

fn refused(name: &str) -> Refused {
    Refused {
        message: format!("`kopf.{name}(…)` would call the function `{name}` of this script"),
        hint: Some(format!("write `kopf::{name}(…)`, or rename the function")),
    }
}
