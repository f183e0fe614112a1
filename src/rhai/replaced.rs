//! Calls of functions of the program that would call functions of the script instead.
//!
//! For Rhai, `host.fail("x")` is a method call, and a function `fail` of the script with one parameter is a method of every value: Rhai
//! would call it silently, and endlessly if it is the caller itself. Such a script should be refused.

use rhai::{AST, ASTNode, Expr, Position};

use super::names;

/// A call of a function of the program that would call a function of the script.
#[derive(Debug)]
pub struct ReplacedCall {
    /// The value of the program whose function is called, such as `host`.
    pub owner: String,
    /// The name of the function.
    pub name: String,
    /// Where the name is in the script.
    pub position: Position,
}

/// Returns the first such call of a function of `host` or of one of the libraries.
///
/// Uses of a library's name are ambiguous if the script declares it as a variable: then its calls are not examined.
pub fn find(ast: &AST, host: &str, libraries: &[&str]) -> Option<ReplacedCall> {
    let libraries: Vec<_> = libraries.iter().filter(|it| !names::is_declared(ast, it)).collect();
    let mut found = None;
    ast.walk(&mut |path| {
        if let Some(ASTNode::Expr(Expr::Dot(dot, ..))) = path.last()
            && let Expr::Variable(receiver, ..) = &dot.lhs
            && (receiver.1 == host || libraries.contains(&&receiver.1.as_str()))
            && let Some((name, arguments, position)) = method(&dot.rhs)
            && ast.iter_functions().any(|it| it.name == name && it.params.len() == arguments)
        {
            let (owner, name) = (receiver.1.to_string(), name.to_owned());
            found = Some(ReplacedCall { owner, name, position });
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

#[cfg(test)]
mod tests {
    use rhai::Engine;

    use super::find;

    /// Returns the call that this script would replace.
    fn replaced(text: &str) -> Option<String> {
        let ast = Engine::new().compile(text).unwrap();
        let found = find(&ast, "host", &["library", "other"])?;
        Some(format!("{}.{} in {:?}", found.owner, found.name, found.position))
    }

    #[test]
    fn a_function_of_the_same_name_and_parameters_replaces_a_method() {
        for (text, found) in [
            ("fn fail(a) { host.fail(a) }", Some("host.fail in 1:19")),
            ("host.fail(1).x; fn fail(a) { }", Some("host.fail in 1:6")),
            ("host.fail(1)[0]; fn fail(a) { }", Some("host.fail in 1:6")),
            ("let x = library.fail(1); fn fail(a) { }", Some("library.fail in 1:17")),
            ("host.fail(1, 2); fn fail(a) { }", None),
            ("host::fail(1); fn fail(a) { }", None),
            ("value.fail(1); fn fail(a) { }", None),
            ("host.fail(1);", None),
        ] {
            assert_eq!(replaced(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn a_library_that_the_script_declares_is_not_meant() {
        assert!(replaced("let library = 1; library.fail(1); fn fail(a) { }").is_none());
        assert!(replaced("let library = 1; other.fail(1); fn fail(a) { }").is_some());
        assert!(replaced("fn fail(library) { library.fail(1) }").is_none());
        assert!(replaced("let host = 1; host.fail(1); fn fail(a) { }").is_some());
    }
}
