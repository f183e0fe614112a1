//! Statements as they are run: included files are inserted in place, so that everything is one tree.

use std::collections::BTreeSet;

use minijinja::{
    machinery::{
        Span,
        ast::{
            Break, Call, CallBlock, Const, Continue, Do, EmitExpr, Expr, FilterBlock, ForLoop,
            FromImport, GetAttr, IfCond, Import, Include, List, Macro, Map, Set, SetBlock, Spanned,
            Stmt, Template, WithBlock,
        },
    },
    value::Value,
};

use super::{
    blocks::{TemplateFamily, bodies, is_super},
    sources::TemplateSources,
    tree::{Compiled, ExpressionConverter, ITEMS, PAIRS, Problem, through, variable, wrong},
};

/// Maximum nesting of files that include and extend each other, including the blocks between them.
const DEPTH_MAX: usize = 16;
/// Maximum number of statements of all files, counted for each inclusion.
const STATEMENTS_MAX: usize = 100_000;

/// Merges the statements of all files.
pub(super) struct Builder<'a, 't> {
    tree: ExpressionConverter<'a, 't>,
    texts: &'t TemplateSources,
    parsed: &'t [Stmt<'a>],
    /// The files around the current statement, the innermost last.
    around: Vec<usize>,
    /// The files that are being included, the innermost last.
    families: Vec<TemplateFamily<'a, 't>>,
    statements: usize,
}

impl<'a, 't> Builder<'a, 't> {
    /// Creates a builder for these files, the template itself first.
    pub(super) fn new(
        texts: &'t TemplateSources,
        parsed: &'t [Stmt<'a>],
        filters: &'t BTreeSet<&'t str>,
        is_strict: bool,
    ) -> Self {
        let mut namespaces = BTreeSet::new();
        for it in parsed {
            collect_namespaces(it, &mut namespaces);
        }
        let tree = ExpressionConverter { is_strict, filters, namespaces };
        Builder { tree, texts, parsed, around: Vec::new(), families: Vec::new(), statements: 0 }
    }

    /// Returns the whole template.
    pub(super) fn build(&mut self) -> Compiled<Stmt<'a>> {
        let span = Span::default();
        let children = self.file(0, span)?;
        Ok(Stmt::Template(Spanned::new(Template { children }, span)))
    }

    /// Returns the statements of a file; if it extends another file, those of that one with its blocks.
    fn file(&mut self, place: usize, span: Span) -> Compiled<Vec<Stmt<'a>>> {
        let family = TemplateFamily::of(place, (self.texts, self.parsed), DEPTH_MAX)?;
        self.count(family.statements)?;
        let files = family.files.clone();
        // Not the extended ones: what is included in a block may extend the same ones.
        self.enter(place, span)?;
        self.families.push(family);
        let mut statements = Vec::new();
        for (number, place) in files.iter().enumerate() {
            let (Some(Stmt::Template(file)), Some(text)) =
                (self.parsed.get(*place), self.texts.0.get(*place))
            else {
                continue;
            };
            if number + 1 < files.len() {
                let definitions = file.children.iter().filter(|it| is_definition(it));
                definitions.into_iter().try_for_each(|it| self.add(it, &mut statements))?;
                continue;
            }
            for (number, it) in file.children.iter().enumerate() {
                match it {
                    // The empty lines in front of the file are not part of it.
                    Stmt::EmitRaw(raw) if number == 0 => {
                        let rest = raw.raw.get(text.lines_before..).unwrap_or_default();
                        statements.push(emitted(rest, raw.span()));
                    }
                    _other => self.add(it, &mut statements)?,
                }
            }
        }
        self.around.pop();
        self.families.pop();
        Ok(statements)
    }

    /// Enters a nested file.
    fn enter(&mut self, place: usize, span: Span) -> Compiled<()> {
        if self.around.contains(&place) || self.depth() >= DEPTH_MAX {
            let name = self.texts.0.get(place).and_then(|it| it.name.as_deref());
            let name = name.unwrap_or_default();
            return wrong(
                span,
                format!("\"{name}\" includes itself, or is included {DEPTH_MAX} levels deep"),
            );
        }
        self.around.push(place);
        Ok(())
    }

    fn depth(&self) -> usize {
        self.around.len() + self.families.iter().map(|it| it.around.len()).sum::<usize>()
    }

    fn count(&mut self, statements: usize) -> Compiled<()> {
        self.statements += statements;
        if self.statements > STATEMENTS_MAX {
            let message = format!("the template has more than {STATEMENTS_MAX} statements");
            return Err(Problem { line: 0, message });
        }
        Ok(())
    }

    /// Returns a body of a block, with a separate scope of variables.
    fn block(&mut self, name: &'a str, number: usize, span: Span) -> Compiled<Stmt<'a>> {
        if self.depth() >= DEPTH_MAX {
            let message = format!("the block `{name}` is more than {DEPTH_MAX} levels deep");
            return wrong(span, message);
        }
        let Some(family) = self.families.last_mut() else { return wrong(span, NO_SUPER) };
        let Some(body) = family.body(name, number) else { return wrong(span, NO_SUPER) };
        family.around.push((name, number));
        let body = self.body(body)?;
        if let Some(family) = self.families.last_mut() {
            family.around.pop();
        }
        Ok(Stmt::WithBlock(Spanned::new(WithBlock { assignments: Vec::new(), body }, span)))
    }

    fn body(&mut self, statements: &[Stmt<'a>]) -> Compiled<Vec<Stmt<'a>>> {
        let mut made = Vec::with_capacity(statements.len());
        for it in statements {
            self.add(it, &mut made)?;
        }
        Ok(made)
    }

    fn add(&mut self, statement: &Stmt<'a>, to: &mut Vec<Stmt<'a>>) -> Compiled<()> {
        self.count(1)?;
        match statement {
            Stmt::EmitExpr(it) if is_super(&it.expr) => {
                let around = self.families.last().and_then(|it| it.around.last().copied());
                let Some((name, number)) = around else { return wrong(it.span(), NO_SUPER) };
                to.push(self.block(name, number + 1, it.span())?);
            }
            Stmt::EmitExpr(it) => {
                let made = EmitExpr { expr: self.tree.value(&it.expr)? };
                to.push(Stmt::EmitExpr(Spanned::new(made, it.span())));
            }
            Stmt::EmitRaw(it) => to.push(emitted(it.raw, it.span())),
            Stmt::ForLoop(it) => to.push(self.repeated(it)?),
            Stmt::IfCond(it) => {
                let expr = self.tree.condition(&it.expr)?;
                let true_body = self.body(&it.true_body)?;
                let false_body = self.body(&it.false_body)?;
                let made = IfCond { expr, true_body, false_body };
                to.push(Stmt::IfCond(Spanned::new(made, it.span())));
            }
            Stmt::WithBlock(it) => {
                let assigned = it
                    .assignments
                    .iter()
                    .map(|(target, value)| Ok((self.target(target)?, self.tree.value(value)?)));
                let assignments = assigned.collect::<Compiled<_>>()?;
                let made = WithBlock { assignments, body: self.body(&it.body)? };
                to.push(Stmt::WithBlock(Spanned::new(made, it.span())));
            }
            Stmt::Set(it) => to.push(self.set(it)?),
            Stmt::SetBlock(it) => {
                let filter = it.filter.as_ref().map(|it| self.tree.filters_of_block(it));
                let (target, filter) = (self.target(&it.target)?, filter.transpose()?);
                let made = SetBlock { target, filter, body: self.body(&it.body)? };
                to.push(Stmt::SetBlock(Spanned::new(made, it.span())));
            }
            Stmt::FilterBlock(it) => {
                let filter = self.tree.filters_of_block(&it.filter)?;
                let body = self.body(&it.body)?;
                let made = FilterBlock { filter, filter_span: it.filter_span, body };
                to.push(Stmt::FilterBlock(Spanned::new(made, it.span())));
            }
            Stmt::Include(it) => to.push(self.include(it, it.span())?),
            Stmt::Import(it) => self.import(it, it.span(), to)?,
            Stmt::FromImport(it) => self.import_names(it, it.span(), to)?,
            Stmt::Macro(it) => to.push(Stmt::Macro(self.declared(it)?)),
            Stmt::CallBlock(it) => {
                let call = self.tree.call(&it.call, it.call.span())?;
                let macro_decl = self.declared(&it.macro_decl)?;
                let made = CallBlock { call, call_expr_span: it.call_expr_span, macro_decl };
                to.push(Stmt::CallBlock(Spanned::new(made, it.span())));
            }
            Stmt::Do(it) => {
                let call = self.tree.call(&it.call, it.call.span())?;
                to.push(Stmt::Do(Spanned::new(Do { call }, it.span())));
            }
            Stmt::Continue(it) => to.push(Stmt::Continue(Spanned::new(Continue, it.span()))),
            Stmt::Break(it) => to.push(Stmt::Break(Spanned::new(Break, it.span()))),
            Stmt::Block(it) => to.push(self.block(it.name, 0, it.span())?),
            Stmt::Extends(it) => {
                return wrong(it.span(), "`extends` is only allowed at the top level of a file");
            }
            Stmt::AutoEscape(it) => {
                return wrong(it.span(), "unsupported `{% autoescape %}`; use the filter `escape`");
            }
            Stmt::Template(it) => to.extend(self.body(&it.children)?),
        }
        Ok(())
    }

    fn repeated(&mut self, it: &Spanned<ForLoop<'a>>) -> Compiled<Stmt<'a>> {
        let is_pairs = matches!(&it.target, Expr::List(names) if names.items.len() == 2);
        let filter = if is_pairs { PAIRS } else { ITEMS };
        let filtered = it.filter_expr.as_ref().map(|it| self.tree.condition(it));
        let made = ForLoop {
            target: self.target(&it.target)?,
            iter: through(filter, self.tree.value(&it.iter)?, None),
            filter_expr: filtered.transpose()?,
            recursive: it.recursive,
            body: self.body(&it.body)?,
            else_body: self.body(&it.else_body)?,
        };
        Ok(Stmt::ForLoop(Spanned::new(made, it.span())))
    }

    fn set(&mut self, it: &Spanned<Set<'a>>) -> Compiled<Stmt<'a>> {
        let expr = match namespace_of(it) {
            Some((_, call)) => self.tree.namespace(call, call.span())?,
            None => self.tree.value(&it.expr)?,
        };
        let made = Set { target: self.target(&it.target)?, expr };
        Ok(Stmt::Set(Spanned::new(made, it.span())))
    }

    /// Returns the target of an assignment: names, fields of namespaces, or several of them.
    fn target(&self, target: &Expr<'a>) -> Compiled<Expr<'a>> {
        let span = target.span();
        match target {
            Expr::Var(it) => Ok(variable(it.id, span)),
            Expr::GetAttr(it) => match &it.expr {
                Expr::Var(base) if self.tree.namespaces.contains(base.id) => {
                    let expr = variable(base.id, base.span());
                    Ok(Expr::GetAttr(Spanned::new(GetAttr { expr, name: it.name }, span)))
                }
                _other => wrong(span, "only fields of a `namespace()` can be assigned"),
            },
            Expr::List(it) => {
                let items = it.items.iter().map(|it| self.target(it)).collect::<Compiled<_>>()?;
                Ok(Expr::List(Spanned::new(List { items }, span)))
            }
            _other => wrong(span, "expected a name to assign to"),
        }
    }

    fn declared(&mut self, it: &Spanned<Macro<'a>>) -> Compiled<Spanned<Macro<'a>>> {
        let args = it.args.iter().map(|it| self.target(it)).collect::<Compiled<_>>()?;
        let defaults = it.defaults.iter().map(|it| self.tree.value(it)).collect::<Compiled<_>>()?;
        let body = self.body(&it.body)?;
        Ok(Spanned::new(Macro { name: it.name, args, defaults, body }, it.span()))
    }

    /// Returns the index of an included file; `None` if there is no such file.
    fn included(&self, name: &Expr<'a>) -> Compiled<(String, Option<usize>)> {
        let constant = match name {
            Expr::Const(it) => it.value.as_str(),
            _computed => None,
        };
        match constant {
            Some(it) => Ok((it.to_owned(), self.texts.place(it))),
            None => wrong(name.span(), "expected the name of a file in quotes"),
        }
    }

    fn existing(&self, name: &Expr<'a>) -> Compiled<usize> {
        let (shown, place) = self.included(name)?;
        place.map_or_else(
            || wrong(name.span(), format!("there is no \"{shown}\" next to the script")),
            Ok,
        )
    }

    fn include(&mut self, it: &Include<'a>, span: Span) -> Compiled<Stmt<'a>> {
        let place = match self.included(&it.name)? {
            (_, None) if it.ignore_missing => None,
            _other => Some(self.existing(&it.name)?),
        };
        let body = place.map_or_else(|| Ok(Vec::new()), |it| self.file(it, span))?;
        Ok(Stmt::WithBlock(Spanned::new(WithBlock { assignments: Vec::new(), body }, span)))
    }

    /// Returns the macros and variables of a file, whose output is discarded.
    fn definitions(
        &mut self,
        place: usize,
        span: Span,
        to: &mut Vec<Stmt<'a>>,
    ) -> Compiled<Vec<&'a str>> {
        let mut names = Vec::new();
        for it in self.file(place, span)? {
            match &it {
                Stmt::Macro(declared) => names.push(declared.name),
                Stmt::Set(set) => match &set.target {
                    Expr::Var(name) if !self.tree.namespaces.contains(name.id) => {
                        names.push(name.id);
                    }
                    _other => {}
                },
                _text => continue,
            }
            to.push(it);
        }
        Ok(names)
    }

    fn import(&mut self, it: &Import<'a>, span: Span, to: &mut Vec<Stmt<'a>>) -> Compiled<()> {
        let place = self.existing(&it.expr)?;
        let names = self.definitions(place, span, to)?;
        let key = |it: &&'a str| Expr::Const(Spanned::new(Const { value: Value::from(*it) }, span));
        let keys = names.iter().map(key).collect();
        let values = names.iter().map(|it| variable(it, span)).collect();
        let expr = Expr::Map(Spanned::new(Map { keys, values }, span));
        let made = Set { target: self.target(&it.name)?, expr };
        to.push(Stmt::Set(Spanned::new(made, span)));
        Ok(())
    }

    fn import_names(
        &mut self,
        it: &FromImport<'a>,
        span: Span,
        to: &mut Vec<Stmt<'a>>,
    ) -> Compiled<()> {
        let place = self.existing(&it.expr)?;
        let names = self.definitions(place, span, to)?;
        for (name, alias) in &it.names {
            let Expr::Var(wanted) = name else { continue };
            if !names.contains(&wanted.id) {
                return wrong(span, format!("the file has no macro or variable `{}`", wanted.id));
            }
            if let Some(alias) = alias {
                let made = Set { target: self.target(alias)?, expr: variable(wanted.id, span) };
                to.push(Stmt::Set(Spanned::new(made, span)));
            }
        }
        Ok(())
    }
}

const NO_SUPER: &str = "`super()` can only be used in a block that the extended file also defines";

/// Returns whether a statement outside of blocks matters in a file that extends another one.
fn is_definition(statement: &Stmt<'_>) -> bool {
    matches!(
        statement,
        Stmt::Set(_) | Stmt::SetBlock(_) | Stmt::Macro(_) | Stmt::Import(_) | Stmt::FromImport(_)
    )
}

/// Returns raw output as a value, so that its length is counted.
fn emitted(raw: &str, span: Span) -> Stmt<'_> {
    let expr = Expr::Const(Spanned::new(Const { value: Value::from(raw) }, span));
    Stmt::EmitExpr(Spanned::new(EmitExpr { expr }, span))
}

/// Returns the name and the call of `{% set name = namespace(…) %}`.
fn namespace_of<'a, 's>(set: &'s Set<'a>) -> Option<(&'a str, &'s Spanned<Call<'a>>)> {
    match (&set.target, &set.expr) {
        (Expr::Var(name), Expr::Call(call)) => match &call.expr {
            Expr::Var(function) if function.id == "namespace" => Some((name.id, call)),
            _other => None,
        },
        _other => None,
    }
}

fn collect_namespaces<'a>(statement: &Stmt<'a>, to: &mut BTreeSet<&'a str>) {
    if let Stmt::Set(it) = statement {
        to.extend(namespace_of(it).map(|(name, _)| name));
    }
    for it in bodies(statement).into_iter().flatten() {
        collect_namespaces(it, to);
    }
}
