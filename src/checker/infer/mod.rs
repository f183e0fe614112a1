//! What values are, and which names, arguments and literals are wrong.
//!
//! A text is walked several times. Each walk uses what the walk before has found out about variables and parameters, beginning with
//! nothing, until there is nothing new; only the last walk reports. What is not known is never reported.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of expressions and values mean nothing to most rules"
)]

mod calls;
mod declarations;
mod expressions;
mod lints;
mod literals;
mod members;
mod methods;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    finding::Raw,
    rules::Rule,
    schemas::Knowledge,
    tree::{Function, Span, Stmt, Tree},
    types::{Ctx, Declared, Type},
};
use crate::scripting::Language;

/// Maximum number of walks. What is known after any of them is right.
const WALKS_MAX: usize = 8;
/// The steps of all walks of one text: a second, or so.
const STEPS_MAX: usize = 20_000_000;

/// Maximum number of mistakes that are reported of one text.
const FINDINGS_MAX: usize = 200;

/// One text of a script: the script itself, or a module.
pub(super) struct Text<'a> {
    /// As imports find it: its path below the directory of the script.
    pub(super) file: String,
    pub(super) language: Language,
    pub(super) content: &'a str,
    pub(super) tree: Tree<'a>,
}

/// What is known of all texts of a script together.
#[derive(Default)]
pub(super) struct Program<'a> {
    /// The files of the texts; modules are numbers in this list.
    pub(super) files: Vec<String>,
    pub(super) exports: Vec<Exports<'a>>,
    /// Every name that is a key of a table, or is assigned to as a field.
    pub(super) fields: BTreeSet<&'a str>,
    /// The globals that any text assigns to.
    pub(super) globals: BTreeSet<&'a str>,
    /// Whether any text may assign to other globals.
    pub(super) is_dynamic: bool,
    pub(super) knowledge: Knowledge,
}

impl Program<'_> {
    /// Returns the number of the kind that these words select, if it is the only one.
    fn kind_of(&self, words: &[&str]) -> Option<usize> {
        let kinds = self.knowledge.kinds.iter().enumerate();
        let mut found = kinds.filter(|(_, kind)| kind.is_selected(words)).map(|(at, _)| at);
        found.next().filter(|_| found.next().is_none())
    }
}

/// What a module gives to those who import it.
#[derive(Default)]
pub(super) struct Exports<'a> {
    /// Whether all of its names are known.
    pub(super) is_closed: bool,
    /// The functions of Rhai, with their numbers of parameters.
    pub(super) functions: BTreeMap<&'a str, Vec<usize>>,
    pub(super) variables: BTreeSet<&'a str>,
}

/// What walks find out about a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts<'a> {
    variables: Vec<Variable>,
    /// What functions are called with, by their numbers.
    parameters: BTreeMap<usize, Vec<Type>>,
    /// Functions that are called from unknown places.
    escaped: BTreeSet<usize>,
    pub(super) globals: BTreeMap<&'a str, (usize, Type)>,
    pub(super) fields: BTreeSet<&'a str>,
    /// What the top level returns.
    returned: Option<Type>,
    /// Whether globals may be assigned to by names that are not written out.
    pub(super) is_dynamic: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Variable {
    /// How often it is assigned to after its declaration.
    assigned: usize,
    /// For a table: whether other code may add names to it.
    is_open: bool,
}

/// The text was too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Finds out what is known of a text.
pub(super) fn facts<'a>(
    text: &Text<'a>,
    program: &Program<'a>,
) -> Result<(Facts<'a>, Exports<'a>), TooLong> {
    let (mut facts, mut steps) = (Facts::default(), STEPS_MAX / 2);
    for _ in 0..WALKS_MAX {
        let mut walk = Walk::new(text, program, &facts, steps);
        walk.top_level();
        steps = walk.steps;
        if steps == 0 {
            return Err(TooLong);
        }
        let next = walk.next;
        if next == facts {
            break;
        }
        facts = next;
    }
    let exports = exports(text, &facts);
    Ok((facts, exports))
}

/// Returns the mistakes in a text.
pub(super) fn findings<'a>(
    text: &Text<'a>,
    program: &Program<'a>,
    facts: &Facts<'a>,
) -> Result<Vec<Raw>, TooLong> {
    let mut walk = Walk::new(text, program, facts, STEPS_MAX / 2);
    walk.reports = true;
    walk.top_level();
    if walk.steps == 0 {
        return Err(TooLong);
    }
    walk.found.sort();
    Ok(walk.found)
}

fn exports<'a>(text: &Text<'a>, facts: &Facts<'a>) -> Exports<'a> {
    if text.language == Language::Lua {
        let is_closed = match &facts.returned {
            Some(Type::Own(id)) => facts.variables.get(*id).is_some_and(|it| !it.is_open),
            Some(_) | None => false,
        };
        return Exports { is_closed, ..Exports::default() };
    }
    let mut exports = Exports { is_closed: true, ..Exports::default() };
    for statement in &text.tree.body {
        match statement {
            Stmt::NamedFunction(name, function) => {
                let arities = exports.functions.entry(name.text).or_default();
                arities.push(function.parameters.len());
            }
            Stmt::Declare(names, _) => exports.variables.extend(names.iter().map(|it| it.text)),
            Stmt::Import(_, Some(name)) => drop(exports.variables.insert(name.text)),
            _ => {}
        }
    }
    exports
}

/// One walk over a text.
struct Walk<'p, 'a> {
    text: &'p Text<'a>,
    program: &'p Program<'a>,
    /// What the walk before has found out.
    facts: &'p Facts<'a>,
    next: Facts<'a>,
    scopes: Vec<BTreeMap<&'a str, usize>>,
    types: Vec<Type>,
    /// The functions of a Rhai script: numbers of parameters, and numbers of the functions.
    functions: BTreeMap<&'a str, Vec<(usize, usize)>>,
    /// The variables of the top level of a Rhai script.
    tops: BTreeMap<&'a str, Type>,
    /// How many functions are around.
    depth: usize,
    /// The handlers among them; none for other functions.
    handlers: Vec<Option<Declared>>,
    /// How many branches and loops of this function are around.
    branches: usize,
    /// How many `try` of this function are around.
    tries: usize,
    /// How much was passed that may wait or leaves a loop.
    activity: usize,
    /// The kinds whose status was looked at.
    statuses: BTreeSet<usize>,
    steps: usize,
    reports: bool,
    found: Vec<Raw>,
}

impl<'p, 'a> Walk<'p, 'a> {
    fn new(
        text: &'p Text<'a>,
        program: &'p Program<'a>,
        facts: &'p Facts<'a>,
        steps: usize,
    ) -> Self {
        Walk {
            text,
            program,
            facts,
            next: Facts::default(),
            scopes: vec![BTreeMap::new()],
            types: Vec::new(),
            functions: BTreeMap::new(),
            tops: BTreeMap::new(),
            depth: 0,
            handlers: Vec::new(),
            branches: 0,
            tries: 0,
            activity: 0,
            statuses: BTreeSet::new(),
            steps,
            reports: false,
            found: Vec::new(),
        }
    }

    fn is_lua(&self) -> bool {
        self.text.language == Language::Lua
    }

    fn top_level(&mut self) {
        let text = self.text;
        for statement in &text.tree.body {
            match statement {
                Stmt::NamedFunction(name, function) => {
                    let known = self.functions.entry(name.text).or_default();
                    known.push((function.parameters.len(), function.id));
                }
                Stmt::Declare(names, _) if !self.is_lua() => {
                    self.tops.extend(names.iter().map(|it| (it.text, Type::Any)));
                }
                Stmt::Import(path, Some(name)) => {
                    let module = self.imported(path);
                    self.tops.insert(name.text, module);
                }
                _ => {}
            }
        }
        self.statements(&text.tree.body);
    }

    /// Counts a step. Returns whether there are any left.
    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    fn report(&mut self, rule: Rule, span: Span, message: String, hint: Option<String>) {
        if self.reports {
            self.found.push(Raw { span, rule, message, hint, grant: None });
            // Looking for the nearest name of each would take long.
            self.reports = self.found.len() < FINDINGS_MAX;
        }
    }

    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(BTreeMap::new());
        inside(self);
        self.scopes.pop();
    }

    /// Returns the number of the next variable.
    fn next_variable(&self) -> usize {
        self.types.len()
    }

    fn declare(&mut self, name: &'a str, ty: Type) {
        let id = self.types.len();
        let is_constant = self.facts.variables.get(id).is_some_and(|it| it.assigned == 0);
        self.types.push(if is_constant { ty } else { Type::Any });
        self.next.variables.push(Variable::default());
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, id);
        }
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().find_map(|it| it.get(name)).copied()
    }

    /// A value goes where it is not followed.
    fn escape(&mut self, ty: &Type) {
        match ty {
            Type::Function(id) => drop(self.next.escaped.insert(*id)),
            Type::Own(id) => {
                if let Some(variable) = self.next.variables.get_mut(*id) {
                    variable.is_open = true;
                }
            }
            _ => {}
        }
    }

    /// A function is called with this value in this place.
    fn record(&mut self, function: usize, place: usize, ty: Type) {
        self.escape(&ty);
        let known = self.next.parameters.entry(function).or_default();
        if let Some(before) = known.get_mut(place) {
            let joined = std::mem::replace(before, Type::Any).join(ty);
            *before = joined;
        } else if known.len() == place {
            known.push(ty);
        }
    }

    /// Walks a function.
    fn function(&mut self, function: &Function<'a>) {
        // In Rhai, functions with a name see the top level, but not the blocks around them.
        self.depth += 1;
        self.scoped(|walk| {
            if function.is_method {
                walk.declare("self", Type::Any);
            }
            let facts = walk.facts;
            let is_known = !facts.escaped.contains(&function.id);
            let known = facts.parameters.get(&function.id).filter(|_| is_known);
            for (place, parameter) in function.parameters.iter().enumerate() {
                let ty = known.and_then(|it| it.get(place)).cloned().unwrap_or(Type::Any);
                let is_probable = parameter.text == "ctx" && ty == Type::Any;
                let ty = if is_probable { Type::Ctx(Ctx::PROBABLE) } else { ty };
                walk.declare(parameter.text, ty);
            }
            let handler = match known.and_then(|it| it.first()) {
                Some(Type::Ctx(ctx)) => ctx.declared,
                Some(_) | None => None,
            };
            walk.handlers.push(handler);
            let around = (std::mem::take(&mut walk.branches), std::mem::take(&mut walk.tries));
            walk.statements(&function.body);
            (walk.branches, walk.tries) = around;
            walk.handlers.pop();
        });
        self.depth -= 1;
    }

    /// Returns the names that are variables here.
    fn visible(&self) -> Vec<&'a str> {
        let mut names: Vec<&'a str> =
            self.scopes.iter().flat_map(|it| it.keys().copied()).collect();
        names.extend(self.tops.keys());
        names.extend(self.functions.keys());
        names.extend(self.facts.globals.keys());
        names.extend(&self.program.globals);
        names
    }

    /// Returns an expression as it is written, if it is short.
    fn written(&self, span: Span, otherwise: &str) -> String {
        const CHARACTERS_MAX: usize = 40;
        let text = self.text.content.get(span.at..span.at + span.len).unwrap_or_default();
        let is_short = !text.is_empty() && text.len() <= CHARACTERS_MAX && !text.contains('\n');
        if is_short { text.to_owned() } else { otherwise.to_owned() }
    }
}
