//! Names in rules: which ones exist, and how fields are called that could not be written otherwise.

use cel::{
    Env, Program,
    common::ast::{EntryExpr, Expr, IdedExpr},
};

/// Global functions and methods that rules may call. Operators have other signs in their names.
const FUNCTIONS: [&str; 63] = [
    "abs",
    "add",
    "all",
    "asInteger",
    "bool",
    "bytes",
    "charAt",
    "compareTo",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "find",
    "findAll",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "has",
    "hasValue",
    "indexOf",
    "int",
    "isGreaterThan",
    "isLessThan",
    "isQuantity",
    "isSorted",
    "isURL",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "map",
    "matches",
    "max",
    "min",
    "none",
    "of",
    "ofNonZeroValue",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "quantity",
    "replace",
    "reverse",
    "size",
    "split",
    "startsWith",
    "string",
    "substring",
    "sum",
    "trim",
];
const MORE_FUNCTIONS: [&str; 8] =
    ["timestamp", "type", "uint", "upperAscii", "value", "optMap", "optFlatMap", "strings.quote"];

/// Names of types, which are values too.
const TYPES: [&str; 14] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "string",
    "timestamp",
    "type",
    "uint",
    "dyn",
];

const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field name as rules write it: `a-b` is `a__dash__b`.
pub(super) fn escaped(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Compiles a rule. The error is worded as by the real server.
pub(super) fn compile(source: &str, env: &Env) -> Result<Program, String> {
    let program = env.compile(source).map_err(|error| error.to_string())?;
    let mut bound = vec!["self".to_owned(), "oldSelf".to_owned()];
    match unknown(program.expression(), &mut bound) {
        Some((id, name)) => {
            let at = program.source_info().offset_for(id).map_or(1, |(start, _)| start.max(1));
            Err(format!(
                "ERROR: <input>:1:{at}: undeclared reference to '{name}' (in container '')\n | {source}"
            ))
        }
        None => Ok(program),
    }
}

/// The first name that stands for nothing. Programs nest in at most 96 levels: the parser sees to it.
fn unknown(expression: &IdedExpr, bound: &mut Vec<String>) -> Option<(u64, String)> {
    match &expression.expr {
        Expr::Ident(name) => {
            let known =
                name.starts_with('@') || bound.contains(name) || TYPES.contains(&name.as_str());
            (!known).then(|| (expression.id, name.clone()))
        }
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !operator && !FUNCTIONS.contains(&name) && !MORE_FUNCTIONS.contains(&name) {
                return Some((expression.id, name.to_owned()));
            }
            let target = call.target.as_deref().and_then(|it| unknown(it, bound));
            target.or_else(|| call.args.iter().find_map(|it| unknown(it, bound)))
        }
        Expr::Comprehension(it) => {
            if let Some(found) = unknown(&it.iter_range, bound) {
                return Some(found);
            }
            let length = bound.len();
            bound.push(it.iter_var.clone());
            bound.push(it.accu_var.clone());
            bound.extend(it.iter_var2.clone());
            let parts = [&it.accu_init, &it.loop_cond, &it.loop_step, &it.result];
            let found = parts.into_iter().find_map(|it| unknown(it, bound));
            bound.truncate(length);
            found
        }
        Expr::Unspecified
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => children(expression).into_iter().find_map(|it| unknown(it, bound)),
    }
}

/// Whether an expression uses a variable.
pub(super) fn mentions(expression: &IdedExpr, variable: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == variable)
        || children(expression).into_iter().any(|it| mentions(it, variable))
}

/// The parts of an expression.
pub(super) fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(it) => {
            vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|it| entries(&it.expr)).collect(),
        Expr::Struct(it) => it.entries.iter().flat_map(|it| entries(&it.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
    }
}

fn entries(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
