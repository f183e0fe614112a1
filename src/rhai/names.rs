//! Names in a script: of variables, properties and functions.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Expr, ImmutableString, Stmt};

/// The methods that change a string.
const CHANGING: [&str; 13] = [
    "append",
    "clear",
    "crop",
    "make_lower",
    "make_upper",
    "pad",
    "pop",
    "push",
    "remove",
    "replace",
    "set",
    "trim",
    "truncate",
];

/// Returns the functions that the script defines, with the number of parameters of each; several for overloads.
pub fn functions(ast: &AST) -> BTreeMap<String, Vec<usize>> {
    let mut arities = BTreeMap::<String, Vec<usize>>::new();
    for function in ast.iter_functions() {
        arities.entry(function.name.to_owned()).or_default().push(function.params.len());
    }
    arities
}

/// Returns the variables that are assigned to, in the whole script. Assignments to their fields and items do not count.
pub fn assigned(ast: &AST) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    ast.walk(&mut |path| {
        if let Some(ASTNode::Stmt(Stmt::Assignment(assignment))) = path.last()
            && let Expr::Variable(variable, ..) = &assignment.1.lhs
        {
            names.insert(variable.1.to_string());
        }
        true
    });
    names
}

/// Returns the properties that are read or written, as in `value.name`; up to `max`.
pub fn properties(ast: &AST, max: usize) -> BTreeSet<ImmutableString> {
    let mut names = BTreeSet::new();
    ast.walk(&mut |path| {
        if let Some(ASTNode::Expr(Expr::Property(property, _))) = path.last() {
            names.insert(property.2.clone());
        }
        names.len() < max
    });
    names
}

/// Returns the loop variables that only their loop changes: they are none of the [`assigned`] ones, and no method that changes a string
/// is called on them.
pub fn loop_constants(ast: &AST, assigned: &BTreeSet<String>) -> BTreeSet<String> {
    let (mut names, mut changed) = (BTreeSet::new(), assigned.clone());
    ast.walk(&mut |path| {
        if let Some(ASTNode::Stmt(Stmt::For(variables, _))) = path.last() {
            names.insert(variables.0.name.to_string());
        }
        if let Some(ASTNode::Expr(Expr::Dot(dot, ..))) = path.last()
            && let (Expr::Variable(variable, ..), Expr::MethodCall(call, _)) = (&dot.lhs, &dot.rhs)
            && CHANGING.contains(&call.name.as_str())
        {
            changed.insert(variable.1.to_string());
        }
        true
    });
    names.difference(&changed).cloned().collect()
}

/// Returns whether the script declares a variable or a parameter of this name anywhere.
pub fn is_declared(ast: &AST, name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use rhai::{AST, Engine};

    use super::{assigned, functions, is_declared, loop_constants, properties};

    fn compiled(text: &str) -> AST {
        Engine::new().compile(text).unwrap()
    }

    #[test]
    fn loop_variables_that_only_their_loop_changes_are_known() {
        let ast = compiled(
            "for a in 0..3 { print(a); } for b in 0..3 { b = 1; } for c in [`x`] { c.trim(); } fn f(e) { for d in e { d.len(); } }",
        );
        let assigned = assigned(&ast);
        assert_eq!(Vec::from_iter(&assigned), ["b"]);
        assert_eq!(Vec::from_iter(loop_constants(&ast, &assigned)), ["a", "d"]);
    }

    #[test]
    fn functions_and_properties_are_listed() {
        let ast = compiled("fn f(a) { a.x.y } fn f(a, b) { a.x = b?.z; } fn g() { }");
        let found = functions(&ast);
        assert_eq!(found["f"].len() + found["g"].len(), 3);
        assert!(found["f"].contains(&1) && found["f"].contains(&2) && found["g"] == [0]);
        assert_eq!(Vec::from_iter(properties(&ast, 9)), ["x", "y", "z"]);
        assert_eq!(properties(&ast, 1).len(), 1);
    }

    #[test]
    fn a_declaration_is_found_wherever_it_is() {
        for text in ["let a = 1;", "fn f(a) { }", "fn f() { for a in 0..3 { print(a); } }"] {
            assert!(is_declared(&compiled(text), "a"), "{text}");
        }
        assert!(!is_declared(&compiled("fn a(b) { let c = 1; }"), "a"));
    }
}
