//! CEL conditions outside of schemas: the match conditions of webhooks.

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Value as CelValue};
use serde_json::Value;

use super::{cost, library, names, place};

/// Limit of the cost of one condition; the same as for all rules of one object.
const BUDGET: u64 = super::BUDGET;
/// The variables of a condition.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

static ENVIRONMENT: LazyLock<Option<Arc<Env>>> =
    LazyLock::new(|| library::environment().ok().map(Arc::new));

/// Returns the error of an expression that cannot be compiled.
pub(crate) fn fault(source: &str) -> Option<String> {
    names::compile_with(source, &VARIABLES).err()
}

/// Evaluates an expression over the object, the old object and the request, in this order; null for a missing one.
pub(crate) fn holds(source: &str, values: [&Value; 3]) -> Result<bool, String> {
    let program = names::compile_with(source, &VARIABLES)?;
    let env = ENVIRONMENT.as_ref().ok_or("no environment for expressions")?;
    let mut context = Context::with_env(Arc::clone(env));
    let mut price = 0_u64;
    for (name, value) in VARIABLES.into_iter().zip(values) {
        price = price.saturating_add(cost::guess(&program, value));
        context.add_variable_from_value(name, place::plain(value));
    }
    if price > BUDGET {
        return Err("operation cancelled: actual cost limit exceeded".into());
    }
    match CelValue::resolve(&program, &context) {
        Ok(CelValue::Bool(it)) => Ok(it),
        Ok(_) => Err("the expression must evaluate to bool".into()),
        Err(error) => Err(error.to_string()),
    }
}
