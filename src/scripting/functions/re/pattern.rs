//! A bounded cache of compiled patterns.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use parking_lot::Mutex;
use regex_automata::{
    hybrid,
    meta::{BuildError, Regex},
    nfa::thompson::{self, NFA},
    util::syntax,
};
use serde_json::Value;

use crate::scripting::functions::outcome::Failure;

/// Longer patterns are data.
const PATTERN_MAX: usize = 8 * 1024;
/// Size classes of compiled patterns, in bytes. The smallest one that suffices determines the worst-case cost of a step of a
/// search.
const SIZES: [usize; 5] = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
/// Maximum bytes of compiled patterns that one VM keeps, including what their searches need: some sixty patterns.
const KEPT_MAX: usize = 32 << 20;
/// The size of a pattern for long strings, relative to that for short ones: its automata, forwards and backwards.
const TIMES: usize = 4;
/// Maximum bytes that a search may use to be faster.
const SCRATCH_MAX: usize = 256 * 1024;
/// Maximum nesting of groups.
const NESTED_MAX: u32 = 100;

/// The compiled patterns of one VM, the oldest first.
#[derive(Debug, Default)]
pub(in crate::scripting::functions) struct Patterns(Mutex<IndexMap<String, Arc<Pattern>>>);

/// One compiled pattern, for short and for long strings.
#[derive(Debug)]
pub(super) struct Pattern {
    /// For short strings: the fastest engine, which cannot be interrupted.
    pub(super) whole: Regex,
    /// The size class, one of [`SIZES`].
    pub(super) size: usize,
    text: String,
    /// For long strings; `None` if it would be too large.
    stepwise: OnceLock<Option<Stepwise>>,
}

/// The engines that search step by step.
#[derive(Debug)]
pub(super) struct Stepwise {
    /// Finds matches quickly; fails at a Unicode word boundary.
    pub(super) automata: hybrid::regex::Regex,
    /// Finds everything, including groups.
    pub(super) nfa: NFA,
}

impl Patterns {
    /// Returns the compiled pattern.
    pub(super) fn get(&self, text: &str) -> Result<Arc<Pattern>, Failure> {
        let mut kept = self.0.lock();
        if let Some(pattern) = kept.get(text) {
            return Ok(Arc::clone(pattern));
        }
        let pattern = Arc::new(Pattern::compile(text)?);
        let weight = |it: &Pattern| it.size * TIMES + 2 * SCRATCH_MAX;
        while kept.values().map(|it| weight(it)).sum::<usize>() + weight(&pattern) > KEPT_MAX {
            kept.shift_remove_index(0);
        }
        kept.insert(text.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    }
}

impl Pattern {
    fn compile(text: &str) -> Result<Self, Failure> {
        if text.len() > PATTERN_MAX {
            return Err(format!("`pattern`: longer than {PATTERN_MAX} bytes").into());
        }
        for size in SIZES {
            let config = Regex::config()
                .nfa_size_limit(Some(size))
                .onepass_size_limit(Some(SCRATCH_MAX))
                .hybrid_cache_capacity(SCRATCH_MAX)
                .dfa_size_limit(Some(SCRATCH_MAX));
            match Regex::builder().configure(config).syntax(dialect()).build(text) {
                Ok(whole) => {
                    let (text, stepwise) = (text.to_owned(), OnceLock::new());
                    return Ok(Pattern { whole, size, text, stepwise });
                }
                Err(problem) if problem.size_limit().is_some() => {}
                Err(problem) => return Err(wrong(text, &problem)),
            }
        }
        let most = SIZES.last().copied().unwrap_or_default();
        Err(format!(
            "`pattern`: takes more than {most} bytes when it is compiled; use smaller repetitions"
        )
        .into())
    }

    /// Returns the engines that search step by step.
    ///
    /// # Errors
    /// The pattern is too large for them.
    pub(super) fn stepwise(&self) -> Result<&Stepwise, Failure> {
        let stepwise = self.stepwise.get_or_init(|| self.compile_stepwise());
        stepwise.as_ref().ok_or_else(|| {
            "`text`: too long for this pattern; search it in parts, or use smaller repetitions in the pattern"
                .into()
        })
    }

    fn compile_stepwise(&self) -> Option<Stepwise> {
        let dfa = hybrid::dfa::Config::new()
            .cache_capacity(SCRATCH_MAX)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true);
        // Reversed patterns are larger.
        let config = thompson::Config::new().nfa_size_limit(Some(self.size * TIMES));
        let mut builder = hybrid::regex::Builder::new();
        builder.dfa(dfa).thompson(config.clone()).syntax(dialect());
        let automata = builder.build(&self.text).ok()?;
        let mut compiler = NFA::compiler();
        let nfa = compiler.configure(config).syntax(dialect()).build(&self.text).ok()?;
        Some(Stepwise { automata, nfa })
    }
}

fn dialect() -> syntax::Config {
    syntax::Config::new().nest_limit(NESTED_MAX)
}

fn wrong(text: &str, problem: &BuildError) -> Failure {
    let message = match problem.syntax_error() {
        Some(problem) => problem.to_string(),
        None => problem.to_string(),
    };
    let message = message.lines().last().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    format!("`pattern`: {}: {message}", Value::from(text)).into()
}
