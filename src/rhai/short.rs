//! Short functions: they neither wait nor compute for long, whatever their arguments are.
//!
//! A short function is code of a few dozen nodes that reads parts of its arguments, compares them, and assigns to one part. Its calls need
//! no watchdog, so the rules are strict: only nodes that are known to be short are allowed. Not allowed are recursion, closures, fields
//! that may be large or wait, and variables of the script other than constants: Rhai sleeps when another call holds their lock.
//!
//! Loops are allowed in functions without effects, such as those that only accept or reject an object: the program can end a call that
//! takes long, and repeat it elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Range, RangeInclusive},
    ptr,
};

use rhai::{AST, ASTFlags, ASTNode, BinaryExpr, Dynamic, Expr, FnCallExpr, INT, Stmt};

/// Maximum cost of a function: a node costs 1, one that may touch a whole object [`TOUCH`].
const COST_MAX: usize = 200;
const TOUCH: usize = 10;
/// Maximum nesting of nodes: they are evaluated on whatever stack the caller has.
const DEPTH_MAX: usize = 40;
/// Maximum size of a string constant in bytes, and of a constant list or map in items.
const CONSTANT_MAX: usize = 1024;
/// Scripts with more functions have no short ones: the search takes quadratic time.
const FUNCTIONS_MAX: usize = 500;

/// What the program that runs the scripts knows of its functions and fields. Everything else is what Rhai itself has, or not allowed.
#[derive(Debug)]
pub struct Rules {
    /// The name of the value and module with the functions of the program, as in `host.fail("no")` and `host::fail("no")`.
    pub host: &'static str,
    /// Functions of `host` that only create or raise an error.
    pub raising: BTreeSet<&'static str>,
    /// Functions and methods without effects that take at most one pass over their arguments.
    pub methods: BTreeSet<&'static str>,
    /// Methods with effects that take at most one pass over their arguments, such as those that write to a log.
    pub acting: BTreeSet<&'static str>,
    /// Fields that may be large, copy much, or wait. They are not allowed, whatever value they are read from.
    pub large: BTreeSet<&'static str>,
    /// The one of them whose parts can be assigned to, as in `value.written.a.b = 1`.
    pub written: &'static str,
}

/// The short functions of a script. A function with several definitions is short if all of them are.
#[derive(Debug, Default)]
pub struct ShortFunctions {
    /// Those without loops.
    pub straight: BTreeSet<String>,
    /// Those with loops, and without effects: their calls can be repeated.
    pub repeatable: BTreeSet<String>,
    /// The names of all fields that they read or write; possibly also some of other functions.
    pub fields: BTreeSet<String>,
}

/// What is known of the calls of a function.
#[derive(Clone, Copy, Default)]
struct FunctionCost {
    nodes: usize,
    /// Whether it has loops.
    loops: bool,
    /// Whether it has effects other than its result or error.
    acts: bool,
}

/// Returns the short ones of these functions of a script.
///
/// `globals` are the variables of the script. Those that are shared, and so can change, are not allowed.
pub fn find(
    ast: &AST,
    names: &BTreeSet<String>,
    globals: &BTreeMap<String, Dynamic>,
    rules: &Rules,
) -> ShortFunctions {
    let mut imports = false;
    ast.walk(&mut |path| {
        imports |= matches!(path.last(), Some(ASTNode::Stmt(Stmt::Import(..))));
        !imports
    });
    // Functions of modules can replace methods.
    if imports || ast.iter_functions().count() > FUNCTIONS_MAX {
        return ShortFunctions::default();
    }
    let functions = &ast.clone_functions_only();
    let defined = functions.iter_functions().map(|it| it.name).collect();
    let constants = globals.iter().filter(|it| is_constant(it.1)).map(|it| it.0.as_str()).collect();
    let (costs, fields) = (BTreeMap::new(), BTreeSet::new());
    let mut search = Search { functions, globals, constants, rules, defined, costs, fields };
    let mut short = ShortFunctions::default();
    for name in names {
        match search.cost_of(name) {
            Some(FunctionCost { loops: false, .. }) => short.straight.insert(name.clone()),
            Some(FunctionCost { acts: false, .. }) => short.repeatable.insert(name.clone()),
            Some(_) | None => false,
        };
    }
    ShortFunctions { fields: search.fields, ..short }
}

/// The search for the short functions of a script.
struct Search<'a> {
    /// Without statements at the top level.
    functions: &'a AST,
    globals: &'a BTreeMap<String, Dynamic>,
    /// Those of them that are constants with little data.
    constants: BTreeSet<&'a str>,
    rules: &'a Rules,
    defined: BTreeSet<&'a str>,
    /// The costs of functions that were examined; `None` if they are not short.
    costs: BTreeMap<String, Option<FunctionCost>>,
    /// The names of the fields that they read or write.
    fields: BTreeSet<String>,
}

/// A function that is examined.
struct ExaminedFunction<'a, 'b> {
    search: &'a mut Search<'b>,
    /// The variables that it may use.
    variables: BTreeSet<String>,
    /// Expressions that their context allows.
    allowed: Vec<*const Expr>,
    /// The sum so far.
    sum: FunctionCost,
}

impl Search<'_> {
    /// Returns the total cost of all functions of this name and of those that they call; `None` if they are not short.
    fn cost_of(&mut self, name: &str) -> Option<FunctionCost> {
        if let Some(cost) = self.costs.get(name) {
            return *cost;
        }
        // Until it is known: recursive functions are not short.
        self.costs.insert(name.to_owned(), None);
        let parameters = self.functions.iter_functions().filter(|it| it.name == name);
        let mut variables: BTreeSet<String> =
            parameters.flat_map(|it| it.params).map(Into::into).collect();
        let mut alone = self.functions.clone();
        alone.retain_functions(|_, _, it, _| it == name);
        alone.walk(&mut |path| {
            if let Some(ASTNode::Stmt(Stmt::Var(variable, ..))) = path.last() {
                variables.insert(variable.0.name.to_string());
            } else if let Some(ASTNode::Stmt(Stmt::For(parts, ..))) = path.last() {
                let counter = parts.1.iter().map(|it| it.name.to_string());
                variables.extend(counter.chain([parts.0.name.to_string()]));
            }
            true
        });
        variables.retain(|it| !self.globals.contains_key(it));
        variables.extend(self.constants.iter().map(|it| (*it).to_owned()));
        let is_defined = self.defined.contains(name);
        let sum = FunctionCost::default();
        let function = ExaminedFunction { search: self, variables, allowed: Vec::new(), sum };
        let cost = function.cost(&alone).filter(|_| is_defined);
        self.costs.insert(name.to_owned(), cost);
        cost
    }
}

impl ExaminedFunction<'_, '_> {
    /// Returns the cost of all its nodes; `None` if it is not short.
    fn cost(mut self, alone: &AST) -> Option<FunctionCost> {
        let is_short = alone.walk(&mut |path| {
            let cost = if let Some(ASTNode::Stmt(statement)) = path.last() {
                self.statement(statement)
            } else if let Some(ASTNode::Expr(expression)) = path.last() {
                self.expression(expression)
            } else {
                None
            };
            self.sum.nodes += cost.unwrap_or(COST_MAX + 1);
            self.sum.nodes <= COST_MAX && path.len() <= DEPTH_MAX
        });
        is_short.then_some(self.sum)
    }

    /// Returns the cost of a statement without its parts; `None` if it is not allowed.
    fn statement(&mut self, statement: &Stmt) -> Option<usize> {
        if let Stmt::FnCall(call, _) = statement {
            return self.call(call);
        }
        if let Stmt::Assignment(assignment) = statement {
            let (operator, sides) = &**assignment;
            if matches!(sides.lhs, Expr::Variable(..)) {
                return Some(TOUCH);
            }
            let written = self.written(&sides.lhs).filter(|_| !operator.is_op_assignment())?;
            self.allowed.push(written);
            self.sum.acts = true;
            return Some(TOUCH);
        }
        self.sum.loops |= matches!(statement, Stmt::For(..) | Stmt::While(..) | Stmt::Do(..));
        let is_plain = matches!(
            statement,
            Stmt::Noop(..)
                | Stmt::If(..)
                | Stmt::Switch(..)
                | Stmt::Var(..)
                | Stmt::Block(..)
                | Stmt::Expr(..)
                | Stmt::Return(..)
                | Stmt::For(..)
                | Stmt::While(..)
                | Stmt::Do(..)
                | Stmt::BreakLoop(..)
        );
        is_plain.then_some(1)
    }

    /// Returns the cost of an expression without its parts; `None` if it is not allowed.
    fn expression(&mut self, expression: &Expr) -> Option<usize> {
        if let Expr::Variable(variable, ..) = expression {
            let is_local = variable.2.is_empty() && self.variables.contains(variable.1.as_str());
            return (is_local || self.is_allowed(expression)).then_some(1);
        }
        if let Expr::Property(property, _) = expression {
            self.search.fields.insert(property.2.to_string());
            let is_allowed = self.is_small(&property.2) || self.is_allowed(expression);
            return is_allowed.then_some(1);
        }
        if let Expr::Dot(dot, ..) = expression {
            self.allowed.extend(self.raising(dot));
            return Some(1);
        }
        if let Expr::Index(index, flags, _) = expression {
            let place = if let Expr::Dot(rest, ..) | Expr::Index(rest, ..) = &index.rhs
                && !flags.intersects(ASTFlags::BREAK)
            {
                &rest.lhs
            } else {
                &index.rhs
            };
            let is_allowed = match key(place) {
                Some(key) => {
                    self.search.fields.insert(key.to_owned());
                    self.is_small(key)
                }
                None => matches!(place, Expr::IntegerConstant(..)),
            };
            return is_allowed.then_some(1);
        }
        if let Expr::MethodCall(call, _) | Expr::FnCall(call, _) = expression {
            return self.call(call);
        }
        if let Expr::DynamicConstant(value, _) = expression {
            return items(value).filter(|it| *it <= CONSTANT_MAX).map(|_| TOUCH);
        }
        if let Some(text) = key(expression) {
            return (text.len() <= CONSTANT_MAX).then_some(1);
        }
        if matches!(expression, Expr::InterpolatedString(..)) {
            return Some(TOUCH);
        }
        let is_plain = matches!(
            expression,
            Expr::BoolConstant(..)
                | Expr::IntegerConstant(..)
                | Expr::FloatConstant(..)
                | Expr::CharConstant(..)
                | Expr::Unit(..)
                | Expr::Array(..)
                | Expr::Map(..)
                | Expr::Stmt(..)
                | Expr::And(..)
                | Expr::Or(..)
                | Expr::Coalesce(..)
        );
        is_plain.then_some(1)
    }

    /// Returns the cost of a call without its arguments; `None` if it is not allowed.
    fn call(&mut self, call: &FnCallExpr) -> Option<usize> {
        let name = call.name.as_str();
        if call.is_operator_call() {
            return Some(TOUCH);
        }
        if self.search.defined.contains(name) {
            let is_plain = call.namespace.is_empty() && !call.capture_parent_scope;
            let FunctionCost { nodes, loops, acts } =
                is_plain.then(|| self.search.cost_of(name))??;
            self.sum.loops |= loops;
            self.sum.acts |= acts;
            return Some(nodes + TOUCH);
        }
        let rules = self.search.rules;
        let acts = call.namespace.is_empty() && rules.acting.contains(name);
        self.sum.acts |= acts;
        let is_known = if call.namespace.is_empty() {
            rules.methods.contains(name) || rules.raising.contains(name) || acts
        } else {
            call.namespace.path.len() == 1
                && call.namespace.root() == rules.host
                && rules.raising.contains(name)
        };
        is_known.then_some(TOUCH)
    }

    fn is_allowed(&self, expression: &Expr) -> bool {
        self.allowed.contains(&ptr::from_ref(expression))
    }

    /// Returns whether reading a field of this name is short.
    fn is_small(&self, field: &str) -> bool {
        !self.search.rules.large.contains(field)
    }

    /// Returns the `written` in `value.written.a.b`. Only assignments may contain it: reading it may copy much.
    fn written(&self, place: &Expr) -> Option<*const Expr> {
        let Expr::Dot(dot, ..) = place else { return None };
        let Expr::Dot(rest, ..) = &dot.rhs else { return None };
        let is_written =
            matches!(&rest.lhs, Expr::Property(name, _) if name.2 == self.search.rules.written);
        (is_written && is_path(&rest.rhs)).then(|| ptr::from_ref(&rest.lhs))
    }

    /// Returns the `host` in `host.fail(…)`.
    fn raising(&self, dot: &BinaryExpr) -> Option<*const Expr> {
        let Rules { host, raising, .. } = self.search.rules;
        let is_host = matches!(&dot.lhs, Expr::Variable(variable, ..) if variable.1 == *host);
        let is_raised =
            matches!(&dot.rhs, Expr::MethodCall(call, _) if raising.contains(call.name.as_str()));
        (is_host && is_raised).then(|| ptr::from_ref(&dot.lhs))
    }
}

fn key(expression: &Expr) -> Option<&str> {
    if let Expr::StringConstant(text, _) = expression { Some(text) } else { None }
}

/// Returns whether an expression after a dot consists of names only.
fn is_path(expression: &Expr) -> bool {
    if let Expr::Dot(dot, ..) = expression {
        return matches!(dot.lhs, Expr::Property(..)) && is_path(&dot.rhs);
    }
    matches!(expression, Expr::Property(..))
}

/// Returns whether a variable of the script is a constant with little data: other calls never lock it.
fn is_constant(value: &Dynamic) -> bool {
    !value.is_shared() && items(value).is_some_and(|it| it <= CONSTANT_MAX)
}

/// Returns the number of items in a constant, nested ones included, plus the bytes of its strings; `None` if it is not data.
fn items(value: &Dynamic) -> Option<usize> {
    if let Ok(items_of) = value.as_array_ref() {
        return items_of.iter().map(items).sum::<Option<usize>>().map(|it| it + 1);
    }
    if let Ok(fields) = value.as_map_ref() {
        return fields.values().map(items).sum::<Option<usize>>().map(|it| it + fields.len());
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Some(text.len() + 1);
    }
    let is_range = value.is::<Range<INT>>() || value.is::<RangeInclusive<INT>>();
    let is_scalar = value.is_unit() || value.is_bool() || value.is_int() || value.is_float();
    (is_scalar || is_range || value.is_char()).then_some(1)
}

#[cfg(test)]
mod tests {
    use rhai::{Dynamic, Engine};

    use super::{BTreeMap, BTreeSet, Rules, ShortFunctions, find};

    fn rules() -> Rules {
        Rules {
            host: "kopf",
            raising: ["AdmissionError", "fail", "retry"].into(),
            methods: ["contains", "get", "keys", "len", "starts_with", "to_upper"].into(),
            acting: ["info"].into(),
            large: ["children", "diff", "memo", "old", "patch", "settings", "stopped"].into(),
            written: "patch",
        }
    }

    /// Returns whether the function `f` of this script is short without loops, and with loops, if `kept` is a variable of the script and
    /// `CONSTANT` a constant.
    fn shortness(text: &str) -> (bool, bool) {
        let ast = Engine::new().set_max_expr_depths(0, 0).compile(text).unwrap();
        let names = BTreeSet::from(["f".to_owned()]);
        let (kept, constant) = (Dynamic::ONE.into_shared(), Dynamic::ONE);
        let globals =
            BTreeMap::from([("kept".to_owned(), kept), ("CONSTANT".to_owned(), constant)]);
        let ShortFunctions { straight, repeatable, .. } = find(&ast, &names, &globals, &rules());
        (!straight.is_empty(), !repeatable.is_empty())
    }

    /// Returns whether it is short and without loops.
    fn is_short(text: &str) -> bool {
        shortness(text) == (true, false)
    }

    #[test]
    fn straight_line_code_that_reads_and_compares_is_short() {
        for body in [
            "",
            "ctx.spec.field.name",
            "ctx.spec?.items[0].name ?? `none`",
            "let spec = ctx.spec; if spec.size > 3 && !(ctx.name in spec.names) { spec.a } else { 1 }",
            "ctx.patch.status.phase = `${ctx.name} is done`; #{ message: `done`, n: 1 }",
            "ctx.patch.metadata.labels.app = ctx.labels.get(`app`, `x`).to_upper()",
            "ctx.logger.info(`done`, #{ n: 1 })",
            "ctx.labels[`app.kubernetes.io/name`].x[1][`y`].z",
            "switch ctx.type { `DELETED` => return false, 1..3 => 2, _ => throw `x` }",
            "if ctx.spec.size < 0 { kopf.fail(`no`) } else { kopf::retry(`later`, 10) }",
            "let x = 1; x += 2; x",
            "ctx.spec.size > CONSTANT",
        ] {
            assert!(is_short(&format!("fn f(ctx) {{ {body} }}")), "{body}");
        }
    }

    #[test]
    fn what_may_loop_wait_or_copy_much_is_not_short() {
        for body in [
            "for i in 0..3 { ctx.logger.info(`${i}`); }",
            "for i in 0..3 { ctx.patch.status.n = i; }",
            "loop { break; } ctx.patch.status.n = 1",
            "for i in ctx.memo.items { }",
            "for i in ctx.spec.items { for j in i { kept += 1; } }",
            "for i in ctx.spec.items.filter(|it| it.a) { }",
            "for i in 0..3 { f(ctx) }",
            "f(ctx)",
            "ctx.f(1)",
            "ctx.spec.items.filter(|it| it.a)",
            "let x = 1; let y = || x; y",
            "Fn(`f`)",
            "kept",
            "if true { let kept = 1; } kept += 1",
            "unknown",
            "this",
            "try { ctx.name } catch { }",
            "import `x` as y",
            "kopf.sleep(1)",
            "kopf::sleep(1)",
            "kopf.copy(ctx.spec)",
            "let k = kopf; k.fail(1)",
            "http.get(ctx.name)",
            "http::get(ctx.name)",
            "sleep(1)",
            "ctx.stopped.wait()",
            "ctx.memo.x",
            "ctx[`memo`]",
            "ctx[ctx.name]",
            "ctx[`memo`].x",
            "ctx[ctx.name].x[0]",
            "ctx.spec[ctx.name]",
            "ctx.patch.status.x",
            "ctx.patch.status.x += 1",
            "ctx.patch.fns.append(1)",
            "ctx.patch[ctx.name] = 1",
            "let p = ctx.patch; p.x = 1",
            "ctx.diff",
            "ctx.old.spec",
            "ctx.children.pods",
            "ctx.settings.x",
            "eval(`1`)",
        ] {
            assert_eq!(shortness(&format!("fn f(ctx) {{ {body} }}")), (false, false), "{body}");
        }
    }

    #[test]
    fn loops_without_effects_are_short_because_they_can_be_repeated() {
        for body in [
            "for it in ctx.spec.containers { if !it.image.starts_with(`x`) { throw kopf::AdmissionError(`no ${it.image}`); } }",
            "for (it, n) in ctx.spec.items { if n > 3 { return it; } else { continue; } }",
            "for key in ctx.labels.keys() { for i in 0..3 { if key == `a` { break; } } }",
            "let n = 0; while n < 3 { n += 1; } do { n -= 1; } until n == 0; loop { break n; }",
            "for it in ctx.spec.items { if is_wrong(it) { kopf.fail(`no`) } }",
        ] {
            let helper = "fn is_wrong(it) { loop { return it.a == 1; } }";
            let text = format!("{helper} fn f(ctx) {{ {body} }}");
            assert_eq!(shortness(&text), (false, true), "{body}");
        }
        let logs = "fn g(ctx) { ctx.logger.info(`x`) }";
        assert_eq!(shortness(&format!("{logs} fn f(ctx) {{ g(ctx) }}")), (true, false));
        let text = format!("{logs} fn f(ctx) {{ for i in 0..3 {{ g(ctx) }} }}");
        assert_eq!(shortness(&text), (false, false));
    }

    #[test]
    fn the_fields_that_are_read_are_known() {
        let text = "fn f(ctx) { ctx.by_name; ctx[`other`].x; ctx.patch.status.y = g(ctx) } fn g(ctx) { ctx.spec?.z }";
        let ast = Engine::new().compile(text).unwrap();
        let found = find(&ast, &BTreeSet::from(["f".to_owned()]), &BTreeMap::new(), &rules());
        assert!(found.straight.contains("f"));
        let fields = ["by_name", "other", "patch", "spec", "status", "x", "y", "z"];
        assert!(fields.iter().all(|it| found.fields.contains(*it)), "{:?}", found.fields);
    }

    #[test]
    fn long_code_is_not_short_nor_is_what_the_script_may_have_replaced() {
        let many = |part: &str, count| format!("fn f(ctx) {{ {} }}", part.repeat(count));
        assert!(is_short(&many("ctx.name;", 20)) && !is_short(&many("ctx.name;", 100)));
        assert!(is_short(&many("ctx.name == 1;", 10)) && !is_short(&many("ctx.name == 1;", 20)));
        let long = "x".repeat(2000);
        assert!(!is_short(&format!("fn f(ctx) {{ ctx.name == \"{long}\" }}")));
        assert!(!is_short(&format!("fn f(ctx) {{ [\"{long}\", 1] }}")));
        assert!(!is_short("fn len(x) { loop {} } fn f(ctx) { ctx.labels.len() }"));
        assert!(!is_short("fn f(ctx) { ctx.name } fn f(a, b) { loop {} }"));
        assert!(!is_short("import `x` as y; fn f(ctx) { ctx.name }"));
    }

    #[test]
    fn functions_may_call_short_ones() {
        let helper = "fn g(x) { x.name == 1 || x.name == 2 }";
        assert!(is_short(&format!("{helper} fn f(ctx) {{ g(ctx.spec) }}")));
        assert!(is_short(&format!("{helper} fn f(ctx) {{ g(ctx.spec) && g(ctx.status) }}")));
        assert!(!is_short(&format!("{helper} fn f(ctx) {{ {} }}", "g(ctx);".repeat(8))));
        assert!(!is_short("fn g(x) { loop {} } fn f(ctx) { g(ctx.spec) }"));
        assert!(!is_short("fn g(x) { f(x) } fn f(ctx) { g(ctx.spec) }"));
        assert!(!is_short("fn g(x) { x } fn f(ctx) { g!(ctx.spec) }"));
    }
}
