//! Functions of a script that Rhai would call instead of those of `kopf` and of the libraries.
//!
//! For Rhai, `kopf.fail("x")` is a method call, and a function `fail` of the script with one parameter is a method of every value: Rhai
//! would call it silently, and endlessly if it is the caller itself. Such a script is refused.

use rhai::{AST, ASTNode, Expr, Position, Stmt};

use crate::logic::handlers::declare::DeclareError;
use crate::scripting::functions::LIBRARIES;

/// Returns the first call of a host function that would call a function of the script, with the error to report.
pub(super) fn find(ast: &AST) -> Option<(Position, DeclareError)> {
    let libraries: Vec<_> = LIBRARIES.iter().map(|it| it.name).collect();
    let libraries: Vec<_> = libraries.into_iter().filter(|it| !declares(ast, it)).collect();
    let mut found = None;
    ast.walk(&mut |path| {
        if let Some(ASTNode::Expr(Expr::Dot(dot, ..))) = path.last()
            && let Expr::Variable(receiver, ..) = &dot.lhs
            && (receiver.1 == "kopf" || libraries.contains(&receiver.1.as_str()))
            && let Some((name, arguments, position)) = method(&dot.rhs)
            && ast.iter_functions().any(|it| it.name == name && it.params.len() == arguments)
        {
            found = Some((position, refused(&receiver.1, name)));
        }
        found.is_none()
    });
    found
}

/// Returns name, number of arguments and place of a method call, also if more follows after it.
fn method(expression: &Expr) -> Option<(&str, usize, Position)> {
    if let Expr::MethodCall(call, position) = expression {
        return Some((&call.name, call.args.len(), *position));
    }
    if let Expr::Dot(chain, ..) | Expr::Index(chain, ..) = expression {
        return method(&chain.lhs);
    }
    None
}

/// Returns whether the script declares a variable of this name anywhere: then uses of the name are ambiguous.
fn declares(ast: &AST, name: &str) -> bool {
    let mut found = ast.iter_functions().any(|it| it.params.contains(&name));
    ast.walk(&mut |path| {
        found |= match path.last() {
            Some(ASTNode::Stmt(Stmt::Var(variable, ..))) => variable.0.name == name,
            Some(ASTNode::Stmt(Stmt::For(variable, ..))) => variable.0.name == name,
            _ => false,
        };
        !found
    });
    found
}

fn refused(owner: &str, name: &str) -> DeclareError {
    DeclareError::new(
        format!("`{owner}.{name}(…)` would call the function `{name}` of this script"),
        format!("write `{owner}::{name}(…)`, or rename the function"),
    )
}
