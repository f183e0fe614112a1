//! Finds the calls of `kube.*` in the source of a script and their targets, from which the permissions of an operator are derived.
//!
//! Not a parser: it reads the tokens of source that loads. A variable is followed to the objects that are assigned to it in the
//! same source; a target that cannot be followed is reported as unknown, never guessed.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::fingerprint::{self, Token, TokenKind};
use crate::scripting::terms::Language;
use crate::sorted::CollectSorted as _;

/// Functions for one kind.
const FIXED: [(&str, &str); 6] = [
    ("secret", "secrets"),
    ("apply_crd", "customresourcedefinitions.apiextensions.k8s.io"),
    ("exec", "pods"),
    ("copy_to", "pods"),
    ("copy_from", "pods"),
    ("run", "jobs.batch"),
];

/// What `kube.run` does in addition to its Job, as separate functions.
const STEPS_OF_RUN: [(&str, &str); 3] =
    [("run (pods)", "pods"), ("run (log)", "pods"), ("run (files)", "secrets")];

/// Functions whose result is their first argument, or is described by it.
const TRANSPARENT: [(&str, &str); 6] = [
    ("kopf", "adopt"),
    ("kopf", "copy"),
    ("kopf", "label"),
    ("template", "render"),
    ("yaml", "decode"),
    ("yaml", "decode_all"),
];

/// Maximum number of assignments that are followed from a variable to an object.
const FOLLOWED_MAX: usize = 8;

/// A call of a function of `kube` in the source of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeCall {
    /// The function, such as `get`.
    pub function: String,
    /// The line of the call, from 1.
    pub line: u32,
    /// The option `subresource`, if it is a literal.
    pub subresource: Option<String>,
    /// The targets: several kinds if a variable may hold several; empty if they are known only at run time.
    pub targets: BTreeSet<KubeTarget>,
}

/// The target of a call of a function of `kube`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeTarget {
    /// A resource, in the words of a selector.
    Resource(Vec<String>),
    /// The kind of an object.
    Object {
        /// The version, such as `apps/v1`.
        api_version: String,
        /// The kind, such as `Deployment`.
        kind: String,
    },
    /// The object of the handler.
    Handled,
    /// The objects in the templates next to the script.
    Files,
}

/// The calls and the objects of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeCalls {
    /// In the order of the source.
    pub calls: Vec<KubeCall>,
    /// The kinds of all objects that are literals in the source.
    pub objects: BTreeSet<KubeTarget>,
}

/// Returns the calls in a script with this extension, `lua` or `rhai`; none if the source cannot be read.
pub fn kube_calls(extension: &str, text: &str) -> KubeCalls {
    let language = if extension == "rhai" { Language::Rhai } else { Language::Lua };
    let Some(tokens) = fingerprint::lex(language, text) else { return KubeCalls::default() };
    let mut reader = KubeCallReader {
        tokens: &tokens,
        bound: BTreeMap::new(),
        constants: BTreeMap::new(),
        objects: BTreeSet::new(),
    };
    reader.bind();
    let calls = (0..tokens.len()).flat_map(|at| reader.calls(at)).collect();
    KubeCalls { calls, objects: reader.objects }
}

/// A value that is assigned to a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BoundValue<'a> {
    Target(KubeTarget),
    /// The value of another name.
    Name(&'a str),
}

struct KubeCallReader<'a> {
    tokens: &'a [Token<'a>],
    /// By the last part of a name: `quota` of `all.quota`.
    bound: BTreeMap<&'a str, BTreeSet<BoundValue<'a>>>,
    /// Strings by the names that are declared for them, such as those of resources.
    constants: BTreeMap<&'a str, &'a str>,
    objects: BTreeSet<KubeTarget>,
}

impl<'a> KubeCallReader<'a> {
    fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    fn is(&self, at: usize, symbol: &str) -> bool {
        self.token(at).is_some_and(|it| it.is(symbol))
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        self.token(at).filter(|it| it.kind == TokenKind::Name).map(|it| it.text)
    }

    /// Binds names to the objects, calls and names that are assigned to them.
    fn bind(&mut self) {
        let mut function = None;
        for (at, token) in self.tokens.iter().enumerate() {
            if token.is("function") || token.is("fn") {
                function = self.name(at + 1).or(function);
            }
            self.constants.extend(self.constant(at));
            let value = self.object(at).or_else(|| self.made(at)).map(BoundValue::Target);
            if let Some(BoundValue::Target(object)) = &value {
                self.objects.insert(object.clone());
            }
            let value = value.or_else(|| self.assigned(at));
            let Some(value) = value else { continue };
            for name in self.names_before(at, function) {
                if matches!(value, BoundValue::Name(_)) && self.is_plain_field(at, name) {
                    continue;
                }
                self.bound.entry(name).or_default().insert(value.clone());
            }
        }
    }

    /// Returns the object that a call of a function of the script creates here: one with a version and a kind among its arguments.
    fn made(&self, at: usize) -> Option<KubeTarget> {
        let is_of_kube = at.checked_sub(2).is_some_and(|it| self.name(it) == Some("kube"));
        let is_declared =
            at.checked_sub(1).is_some_and(|it| self.is(it, "function") || self.is(it, "fn"));
        let is_call = self.name(at).is_some() && self.is(at + 1, "(");
        if !is_call || is_of_kube || is_declared {
            return None;
        }
        let mut depth = 0_usize;
        for (inner, token) in self.tokens.iter().enumerate().skip(at + 1) {
            if token.is_one_of(&["{", "#{", "(", "["]) {
                depth += 1;
            } else if token.is_one_of(&["}", ")", "]"]) {
                depth = depth.checked_sub(1).filter(|it| *it > 0)?;
            } else if depth == 1
                && self.is(inner + 1, ",")
                && let Some(api_version) = self.text(inner).filter(|it| is_api_version(it))
                && let Some(kind) = self.text(inner + 2).filter(|it| is_kind(it))
            {
                let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
                return Some(KubeTarget::Object { api_version, kind });
            }
        }
        None
    }

    /// Returns the name that is declared here for a string, and the string.
    fn constant(&self, at: usize) -> Option<(&'a str, &'a str)> {
        let is_declared = ["local", "const", "let"].iter().any(|it| self.is(at, it));
        let name = self.name(at + 1).filter(|_| is_declared && self.is(at + 2, "="))?;
        let goes_on = ["..", "+", ".", ":", "["].iter().any(|it| self.is(at + 4, it));
        Some((name, self.text(at + 3).filter(|_| !goes_on)?))
    }

    /// Returns where the first argument begins, inside of functions that return the same object.
    fn inside(&self, at: usize) -> usize {
        let mut at = at;
        while let Some((module, function)) = self.name(at).zip(self.name(at + 2))
            && TRANSPARENT.contains(&(module, function))
            && self.is(at + 3, "(")
        {
            at += 4;
        }
        at
    }

    /// Returns the value that begins here, if it is a call of `kube` or a name, and is assigned.
    fn assigned(&self, at: usize) -> Option<BoundValue<'a>> {
        let before = at.checked_sub(1)?;
        if !(self.is(before, "=") || self.is(before, ":") || self.is(before, "in")) {
            return None;
        }
        if let Some((_, arguments)) = self.function_of_kube(at) {
            let target = self.direct_target(arguments).map(BoundValue::Target);
            return target
                .or_else(|| Some(BoundValue::Name(self.path(self.inside(arguments))?.last)));
        }
        let path = self.path(self.inside(at))?;
        if path.is_handled {
            return Some(BoundValue::Target(KubeTarget::Handled));
        }
        Some(BoundValue::Name(path.last))
    }

    /// Returns the names to which the value that begins here is assigned.
    fn names_before(&self, at: usize, function: Option<&'a str>) -> Vec<&'a str> {
        let mut at = at;
        // `yaml.decode("…")`: the string is inside of a call.
        while let Some(before) = at.checked_sub(1) {
            let is_callee = self.name(before).is_some()
                || [".", "::", "("].iter().any(|it| self.is(before, it));
            if !is_callee {
                break;
            }
            at = before;
        }
        let Some(before) = at.checked_sub(1) else { return Vec::new() };
        if self.is(before, "return") {
            return function.into_iter().collect();
        }
        if [";", "{", "}"].iter().any(|it| self.is(before, it)) && self.is_last(at) {
            // The value of a function in Rhai.
            return function.into_iter().collect();
        }
        if self.is(before, "in") {
            // `for _, it in …`
            return (0..before)
                .rev()
                .map_while(|it| match self.token(it) {
                    Some(token) if token.is(",") => Some(None),
                    Some(token) if token.kind == TokenKind::Name => Some(Some(token.text)),
                    _ => None,
                })
                .flatten()
                .collect();
        }
        if self.is(before, "=") || self.is(before, ":") {
            return before.checked_sub(1).and_then(|it| self.name(it)).into_iter().collect();
        }
        Vec::new()
    }

    /// Returns whether the expression that begins here is the last one of its block.
    fn is_last(&self, at: usize) -> bool {
        let mut depth = 0_usize;
        for (inner, token) in self.tokens.iter().enumerate().skip(at) {
            if token.is_one_of(&["{", "#{", "(", "["]) {
                depth += 1;
            } else if token.is_one_of(&["}", ")", "]"]) {
                let Some(less) = depth.checked_sub(1) else { return self.is(inner, "}") };
                depth = less;
            } else if depth == 0 && token.is(";") {
                return false;
            }
        }
        false
    }

    /// Returns whether a name is that of a field which never holds an object, such as `name = user` in metadata.
    fn is_plain_field(&self, at: usize, name: &str) -> bool {
        let word = at.checked_sub(3);
        let words = ["local", "let", "const"];
        let is_declared = word.is_some_and(|it| words.iter().any(|word| self.is(it, word)));
        ["name", "namespace"].contains(&name) && !is_declared
    }

    /// Returns the object that is a literal here: a map, or YAML in a string.
    fn object(&self, at: usize) -> Option<KubeTarget> {
        let token = self.token(at)?;
        if token.kind == TokenKind::Text {
            return if has_files(token.text) {
                Some(KubeTarget::Files)
            } else {
                in_yaml(token.text)
            };
        }
        if !token.is("{") && !token.is("#{") {
            return None;
        }
        let (mut depth, mut found) = (0_usize, BTreeMap::new());
        for (inner, token) in self.tokens.iter().enumerate().skip(at) {
            if token.is_one_of(&["{", "#{", "(", "["]) {
                depth += 1;
            } else if token.is_one_of(&["}", ")", "]"]) {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if depth == 1
                && (self.is(inner, "=") || self.is(inner, ":"))
                && let Some(key) = inner.checked_sub(1).and_then(|it| self.key(it))
                && let Some(value) = self.text(inner + 1)
            {
                found.insert(key, value);
            }
        }
        let take = |key: &str| found.get(key).map(|it| (*it).to_owned());
        Some(KubeTarget::Object { api_version: take("apiVersion")?, kind: take("kind")? })
    }

    fn key(&self, at: usize) -> Option<&'a str> {
        self.name(at).or_else(|| self.text(at))
    }

    /// Returns the content of a plain string.
    fn text(&self, at: usize) -> Option<&'a str> {
        let token = self.token(at).filter(|it| it.kind == TokenKind::Text)?;
        let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
        let is_plain = token.text.starts_with(['"', '\'']) && !inner.contains('\\');
        is_plain.then_some(inner)
    }

    /// Returns the function of `kube` that is called here, and where its arguments begin.
    fn function_of_kube(&self, at: usize) -> Option<(&'a str, usize)> {
        let is_kube =
            self.name(at) == Some("kube") && (self.is(at + 1, ".") || self.is(at + 1, "::"));
        let function = self.name(at + 2).filter(|_| is_kube)?;
        // `pcall(kube.create, object)`
        let has_arguments = self.is(at + 3, "(") || self.is(at + 3, ",");
        Some((function, at + 3 + usize::from(has_arguments)))
    }

    /// Returns the call that begins here, and a second one for what it reads.
    fn calls(&self, at: usize) -> impl Iterator<Item = KubeCall> + use<> {
        let call = self.call(at);
        let reads = call.clone().filter(|it| {
            let is_read = it.function == "create" && self.has_option(at + 3, "exists_ok");
            is_read && !it.targets.is_empty()
        });
        let read = reads.map(|it| KubeCall { function: "get".to_owned(), ..it });
        let with_files = self.has_option(at + 3, "files");
        let run = call.clone().filter(|it| it.function == "run");
        let beside = run.into_iter().flat_map(move |run| {
            let used =
                STEPS_OF_RUN.into_iter().filter(move |it| it.0 != "run (files)" || with_files);
            used.map(move |(function, resource)| KubeCall {
                function: function.to_owned(),
                targets: [KubeTarget::Resource(vec![resource.to_owned()])]
                    .into_iter()
                    .collect_set(),
                ..run.clone()
            })
        });
        call.into_iter().chain(read).chain(beside)
    }

    /// Returns whether the call whose arguments begin here has an option.
    fn has_option(&self, at: usize, option: &str) -> bool {
        self.place_of_option(at, option).is_some()
    }

    fn call(&self, at: usize) -> Option<KubeCall> {
        let (function, arguments) = self.function_of_kube(at)?;
        let line = self.token(at)?.line;
        // The first argument of `can_i` is a verb.
        let arguments = self.inside(arguments + if function == "can_i" { 2 } else { 0 });
        let mut targets = BTreeSet::new();
        if let Some((_, resource)) = FIXED.iter().find(|(it, _)| *it == function) {
            targets.insert(KubeTarget::Resource(vec![(*resource).to_owned()]));
        } else if let Some(target) = self.direct_target(arguments) {
            targets.insert(target);
        } else if let Some(path) = self.path(arguments) {
            if path.is_handled {
                targets.insert(KubeTarget::Handled);
            } else {
                self.follow(path.last, FOLLOWED_MAX, &mut targets);
            }
        }
        let subresource = self.option_of(at + 3, "subresource").map(str::to_owned);
        Some(KubeCall { function: function.to_owned(), line, subresource, targets })
    }

    /// Returns an option of the call whose arguments begin here.
    fn option_of(&self, at: usize, option: &str) -> Option<&'a str> {
        self.text(self.place_of_option(at, option)? + 2)
    }

    fn place_of_option(&self, at: usize, option: &str) -> Option<usize> {
        let mut depth = 0_usize;
        for (inner, token) in self.tokens.iter().enumerate().skip(at) {
            if token.is_one_of(&["{", "#{", "(", "["]) {
                depth += 1;
            } else if token.is_one_of(&["}", ")", "]"]) {
                depth = depth.checked_sub(1).filter(|it| *it > 0)?;
            } else if depth == 2 && self.name(inner) == Some(option) {
                return Some(inner);
            }
        }
        None
    }

    /// Returns the object or the resource that the arguments from here on name literally.
    fn direct_target(&self, at: usize) -> Option<KubeTarget> {
        if let Some(object) = self.object(at) {
            return Some(object);
        }
        let declared = || {
            let name = self.name(at).filter(|_| self.is(at + 1, ",") || self.is(at + 1, ")"))?;
            self.constants.get(name).copied().filter(|_| !self.bound.contains_key(name))
        };
        let mut words = vec![self.text(at).or_else(declared)?.to_owned()];
        let mut at = at + 1;
        while self.is(at, ",")
            && let Some(word) = self.text(at + 1)
        {
            words.push(word.to_owned());
            at += 2;
        }
        // `kube.get("v1", it.kind)`
        let is_half = words.len() == 1 && words.iter().all(|it| is_api_version(it));
        if is_half && self.is(at, ",") && self.name(at + 1).is_some() {
            return None;
        }
        Some(KubeTarget::Resource(words))
    }

    /// Returns the name that begins here: `pod`, `all.quota`, `ctx.body`, `make_pod(…)`.
    fn path(&self, at: usize) -> Option<Path<'a>> {
        let mut last = self.name(at)?;
        let (mut at, mut before) = (at + 1, "");
        while [".", "::"].iter().any(|it| self.is(at, it))
            && let Some(next) = self.name(at + 1)
        {
            (before, last) = (last, next);
            at += 2;
        }
        let is_handled =
            matches!(before, "ctx" | "_ctx" | "it") && matches!(last, "body" | "object");
        Some(Path { last, is_handled })
    }

    /// Adds everything that a name may stand for.
    fn follow(&self, name: &str, steps: usize, targets: &mut BTreeSet<KubeTarget>) {
        let Some(steps) = steps.checked_sub(1) else { return };
        for bound in self.bound.get(name).into_iter().flatten() {
            match bound {
                BoundValue::Target(target) => drop(targets.insert(target.clone())),
                BoundValue::Name(other) if *other != name => self.follow(other, steps, targets),
                BoundValue::Name(_) => {}
            }
        }
    }
}

struct Path<'a> {
    last: &'a str,
    is_handled: bool,
}

/// Returns whether a string is like `v1` or `apps/v1beta1`.
fn is_api_version(text: &str) -> bool {
    let version = text.rsplit_once('/').map_or(text, |(_, version)| version);
    let number = version.strip_prefix('v').unwrap_or_default();
    number.starts_with(|it: char| it.is_ascii_digit())
        && number.chars().all(|it| it.is_ascii_alphanumeric())
}

/// Returns whether a string is like `ConfigMap`.
fn is_kind(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_uppercase())
        && text.chars().all(|it| it.is_ascii_alphanumeric())
}

/// Returns whether a template loads files.
fn has_files(text: &str) -> bool {
    let tags = text.split("{%").skip(1).map(|it| it.trim_start_matches('-').trim_start());
    tags.into_iter().any(|it| ["include", "import", "from"].iter().any(|word| it.starts_with(word)))
}

/// Returns the kinds of the objects in a file with YAML, such as a template.
pub fn kinds_in_yaml(text: &str) -> BTreeSet<KubeTarget> {
    text.split("\n---").filter_map(in_yaml).collect_set()
}

/// Returns the kind of an object in YAML.
fn in_yaml(text: &str) -> Option<KubeTarget> {
    let value = |key: &str| {
        let mut lines = text.lines().map(|it| it.trim_start_matches(['[', '=', '`', '"', '\'']));
        let value = lines.find_map(|it| it.strip_prefix(key)?.strip_prefix(':'))?;
        let value = value.split(" #").next()?.trim().trim_matches(['"', '\'']);
        (!value.is_empty() && !value.contains(['{', '$'])).then(|| value.to_owned())
    };
    Some(KubeTarget::Object { api_version: value("apiVersion")?, kind: value("kind")? })
}
