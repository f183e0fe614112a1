//! Expressions as they are run: each one that computes is wrapped in a check, each path that must exist in another.
//!
//! The filters that check have names that no template can write. Nothing else in a template can create a value, so none is ever
//! larger than the limits, and the time is checked between any two steps that take long.

use std::collections::BTreeSet;

use minijinja::{
    machinery::{
        Span,
        ast::{
            BinOp, BinOpKind, Call, CallArg, Compare, CompareOp, Const, Expr, Filter, GetAttr,
            GetItem, IfExpr, List, Map, Slice, Spanned, Test, Tuple, UnaryOp, UnaryOpKind, Var,
        },
    },
    value::Value,
};

use super::filters;
use crate::scripting::values::text::did_you_mean;

/// Checks a computed value.
pub(super) const CHECKED: &str = "kopf:checked";
/// Turns a missing value into an error; its argument is the path.
pub(super) const NEEDED: &str = "kopf:needed";
/// Returns the items for a loop: those of a list, or the keys of a map.
pub(super) const ITEMS: &str = "kopf:items";
/// Returns the items for a loop with two names: pairs.
pub(super) const PAIRS: &str = "kopf:pairs";

/// Converts expressions to those that are run.
pub(super) struct ExpressionConverter<'a, 't> {
    pub(super) is_strict: bool,
    /// Filters of the script.
    pub(super) filters: &'t BTreeSet<&'t str>,
    /// Variables that hold the result of `namespace()`.
    pub(super) namespaces: BTreeSet<&'a str>,
}

/// Whether a missing value is an error at this position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A missing value is an error.
    Value,
    /// A missing value is false, or equal to none.
    Condition,
}

/// A problem with its line.
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) message: String,
}

pub(super) type Compiled<T> = Result<T, Problem>;

pub(super) fn wrong<T>(span: Span, message: impl Into<String>) -> Compiled<T> {
    Err(Problem { line: usize::from(span.start_line), message: message.into() })
}

/// Returns an expression with a filter of the host applied.
pub(super) fn through<'a>(
    name: &'static str,
    expression: Expr<'a>,
    argument: Option<String>,
) -> Expr<'a> {
    let span = expression.span();
    let args = argument
        .map(|it| CallArg::Pos(Expr::Const(Spanned::new(Const { value: Value::from(it) }, span))));
    let args = args.into_iter().collect();
    Expr::Filter(Spanned::new(Filter { name, expr: Some(expression), args }, span))
}

fn checked(expression: Expr<'_>) -> Expr<'_> {
    through(CHECKED, expression, None)
}

impl<'a> ExpressionConverter<'a, '_> {
    /// Converts an expression that is used as a value.
    pub(super) fn value(&self, expression: &Expr<'a>) -> Compiled<Expr<'a>> {
        self.expression(expression, Position::Value)
    }

    /// Converts an expression that is used as a condition.
    pub(super) fn condition(&self, expression: &Expr<'a>) -> Compiled<Expr<'a>> {
        self.expression(expression, Position::Condition)
    }

    fn expression(&self, expression: &Expr<'a>, place: Position) -> Compiled<Expr<'a>> {
        let span = expression.span();
        Ok(match expression {
            Expr::Var(it) => {
                self.check_name(it.id, span)?;
                self.needed(expression, variable(it.id, span), place)
            }
            Expr::Const(it) => constant(it, span),
            Expr::GetAttr(it) => {
                let made = GetAttr { expr: self.base(&it.expr)?, name: it.name };
                self.needed(expression, Expr::GetAttr(Spanned::new(made, span)), place)
            }
            Expr::GetItem(it) => {
                let subscript_expr = self.value(&it.subscript_expr)?;
                let is_plain = matches!(subscript_expr, Expr::Const(_));
                let made = GetItem { expr: self.base(&it.expr)?, subscript_expr };
                let made = Expr::GetItem(Spanned::new(made, span));
                let made = if is_plain { made } else { checked(made) };
                self.needed(expression, made, place)
            }
            Expr::Slice(it) => {
                let part = |it: &Option<Expr<'a>>| it.as_ref().map(|it| self.value(it)).transpose();
                let (start, stop, step) = (part(&it.start)?, part(&it.stop)?, part(&it.step)?);
                let expr = self.value(&it.expr)?;
                checked(Expr::Slice(Spanned::new(Slice { expr, start, stop, step }, span)))
            }
            Expr::UnaryOp(it) => self.unary(it, span)?,
            Expr::BinOp(it) => self.binary(it, span, place)?,
            Expr::Compare(it) => self.comparison(it, span)?,
            Expr::IfExpr(it) => {
                let test_expr = self.condition(&it.test_expr)?;
                let true_expr = self.expression(&it.true_expr, place)?;
                let other = |it: &Expr<'a>| self.expression(it, place);
                let false_expr = it.false_expr.as_ref().map(other).transpose()?;
                Expr::IfExpr(Spanned::new(IfExpr { test_expr, true_expr, false_expr }, span))
            }
            Expr::Filter(it) => checked(self.filter(it, span)?),
            Expr::Test(it) => self.test(it, span)?,
            Expr::Call(it) => checked(Expr::Call(self.call(it, span)?)),
            Expr::List(it) => {
                let made = Expr::List(Spanned::new(List { items: self.values(&it.items)? }, span));
                if it.as_const().is_some() { made } else { checked(made) }
            }
            Expr::Tuple(it) => {
                let made =
                    Expr::Tuple(Spanned::new(Tuple { items: self.values(&it.items)? }, span));
                if it.as_const().is_some() { made } else { checked(made) }
            }
            Expr::Map(it) => {
                let made = Map { keys: self.values(&it.keys)?, values: self.values(&it.values)? };
                let made = Expr::Map(Spanned::new(made, span));
                if it.as_const().is_some() { made } else { checked(made) }
            }
        })
    }

    fn values(&self, items: &[Expr<'a>]) -> Compiled<Vec<Expr<'a>>> {
        items.iter().map(|it| self.value(it)).collect()
    }

    /// Converts what precedes a dot or a bracket, including names that are not values.
    fn base(&self, expression: &Expr<'a>) -> Compiled<Expr<'a>> {
        match expression {
            Expr::Var(it) if it.id == "loop" || self.namespaces.contains(it.id) => {
                Ok(variable(it.id, it.span()))
            }
            _value => self.condition(expression),
        }
    }

    /// Rejects a loop or a namespace as a value: it could contain itself, and would never be freed.
    fn check_name(&self, name: &str, span: Span) -> Compiled<()> {
        if name == "loop" {
            return wrong(span, "`loop` can only be used with a field, as in `loop.index`");
        }
        if name == "namespace" {
            return wrong(span, "`namespace` can only be used in `{% set ns = namespace() %}`");
        }
        if self.namespaces.contains(name) {
            let message =
                format!("the namespace `{name}` can only be used with a field, as in `{name}.x`");
            return wrong(span, message);
        }
        Ok(())
    }

    fn needed(&self, original: &Expr<'_>, made: Expr<'a>, place: Position) -> Expr<'a> {
        if self.is_strict && place == Position::Value {
            through(NEEDED, made, Some(path(original)))
        } else {
            made
        }
    }

    fn unary(&self, it: &UnaryOp<'a>, span: Span) -> Compiled<Expr<'a>> {
        Ok(match it.op {
            UnaryOpKind::Not => {
                let made = UnaryOp { op: UnaryOpKind::Not, expr: self.condition(&it.expr)? };
                Expr::UnaryOp(Spanned::new(made, span))
            }
            UnaryOpKind::Neg => {
                let made = UnaryOp { op: UnaryOpKind::Neg, expr: self.value(&it.expr)? };
                checked(Expr::UnaryOp(Spanned::new(made, span)))
            }
        })
    }

    fn binary(&self, it: &BinOp<'a>, span: Span, place: Position) -> Compiled<Expr<'a>> {
        use BinOpKind::{
            Add, Concat, Div, Eq, FloorDiv, Gt, Gte, In, Lt, Lte, Mul, Ne, Pow, Rem, ScAnd, ScOr,
            Sub,
        };
        let (op, operands) = match it.op {
            ScAnd => (ScAnd, None),
            ScOr => (ScOr, None),
            Eq => (Eq, Some(Position::Condition)),
            Ne => (Ne, Some(Position::Condition)),
            Lt => (Lt, Some(Position::Condition)),
            Lte => (Lte, Some(Position::Condition)),
            Gt => (Gt, Some(Position::Condition)),
            Gte => (Gte, Some(Position::Condition)),
            In => (In, Some(Position::Condition)),
            Add => (Add, Some(Position::Value)),
            Sub => (Sub, Some(Position::Value)),
            Mul => (Mul, Some(Position::Value)),
            Div => (Div, Some(Position::Value)),
            FloorDiv => (FloorDiv, Some(Position::Value)),
            Rem => (Rem, Some(Position::Value)),
            Pow => (Pow, Some(Position::Value)),
            Concat => (Concat, Some(Position::Value)),
        };
        let Some(operands) = operands else {
            let left = self.condition(&it.left)?;
            let right = self.expression(&it.right, place)?;
            return Ok(Expr::BinOp(Spanned::new(BinOp { op, left, right }, span)));
        };
        let left = self.expression(&it.left, operands)?;
        let right = self.expression(&it.right, operands)?;
        Ok(checked(Expr::BinOp(Spanned::new(BinOp { op, left, right }, span))))
    }

    fn comparison(&self, it: &Compare<'a>, span: Span) -> Compiled<Expr<'a>> {
        let ops =
            it.ops.iter().map(|it| Ok(CompareOp { op: it.op, expr: self.condition(&it.expr)? }));
        let made = Compare { expr: self.condition(&it.expr)?, ops: ops.collect::<Compiled<_>>()? };
        Ok(checked(Expr::Compare(Spanned::new(made, span))))
    }

    /// Converts a chain of filters; those of blocks have no base.
    fn filter(&self, it: &Filter<'a>, span: Span) -> Compiled<Expr<'a>> {
        if !filters::is_known(it.name) && !self.filters.contains(it.name) {
            let known = filters::names().chain(self.filters.iter().copied());
            let near = did_you_mean(it.name, known, "");
            return wrong(span, format!("there is no filter `{}`{near}", it.name));
        }
        let place = match it.name {
            "default" | "d" | "mandatory" => Position::Condition,
            _other => Position::Value,
        };
        let expr = it.expr.as_ref().map(|it| self.expression(it, place)).transpose()?;
        let args = self.arguments(&it.args)?;
        Ok(Expr::Filter(Spanned::new(Filter { name: it.name, expr, args }, span)))
    }

    /// Converts the filters of a block.
    pub(super) fn filters_of_block(&self, expression: &Expr<'a>) -> Compiled<Expr<'a>> {
        self.value(expression)
    }

    fn test(&self, it: &Test<'a>, span: Span) -> Compiled<Expr<'a>> {
        if !filters::tests().any(|known| known == it.name) {
            let near = did_you_mean(it.name, filters::tests(), "");
            return wrong(span, format!("there is no test `{}`{near}", it.name));
        }
        let (expr, args) = (self.condition(&it.expr)?, self.arguments(&it.args)?);
        Ok(checked(Expr::Test(Spanned::new(Test { name: it.name, expr, args }, span))))
    }

    /// Converts a call; its result is not checked yet.
    pub(super) fn call(&self, it: &Call<'a>, span: Span) -> Compiled<Spanned<Call<'a>>> {
        let expr = match &it.expr {
            Expr::Var(name) if name.id == "loop" => variable(name.id, name.span()),
            Expr::Var(name) => {
                self.check_name(name.id, name.span())?;
                variable(name.id, name.span())
            }
            Expr::GetAttr(method) => {
                if method.name == "cycle" && !matches!(it.args.first(), Some(CallArg::Pos(_))) {
                    return wrong(span, "loop.cycle: expected at least one value");
                }
                let made = GetAttr { expr: self.base(&method.expr)?, name: method.name };
                Expr::GetAttr(Spanned::new(made, method.span()))
            }
            other => self.value(other)?,
        };
        Ok(Spanned::new(Call { expr, args: self.arguments(&it.args)? }, span))
    }

    /// Converts `namespace(…)`, which only `set` may call.
    pub(super) fn namespace(&self, it: &Call<'a>, span: Span) -> Compiled<Expr<'a>> {
        let made = Call { expr: variable("namespace", span), args: self.arguments(&it.args)? };
        Ok(Expr::Call(Spanned::new(made, span)))
    }

    fn arguments(&self, arguments: &[CallArg<'a>]) -> Compiled<Vec<CallArg<'a>>> {
        let argument = |it: &CallArg<'a>| {
            Ok(match it {
                CallArg::Pos(it) => CallArg::Pos(self.value(it)?),
                CallArg::Kwarg(name, it) => CallArg::Kwarg(name, self.value(it)?),
                CallArg::PosSplat(it) => CallArg::PosSplat(self.value(it)?),
                CallArg::KwargSplat(it) => CallArg::KwargSplat(self.value(it)?),
            })
        };
        arguments.iter().map(argument).collect()
    }
}

/// Returns a plain variable.
pub(super) fn variable(id: &str, span: Span) -> Expr<'_> {
    Expr::Var(Spanned::new(Var { id }, span))
}

fn constant<'a>(it: &Const, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(Const { value: it.value.clone() }, span))
}

/// Returns a path as the template has it.
fn path(expression: &Expr<'_>) -> String {
    match expression {
        Expr::Var(it) => it.id.to_owned(),
        Expr::GetAttr(it) => format!("{}.{}", path(&it.expr), it.name),
        Expr::GetItem(it) => match &it.subscript_expr {
            Expr::Const(key) => {
                let key = &key.value;
                let key = key.as_str().map_or_else(|| key.to_string(), |it| format!("\"{it}\""));
                format!("{}[{key}]", path(&it.expr))
            }
            subscript => format!("{}[{}]", path(&it.expr), path(subscript)),
        },
        _computed => "(…)".into(),
    }
}
