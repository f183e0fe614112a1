//! Functions that Kubernetes adds to CEL.
#![expect(clippy::needless_pass_by_value, reason = "`cel` gives its functions their arguments so")]

use std::sync::Arc;

use cel::{
    Context, DeclarationError, Env, ExecutionError, Value as CelValue,
    common::{
        types::{DOUBLE_TYPE, DYN_TYPE, LIST_TYPE, STRING_TYPE},
        value::{CowVal, Val},
    },
};

use crate::schema::pattern;

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Everything that rules may call.
pub(super) fn environment() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(cel::extensions::strings)?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], max)?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], index_of)?;
    env.add_member_overload(
        "lastIndexOf",
        "list_last_index_of",
        LIST_TYPE,
        vec![DYN_TYPE],
        last_index_of,
    )?;
    env.add_member_overload("find", "string_find", STRING_TYPE, vec![STRING_TYPE], find)?;
    env.add_member_overload(
        "findAll",
        "string_find_all",
        STRING_TYPE,
        vec![STRING_TYPE],
        find_all,
    )?;
    env.add_overload("isURL", "is_url", vec![STRING_TYPE], is_url)?;
    env.add_overload("isQuantity", "is_quantity", vec![STRING_TYPE], is_quantity)?;
    // Quantities are floats here, which is exact up to 2^53.
    env.add_overload("quantity", "quantity", vec![STRING_TYPE], quantity)?;
    env.add_member_overload("isLessThan", "quantity_less", DOUBLE_TYPE, vec![DOUBLE_TYPE], less)?;
    env.add_member_overload(
        "isGreaterThan",
        "quantity_greater",
        DOUBLE_TYPE,
        vec![DOUBLE_TYPE],
        greater,
    )?;
    env.add_member_overload(
        "compareTo",
        "quantity_compare",
        DOUBLE_TYPE,
        vec![DOUBLE_TYPE],
        compare,
    )?;
    env.add_member_overload("add", "quantity_add", DOUBLE_TYPE, vec![DOUBLE_TYPE], add)?;
    env.add_member_overload("asInteger", "quantity_integer", DOUBLE_TYPE, vec![], as_integer)?;
    Ok(env)
}

/// A text, or what its format makes of it.
pub(super) fn text(text: &str, format: &str, env: &Arc<Env>) -> CelValue {
    let plain = CelValue::String(Arc::new(text.to_owned()));
    let source = match format {
        "date" => "timestamp(v + 'T00:00:00Z')",
        "date-time" => "timestamp(v)",
        "duration" => "duration(v)",
        _ => return plain,
    };
    evaluate(source, plain.clone(), env).unwrap_or(plain)
}

/// `optional.of(value)` or `optional.none()`.
pub(super) fn optional(value: Option<CelValue>, env: &Arc<Env>) -> Option<CelValue> {
    match value {
        Some(value) => evaluate("optional.of(v)", value, env),
        None => evaluate("optional.none()", CelValue::Null, env),
    }
}

fn evaluate(source: &str, value: CelValue, env: &Arc<Env>) -> Option<CelValue> {
    let mut context = Context::with_env(Arc::clone(env));
    context.add_variable_from_value("v", value);
    env.compile(source).ok()?.execute(&context).ok()
}

fn give<'b, 'v>(value: impl Into<CelValue>) -> Answer<'b, 'v> {
    let value: Box<dyn Val> = value.into().try_into()?;
    Ok(CowVal::Owned(value))
}

fn arg(args: &Args<'_, '_>, at: usize) -> Result<CelValue, ExecutionError> {
    let value =
        args.get(at).ok_or_else(|| ExecutionError::invalid_argument_count(at + 1, args.len()))?;
    CelValue::try_from(value.as_ref())
}

fn list(args: &Args<'_, '_>) -> Result<Arc<Vec<CelValue>>, ExecutionError> {
    let value = arg(args, 0)?;
    if let CelValue::List(items) = value {
        return Ok(items);
    }
    Err(ExecutionError::unsupported_target_type(value))
}

fn string(args: &Args<'_, '_>, at: usize) -> Result<Arc<String>, ExecutionError> {
    let value = arg(args, at)?;
    if let CelValue::String(text) = value {
        return Ok(text);
    }
    Err(ExecutionError::unsupported_target_type(value))
}

fn float(args: &Args<'_, '_>, at: usize) -> Result<f64, ExecutionError> {
    let value = arg(args, at)?;
    if let CelValue::Float(it) = value {
        return Ok(it);
    }
    Err(ExecutionError::unsupported_target_type(value))
}

fn is_sorted<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let items = list(&args)?;
    give(items.is_sorted_by(|a, b| a.partial_cmp(b).is_some_and(std::cmp::Ordering::is_le)))
}

fn sum<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let items = list(&args)?;
    let mut whole = 0_i64;
    let mut all = 0.0;
    let mut floats = false;
    for item in items.iter() {
        if let CelValue::Int(it) = item {
            whole = whole
                .checked_add(*it)
                .ok_or_else(|| ExecutionError::function_error("sum", "integer overflow"))?;
        } else if let CelValue::Float(it) = item {
            floats = true;
            all += it;
        } else {
            return Err(ExecutionError::unsupported_target_type(item.clone()));
        }
    }
    if floats { give(all) } else { give(whole) }
}

fn min<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    best(&args, "min", std::cmp::Ordering::Less)
}

fn max<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    best(&args, "max", std::cmp::Ordering::Greater)
}

fn best<'b, 'v>(args: &Args<'b, 'v>, name: &str, wanted: std::cmp::Ordering) -> Answer<'b, 'v> {
    let items = list(args)?;
    let best = items
        .iter()
        .reduce(|best, it| if it.partial_cmp(best) == Some(wanted) { it } else { best });
    give(best.cloned().ok_or_else(|| {
        ExecutionError::function_error(name, format!("{name} called on empty list"))
    })?)
}

fn index_of<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let (items, wanted) = (list(&args)?, arg(&args, 1)?);
    give(place(items.iter().position(|it| *it == wanted)))
}

fn last_index_of<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let (items, wanted) = (list(&args)?, arg(&args, 1)?);
    give(place(items.iter().rposition(|it| *it == wanted)))
}

fn place(at: Option<usize>) -> i64 {
    at.and_then(|it| i64::try_from(it).ok()).unwrap_or(-1)
}

fn regex(args: &Args<'_, '_>) -> Result<regex::Regex, ExecutionError> {
    pattern::compile(&string(args, 1)?)
        .map_err(|error| ExecutionError::function_error("find", error))
}

fn find<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let text = string(&args, 0)?;
    give(regex(&args)?.find(&text).map_or("", |it| it.as_str()))
}

fn find_all<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let text = string(&args, 0)?;
    let found: Vec<CelValue> =
        regex(&args)?.find_iter(&text).map(|it| it.as_str().into()).collect();
    give(CelValue::List(Arc::new(found)))
}

fn is_url<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(crate::schema::formats::fits("uri", &string(&args, 0)?))
}

fn is_quantity<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(parse_quantity(&string(&args, 0)?).is_some())
}

fn quantity<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let text = string(&args, 0)?;
    let wrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    give(parse_quantity(&text).ok_or_else(|| ExecutionError::function_error("quantity", wrong))?)
}

fn parse_quantity(text: &str) -> Option<f64> {
    let digits = text
        .trim_start_matches(['+', '-'])
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let amount: f64 = text.strip_suffix(digits)?.parse().ok()?;
    let factor = match digits {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        "Ei" => 1_152_921_504_606_846_976.0,
        other => {
            let exponent: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            10_f64.powi(exponent)
        }
    };
    Some(amount * factor)
}

fn less<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(float(&args, 0)? < float(&args, 1)?)
}

fn greater<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(float(&args, 0)? > float(&args, 1)?)
}

fn compare<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(float(&args, 0)?.total_cmp(&float(&args, 1)?) as i64)
}

fn add<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    give(float(&args, 0)? + float(&args, 1)?)
}

fn as_integer<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let text = format!("{:.0}", float(&args, 0)?);
    give(text.parse::<i64>().map_err(|error| ExecutionError::function_error("asInteger", error))?)
}
