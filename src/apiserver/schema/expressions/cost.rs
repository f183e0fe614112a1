//! The cost of a rule, estimated before it runs.
//!
//! CEL has no recursion and no endless loops. The time grows with the sizes of lists, to the power of nested loops, and with the
//! lengths of strings, which only `replace` can multiply.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::names::children;

/// More than any limit.
const TOO_MUCH: u64 = u64::MAX / 4;

/// Returns the estimated cost of an expression on a value, in steps.
pub(super) fn guess(expression: &IdedExpr, value: &Value) -> u64 {
    let mut sizes = Sizes { list: 1, text: 1 };
    sizes.measure(value);
    let growth = growth(expression, sizes);
    let texts = sizes.text.saturating_mul(growth);
    steps(expression, value, Sizes { text: texts, ..sizes }).min(TOO_MUCH)
}

#[derive(Clone, Copy)]
struct Sizes {
    /// The length of the longest list or map.
    list: u64,
    /// The length of the longest string, in bytes.
    text: u64,
}

impl Sizes {
    fn measure(&mut self, value: &Value) {
        let length = |it: usize| u64::try_from(it).unwrap_or(u64::MAX);
        match value {
            Value::Array(items) => {
                self.list = self.list.max(length(items.len()));
                for item in items {
                    self.measure(item);
                }
            }
            Value::Object(fields) => {
                self.list = self.list.max(length(fields.len()));
                for (name, field) in fields {
                    self.text = self.text.max(length(name.len()));
                    self.measure(field);
                }
            }
            Value::String(text) => self.text = self.text.max(length(text.len())),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns the factor by which strings may grow: `replace` may insert its replacement after every character, and a sum is as long
/// as its parts.
fn growth(expression: &IdedExpr, sizes: Sizes) -> u64 {
    let below = children(expression).into_iter().map(|it| growth(it, sizes));
    let Expr::Call(call) = &expression.expr else { return below.max().unwrap_or(1) };
    match call.func_name.as_str() {
        "replace" => {
            let by = match call.args.get(1).map(|it| &it.expr) {
                Some(Expr::Literal(LiteralValue::String(it))) => {
                    let it: &str = it.inner();
                    u64::try_from(it.len()).unwrap_or(u64::MAX)
                }
                _ => sizes.text,
            };
            below.fold(1, u64::saturating_mul).saturating_mul(by.saturating_add(1))
        }
        "join" | "format" => below.max().unwrap_or(1).saturating_mul(sizes.list),
        "_+_" => below.fold(0, u64::saturating_add).max(1),
        _ => below.max().unwrap_or(1),
    }
}

fn steps(expression: &IdedExpr, value: &Value, sizes: Sizes) -> u64 {
    let sum = |parts: Vec<&IdedExpr>| {
        parts.into_iter().map(|it| steps(it, value, sizes)).fold(1, u64::saturating_add)
    };
    match &expression.expr {
        Expr::Comprehension(it) => {
            let rounds = rounds(&it.iter_range, value).unwrap_or(sizes.list);
            let round = sum(vec![&it.loop_cond, &it.loop_step]);
            let around = sum(vec![&it.iter_range, &it.accu_init, &it.result]);
            around.saturating_add(rounds.saturating_mul(round))
        }
        Expr::Call(call) => {
            let own = match call.func_name.as_str() {
                "contains" | "startsWith" | "endsWith" | "size" | "trim" | "lowerAscii"
                | "upperAscii" | "find" | "findAll" | "matches" | "replace" | "split" | "join"
                | "format" | "substring" | "indexOf" | "lastIndexOf" | "charAt" | "reverse"
                | "_+_" => sizes.text / 10,
                // Comparisons of whole lists, and searches in them.
                "_==_" | "_!=_" | "@in" | "in" | "isSorted" | "sum" | "min" | "max" => sizes.list,
                _ => 0,
            };
            sum(children(expression)).saturating_add(own)
        }
        Expr::Unspecified
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => sum(children(expression)),
    }
}

/// Returns the number of iterations of a loop over a part of the value, if that part is easy to find.
fn rounds(range: &IdedExpr, value: &Value) -> Option<u64> {
    let part = part(range, value)?;
    let count = match part {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    u64::try_from(count).ok()
}

fn part<'a>(range: &IdedExpr, value: &'a Value) -> Option<&'a Value> {
    if let Expr::Select(select) = &range.expr {
        return part(&select.operand, value)?.get(&select.field);
    }
    matches!(&range.expr, Expr::Ident(name) if name == "self").then_some(value)
}
