//! Files that extend others: which body each block has.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::machinery::ast::{Expr, Stmt};

use super::{
    sources::TemplateSources,
    tree::{Compiled, wrong},
};

/// A file and those that it extends.
pub(super) struct TemplateFamily<'a, 't> {
    /// Their indexes, that of the file itself first.
    pub(super) files: Vec<usize>,
    /// The bodies of each block, in the order of the files.
    bodies: BTreeMap<&'a str, Vec<&'t [Stmt<'a>]>>,
    /// The blocks around the current statement, with the number of the body.
    pub(super) around: Vec<(&'a str, usize)>,
    /// The number of statements that were read.
    pub(super) statements: usize,
}

impl<'a, 't> TemplateFamily<'a, 't> {
    /// Reads the file at this index and those that it extends.
    pub(super) fn of(
        place: usize,
        (texts, parsed): (&TemplateSources, &'t [Stmt<'a>]),
        depth_max: usize,
    ) -> Compiled<Self> {
        let (bodies, around) = (BTreeMap::new(), Vec::new());
        let mut family = TemplateFamily { files: Vec::new(), bodies, around, statements: 0 };
        let mut next = Some(place);
        while let Some(place) = next.take() {
            family.files.push(place);
            let Some(Stmt::Template(file)) = parsed.get(place) else { break };
            let mut own = BTreeSet::new();
            for it in &file.children {
                family.collect(it, &mut own)?;
                let Stmt::Extends(extends) = it else { continue };
                let span = extends.span();
                let name = match &extends.name {
                    Expr::Const(it) => it.value.as_str(),
                    _computed => None,
                };
                let Some(name) = name else {
                    return wrong(span, "expected the name of a file in quotes");
                };
                let Some(extended) = texts.place(name) else {
                    return wrong(span, format!("there is no \"{name}\" next to the script"));
                };
                if family.files.contains(&extended) || family.files.len() >= depth_max {
                    let message =
                        format!("\"{name}\" extends itself, or is extended {depth_max} times");
                    return wrong(span, message);
                }
                if next.replace(extended).is_some() {
                    return wrong(span, "a template can extend only one file");
                }
            }
        }
        Ok(family)
    }

    /// Returns a body of a block; number 0 is that of the file itself, if it has one.
    pub(super) fn body(&self, name: &str, number: usize) -> Option<&'t [Stmt<'a>]> {
        self.bodies.get(name)?.get(number).copied()
    }

    /// Collects the blocks of a file.
    fn collect(&mut self, statement: &'t Stmt<'a>, own: &mut BTreeSet<&'a str>) -> Compiled<()> {
        self.statements += 1;
        if let Stmt::Block(it) = statement {
            if !own.insert(it.name) {
                return wrong(it.span(), format!("the block `{}` is defined twice", it.name));
            }
            self.bodies.entry(it.name).or_default().push(&it.body);
        }
        for it in bodies(statement).into_iter().flatten() {
            self.collect(it, own)?;
        }
        Ok(())
    }
}

/// Returns the statements inside of a statement.
pub(super) fn bodies<'s, 'a>(statement: &'s Stmt<'a>) -> [&'s [Stmt<'a>]; 2] {
    match statement {
        Stmt::Template(it) => [&it.children, &[]],
        Stmt::ForLoop(it) => [&it.body, &it.else_body],
        Stmt::IfCond(it) => [&it.true_body, &it.false_body],
        Stmt::WithBlock(it) => [&it.body, &[]],
        Stmt::SetBlock(it) => [&it.body, &[]],
        Stmt::FilterBlock(it) => [&it.body, &[]],
        Stmt::Macro(it) => [&it.body, &[]],
        Stmt::CallBlock(it) => [&it.macro_decl.body, &[]],
        Stmt::Block(it) => [&it.body, &[]],
        Stmt::EmitExpr(_)
        | Stmt::EmitRaw(_)
        | Stmt::AutoEscape(_)
        | Stmt::Extends(_)
        | Stmt::Set(_)
        | Stmt::Include(_)
        | Stmt::Import(_)
        | Stmt::FromImport(_)
        | Stmt::Do(_)
        | Stmt::Continue(_)
        | Stmt::Break(_) => [&[], &[]],
    }
}

/// Returns whether an expression is `super()`.
pub(super) fn is_super(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Call(call) => {
            matches!(&call.expr, Expr::Var(it) if it.id == "super") && call.args.is_empty()
        }
        _other => false,
    }
}
