//! CEL rules of a schema: `x-kubernetes-validations`. They run on values whose types are valid.
//!
//! Known differences from the real server: types are checked when a rule runs, not when the CRD is written, so a misspelled field
//! in a rule is reported only for objects. The cost of a rule is estimated from its loops and the sizes of the value, not counted;
//! this bounds the time as well.

pub(crate) mod condition;
mod cost;
mod library;
mod names;
mod place;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cel::{Context, Env, Value as CelValue, common::ast::IdedExpr};
use serde_json::Value;

use self::place::SchemaNode;
use crate::refusal::{
    ProblemKind, ValidationProblem,
    path::{push_field, push_item},
};

/// Limit of the cost of all rules of one object. One unit is about 0.2 µs in a release build.
const BUDGET: u64 = 5_000_000;

/// The compiled rules of a schema.
pub(super) struct Expressions {
    env: Arc<Env>,
    /// `None` if the schema has no rules.
    root: Option<SchemaNode>,
}

impl std::fmt::Debug for Expressions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expressions").field("some", &self.root.is_some()).finish_non_exhaustive()
    }
}

/// One rule, compiled, with its message.
struct CelRule {
    source: String,
    program: IdedExpr,
    message: String,
    /// Evaluates `messageExpression`, if it is valid.
    message_program: Option<IdedExpr>,
    reason: String,
    /// The path of the field that is reported, such as `.spec.name`.
    field: String,
    /// The rule uses the old value, too.
    transition: bool,
    /// The old value is optional, so the rule also runs without one.
    optional_old: bool,
}

impl Expressions {
    /// Compiles the rules of a JSON schema. The paths of problems begin at the schema.
    pub(super) fn new(schema: &Value) -> Result<Self, Vec<ValidationProblem>> {
        let mut problems = Vec::new();
        let env = Arc::new(library::environment().map_err(|error| {
            vec![ValidationProblem::new("", ProblemKind::Internal(error.to_string()))]
        })?);
        let place = SchemaNode::read(schema, true, "", &mut problems);
        if problems.is_empty() {
            Ok(Self { env, root: Some(place).filter(SchemaNode::has_rules) })
        } else {
            Err(problems)
        }
    }

    /// Runs all rules on an object, and adds a problem for each violated one.
    pub(super) fn check(
        &self,
        new: &Value,
        old: Option<&Value>,
        found: &mut Vec<ValidationProblem>,
    ) {
        let Some(root) = &self.root else { return };
        let mut run = CelValidation { env: &self.env, budget: BUDGET, found };
        run.place(root, new, old, &mut String::new());
    }
}

/// One validation of one object.
struct CelValidation<'a> {
    env: &'a Arc<Env>,
    budget: u64,
    found: &'a mut Vec<ValidationProblem>,
}

impl CelValidation<'_> {
    /// Runs the rules for a value and the values in it. The recursion follows the value, whose depth the parser bounds.
    fn place(&mut self, place: &SchemaNode, new: &Value, old: Option<&Value>, path: &mut String) {
        if !place.has_rules() || new.is_null() {
            return;
        }
        self.rules(place, new, old, path);
        let length = path.len();
        match new {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let (inner, known) = match place.fields.get(name) {
                        Some(inner) => (Some(inner), true),
                        None => (place.rest.as_deref(), false),
                    };
                    let Some(inner) = inner else { continue };
                    if known {
                        push_field(path, name);
                    } else {
                        push_item(path, name);
                    }
                    self.place(inner, value, old.and_then(|it| it.get(name)), path);
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(inner) = &place.items else { return };
                for (at, item) in items.iter().enumerate() {
                    let old = old.and_then(|it| place.counterpart(item, it));
                    push_item(path, at);
                    self.place(inner, item, old, path);
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn rules(&mut self, place: &SchemaNode, new: &Value, old: Option<&Value>, path: &str) {
        if place.rules.is_empty() {
            return;
        }
        let mut context = Context::with_env(Arc::clone(self.env));
        context.add_variable_from_value("self", place.value(new, self.env));
        let plain_old = old.map(|it| place.value(it, self.env));
        for rule in &place.rules {
            if rule.transition && !rule.optional_old && old.is_none() {
                continue;
            }
            let cost = cost::guess(&rule.program, new);
            if cost > self.budget {
                self.budget = 0;
                let text = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call \
                     cost exceeds limit for rule: {}",
                    rule.shown()
                );
                self.found.push(place.problem(rule, path, text));
                return;
            }
            self.budget -= cost;
            let mut inner = context.new_inner_scope();
            if rule.transition && !bind_old(&mut inner, rule, plain_old.clone(), self.env) {
                continue;
            }
            if let Some(text) = verdict(rule, &inner) {
                self.found.push(place.problem(rule, path, text));
            }
        }
    }
}

fn bind_old(
    context: &mut Context<'_, '_>,
    rule: &CelRule,
    old: Option<CelValue>,
    env: &Arc<Env>,
) -> bool {
    match (rule.optional_old, old) {
        (false, Some(old)) => context.add_variable_from_value("oldSelf", old),
        (false, None) => return false,
        (true, old) => match library::optional(old, env) {
            Some(optional) => context.add_variable_from_value("oldSelf", optional),
            None => return false,
        },
    }
    true
}

/// Returns the message of a violated rule; `None` if the rule holds.
fn verdict(rule: &CelRule, context: &Context<'_, '_>) -> Option<String> {
    match CelValue::resolve(&rule.program, context) {
        Ok(CelValue::Bool(true)) => None,
        Ok(CelValue::Bool(false)) => {
            let made =
                rule.message_program.as_ref().and_then(|it| CelValue::resolve(it, context).ok());
            match made {
                Some(CelValue::String(text)) if is_message(&text) => Some(text.trim().to_owned()),
                _ if rule.message.trim().is_empty() => {
                    Some(format!("failed rule: {}", rule.shown()))
                }
                _ => Some(rule.message.trim().to_owned()),
            }
        }
        Ok(_) => Some(format!(
            "cel expression must evaluate to a bool evaluating rule: {}",
            rule.shown()
        )),
        Err(error @ cel::ExecutionError::NoSuchOverload(_)) => Some(format!(
            "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
            rule.shown()
        )),
        Err(cel::ExecutionError::NoSuchKey(key)) => {
            Some(format!("no such key: {key} evaluating rule: {}", rule.shown()))
        }
        Err(error) => Some(format!("{error} evaluating rule: {}", rule.shown())),
    }
}

/// Returns whether a computed message is used: it must be one line, and not too long.
fn is_message(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\n') && text.len() <= 5 * 1024
}

impl CelRule {
    /// Returns the rule as messages show it.
    fn shown(&self) -> &str {
        let message = self.message.trim();
        if message.is_empty() { self.source.trim() } else { message }
    }
}
