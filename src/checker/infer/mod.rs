//! Infers the types of values, and reports wrong names, arguments and literals.
//!
//! A source is walked several times. Each walk uses the facts about variables and parameters that the previous one has found, until there
//! are no new ones; only the last walk reports. Unknown values are never reported.

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
pub(super) mod spot;
mod statements;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use self::spot::{Spot, SpotKind};
use super::{
    finding::Raw,
    rules::Rule,
    schemas::Knowledge,
    tree::{FunctionNode, Name, Span, Stmt, SyntaxTree},
    types::{Ctx, DeclaredHandler, Type},
};
use crate::scripting::Language;
use crate::sorted;

/// Maximum number of walks. The facts are correct after each of them.
const WALKS_MAX: usize = 8;
/// Maximum number of steps in all walks of one source: about a second.
const STEPS_MAX: usize = 20_000_000;

/// The number of scopes that can be searched in the time of one step.
const SCOPES_PER_STEP: usize = 4;

/// Maximum number of reported mistakes of one source.
const FINDINGS_MAX: usize = 200;

/// One source of a script: the script itself, or a module.
pub(super) struct SourceText<'a> {
    /// The path below the directory of the script, by which imports find it.
    pub(super) file: String,
    pub(super) language: Language,
    pub(super) content: &'a str,
    pub(super) tree: SyntaxTree<'a>,
}

/// The facts about all sources of a script together.
#[derive(Default)]
pub(super) struct Program<'a> {
    /// The files of the sources; modules are indexes in this list.
    pub(super) files: Vec<String>,
    pub(super) exports: Vec<Exports<'a>>,
    /// Every name that is a key of a table, or is assigned to as a field.
    pub(super) fields: BTreeSet<&'a str>,
    /// The globals that any source assigns to.
    pub(super) globals: BTreeSet<&'a str>,
    /// Whether a source may assign to other globals.
    pub(super) is_dynamic: bool,
    pub(super) knowledge: Knowledge,
}

impl Program<'_> {
    /// Returns the index of the kind that these words select, if it is the only one.
    fn kind_of(&self, words: &[&str]) -> Option<usize> {
        let kinds = self.knowledge.kinds.iter().enumerate();
        let mut found = kinds.filter(|(_, kind)| kind.is_selected(words)).map(|(at, _)| at);
        found.next().filter(|_| found.next().is_none())
    }
}

/// The names that a module exports.
#[derive(Default)]
pub(super) struct Exports<'a> {
    /// Whether all of its names are known.
    pub(super) is_closed: bool,
    /// The functions of Rhai, with their numbers of parameters.
    pub(super) functions: BTreeMap<&'a str, Vec<usize>>,
    pub(super) variables: BTreeSet<&'a str>,
    /// The fields that the Lua source assigns to.
    fields: BTreeSet<&'a str>,
}

impl<'a> Exports<'a> {
    /// Returns all names that it exports.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let all = self.functions.keys().chain(&self.variables).chain(&self.fields);
        all.copied()
    }

    /// Returns the first occurrence of a name.
    pub(super) fn find(&self, name: &str) -> Option<&'a str> {
        self.names().find(|it| *it == name)
    }
}

/// The facts about a source that walks have found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SourceFacts<'a> {
    variables: Vec<Variable>,
    /// The types of the arguments of functions, by their ids.
    parameters: BTreeMap<usize, Vec<Type>>,
    /// Functions that are called from unknown places.
    escaped: BTreeSet<usize>,
    pub(super) globals: BTreeMap<&'a str, (usize, Type)>,
    pub(super) fields: BTreeSet<&'a str>,
    /// Modules that are not known.
    pub(super) missing: BTreeSet<PathBuf>,
    /// The type of the value that the top level returns.
    returned: Option<Type>,
    /// Whether globals may be assigned to by computed names.
    pub(super) is_dynamic: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Variable {
    /// The number of assignments after its declaration.
    assigned: usize,
    /// For a table: whether other code may add names to it.
    is_open: bool,
}

/// The error of a source that takes too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Determines the facts about a source.
pub(super) fn facts<'a>(
    text: &SourceText<'a>,
    program: &Program<'a>,
) -> Result<(SourceFacts<'a>, Exports<'a>), TooLong> {
    let (mut facts, mut steps) = (SourceFacts::default(), STEPS_MAX / 2);
    for _ in 0..WALKS_MAX {
        let mut walk = InferenceWalk::new(text, program, &facts, steps);
        walk.top_level();
        steps = walk.steps.get();
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

/// Returns the mistakes in a source.
pub(super) fn findings<'a>(
    text: &SourceText<'a>,
    program: &Program<'a>,
    facts: &SourceFacts<'a>,
) -> Result<Vec<Raw>, TooLong> {
    let mut walk = InferenceWalk::new(text, program, facts, STEPS_MAX / 2);
    walk.reports = true;
    walk.top_level();
    if walk.steps.get() == 0 {
        return Err(TooLong);
    }
    sorted::sort(&mut walk.found);
    Ok(walk.found)
}

/// Returns the spot at an offset.
pub(super) fn spot_at<'a>(
    text: &SourceText<'a>,
    program: &Program<'a>,
    facts: &SourceFacts<'a>,
    at: usize,
) -> Result<Option<Spot<'a>>, TooLong> {
    let mut walk = InferenceWalk::new(text, program, facts, STEPS_MAX / 2);
    walk.reports = true;
    walk.probe = Some(at);
    walk.top_level();
    if walk.steps.get() == 0 {
        return Err(TooLong);
    }
    Ok(walk.spot)
}

fn exports<'a>(text: &SourceText<'a>, facts: &SourceFacts<'a>) -> Exports<'a> {
    if text.language == Language::Lua {
        let is_closed = match &facts.returned {
            Some(Type::Own(id)) => facts.variables.get(*id).is_some_and(|it| !it.is_open),
            Some(_) | None => false,
        };
        return Exports { is_closed, fields: facts.fields.clone(), ..Exports::default() };
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

/// One walk over a source.
struct InferenceWalk<'p, 'a> {
    text: &'p SourceText<'a>,
    program: &'p Program<'a>,
    /// The facts that the previous walk has found.
    facts: &'p SourceFacts<'a>,
    next: SourceFacts<'a>,
    scopes: Vec<BTreeMap<&'a str, usize>>,
    types: Vec<Type>,
    /// The names of the variables, in the order of their declarations.
    names: Vec<&'a str>,
    /// The functions of a Rhai script: numbers of parameters, and ids.
    functions: BTreeMap<&'a str, Vec<(usize, usize)>>,
    /// The variables of the top level of a Rhai script.
    tops: BTreeMap<&'a str, Type>,
    /// The number of enclosing functions.
    depth: usize,
    /// The handlers among them; `None` for other functions.
    handlers: Vec<Option<DeclaredHandler>>,
    /// The number of enclosing branches and loops of this function.
    branches: usize,
    /// The number of enclosing `try` blocks of this function.
    tries: usize,
    /// The number of expressions so far that may wait or leave a loop.
    activity: usize,
    /// The kinds whose status was checked.
    statuses: BTreeSet<usize>,
    steps: Cell<usize>,
    reports: bool,
    found: Vec<Raw>,
    /// The offset of an editor's request, and the spot there.
    probe: Option<usize>,
    spot: Option<Spot<'a>>,
}

impl<'p, 'a> InferenceWalk<'p, 'a> {
    fn new(
        text: &'p SourceText<'a>,
        program: &'p Program<'a>,
        facts: &'p SourceFacts<'a>,
        steps: usize,
    ) -> Self {
        InferenceWalk {
            text,
            program,
            facts,
            next: SourceFacts::default(),
            scopes: vec![BTreeMap::new()],
            types: Vec::new(),
            names: Vec::new(),
            functions: BTreeMap::new(),
            tops: BTreeMap::new(),
            depth: 0,
            handlers: Vec::new(),
            branches: 0,
            tries: 0,
            activity: 0,
            statuses: BTreeSet::new(),
            steps: Cell::new(steps),
            reports: false,
            found: Vec::new(),
            probe: None,
            spot: None,
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
        self.spend(1);
        self.steps.get() > 0
    }

    fn spend(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    fn report(&mut self, rule: Rule, span: Span, message: String, hint: Option<String>) {
        // A name that is not typed yet has no length.
        if self.reports && span.len > 0 {
            self.found.push(Raw { span, rule, message, hint, grant: None });
            // Finding the nearest name for each mistake would take long.
            self.reports = self.found.len() < FINDINGS_MAX;
        }
    }

    /// Records the spot at this position, if an editor has requested it.
    fn note(&mut self, name: Name<'a>, kind: impl FnOnce(&Self) -> SpotKind<'a>) {
        let Name { text, span } = name;
        let is_there = |at: usize| span.at <= at && at <= span.at + span.len;
        if self.probe.is_some_and(is_there) && self.spot.is_none() {
            self.spot = Some(Spot { span, name: text, kind: kind(self) });
        }
    }

    /// Records a member of a value.
    fn note_member(&mut self, holder: &Type, name: Name<'a>) {
        self.note(name, |_| SpotKind::Member(holder.clone()));
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
        self.names.push(name);
        self.next.variables.push(Variable::default());
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, id);
        }
    }

    fn variable(&self, name: &str) -> Option<usize> {
        // The scopes that are searched: they may be many.
        self.spend(self.scopes.len() / SCOPES_PER_STEP);
        self.scopes.iter().rev().find_map(|it| it.get(name)).copied()
    }

    /// Marks a value that is not tracked any further.
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

    /// Records that a function is called with this argument.
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

    /// Walks a function and its body.
    fn function(&mut self, function: &FunctionNode<'a>) {
        // In Rhai, named functions see the top level, but not the enclosing blocks.
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

    /// Returns the names of the visible variables.
    fn visible(&self) -> Vec<&'a str> {
        let mut names: Vec<&'a str> =
            self.scopes.iter().flat_map(|it| it.keys().copied()).collect();
        names.extend(self.tops.keys());
        names.extend(self.functions.keys());
        names.extend(self.facts.globals.keys());
        names.extend(&self.program.globals);
        names
    }

    /// Returns the source of an expression, if it is short.
    fn written(&self, span: Span, otherwise: &str) -> String {
        const CHARACTERS_MAX: usize = 40;
        let text = self.text.content.get(span.at..span.at + span.len).unwrap_or_default();
        let is_short = !text.is_empty() && text.len() <= CHARACTERS_MAX && !text.contains('\n');
        if is_short { text.to_owned() } else { otherwise.to_owned() }
    }
}
