//! Names in rules: the existing ones, and the escaping of field names.

use cel::{
    common::ast::{EntryExpr, Expr, IdedExpr},
    parser::PrattParser,
};

/// Global functions and methods that rules may call. The internal names of operators contain other characters.
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

/// Names of types, which are also values.
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

/// Limits of nested brackets and of the number of operators. Both make the parser or the evaluation recurse, and threads have 2 MiB
/// of stack. Rules that people write have about 5 and 50.
const DEPTH_MAX: usize = 24;
const OPERATORS_MAX: usize = 600;
const RECURSION_MAX: u16 = 48;
const NODES_MAX: usize = 4_000;
/// Limit of the depth of a parsed expression; sums nest to the left. A debug build takes 20 KiB of stack for a level.
const LEVELS_MAX: usize = 48;

/// Escapes a field name for rules: `a-b` becomes `a__dash__b`.
pub(super) fn escaped(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Compiles a rule. The error is that of the real server.
pub(super) fn compile(source: &str) -> Result<IdedExpr, String> {
    compile_with(source, &["self", "oldSelf"])
}

/// Compiles an expression with these variables.
pub(super) fn compile_with(source: &str, variables: &[&str]) -> Result<IdedExpr, String> {
    if is_too_deep(source) {
        return Err(format!(
            "ERROR: <input>:1:1: expression recursion limit exceeded: {DEPTH_MAX}"
        ));
    }
    let parser = PrattParser::new()
        .max_recursion_depth(RECURSION_MAX)
        .max_expression_node_count(NODES_MAX)
        .enable_optional_syntax(true);
    let expression = parser.parse(source).map_err(|error| error.to_string())?;
    if levels(&expression) > LEVELS_MAX {
        return Err(format!(
            "ERROR: <input>:1:1: expression recursion limit exceeded: {LEVELS_MAX}"
        ));
    }
    let mut bound = variables.iter().map(|it| (*it).to_owned()).collect();
    match unknown(&expression, &mut bound) {
        Some(name) => {
            let before = source.find(&name).and_then(|at| source.get(..at)).unwrap_or_default();
            let column = before.chars().count() + 1;
            Err(format!(
                "ERROR: <input>:1:{column}: undeclared reference to '{name}' (in container '')\n | {source}\n | {}^",
                ".".repeat(column - 1)
            ))
        }
        None => Ok(expression),
    }
}

/// Returns whether an expression would cause too deep a recursion. Quoted strings are skipped.
fn is_too_deep(source: &str) -> bool {
    let (mut depth, mut deepest, mut operators) = (0_usize, 0, 0);
    let mut quote = None;
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            // The second branch of a conditional is parsed inside of it.
            (None, '?') => {
                depth += 1;
                operators += 1;
            }
            (None, '.' | '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' | '=' | '&' | '|') => {
                operators += 1;
            }
            (Some(_) | None, _) => {}
        }
        deepest = deepest.max(depth);
    }
    // An unterminated string is left to the parser, if it is short.
    deepest > DEPTH_MAX || operators > OPERATORS_MAX || (quote.is_some() && source.len() > 10_000)
}

/// Returns the first undeclared name. The recursion is bounded: see [`is_too_deep`].
fn unknown(expression: &IdedExpr, bound: &mut Vec<String>) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => {
            let known =
                name.starts_with('@') || bound.contains(name) || TYPES.contains(&name.as_str());
            (!known).then(|| name.clone())
        }
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !operator && !FUNCTIONS.contains(&name) && !MORE_FUNCTIONS.contains(&name) {
                return Some(name.to_owned());
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

/// Returns the depth of an expression.
fn levels(expression: &IdedExpr) -> usize {
    1 + children(expression).into_iter().map(levels).max().unwrap_or_default()
}

/// Returns whether an expression uses a variable.
pub(super) fn mentions(expression: &IdedExpr, variable: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == variable)
        || children(expression).into_iter().any(|it| mentions(it, variable))
}

/// Returns the direct subexpressions of an expression.
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
