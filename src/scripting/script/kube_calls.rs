//! The calls of `kube.*` in the text of a script, and what they are about: for the permissions that an operator needs.
//!
//! Not a parser: it reads the tokens of a text that loads. A variable is followed to the objects that are assigned to it in the same
//! text; what cannot be followed is reported as unknown, never guessed.

use std::collections::{BTreeMap, BTreeSet};

use super::fingerprint::{self, Kind, Token};
use crate::scripting::terms::Language;

/// Functions for one kind.
const FIXED: [(&str, &str); 6] = [
    ("secret", "secrets"),
    ("apply_crd", "customresourcedefinitions.apiextensions.k8s.io"),
    ("exec", "pods"),
    ("copy_to", "pods"),
    ("copy_from", "pods"),
    ("run", "jobs.batch"),
];

/// What `kube.run` does beside its Job, as functions of their own.
const BESIDE_RUN: [(&str, &str); 3] =
    [("run (pods)", "pods"), ("run (log)", "pods"), ("run (files)", "secrets")];

/// How many assignments are followed from a variable to an object.
const FOLLOWED_MAX: usize = 8;

/// A call of a function of `kube` in the text of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeCall {
    /// The function, such as `get`.
    pub function: String,
    /// The line of the call, from 1.
    pub line: u32,
    /// The option `subresource`, if it is written out.
    pub subresource: Option<String>,
    /// What it is about: several kinds if a variable may hold several; empty if it is not known before the call.
    pub targets: BTreeSet<KubeTarget>,
}

/// What a call of a function of `kube` is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeTarget {
    /// A resource, in the words of a selector.
    Resource(Vec<String>),
    /// The kind of an object.
    Object {
        /// Such as `apps/v1`.
        api_version: String,
        /// Such as `Deployment`.
        kind: String,
    },
    /// The object of the handler.
    Handled,
}

/// The calls and the objects of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeCalls {
    /// In the order of the text.
    pub calls: Vec<KubeCall>,
    /// The kinds of all objects that are written out in the text.
    pub objects: BTreeSet<KubeTarget>,
}

/// Returns the calls in a script with this extension, `lua` or `rhai`; none if the text is not understood.
pub fn kube_calls(extension: &str, text: &str) -> KubeCalls {
    let language = if extension == "rhai" { Language::Rhai } else { Language::Lua };
    let Some(tokens) = fingerprint::lex(language, text) else { return KubeCalls::default() };
    let mut reader = Reader { tokens: &tokens, bound: BTreeMap::new(), objects: BTreeSet::new() };
    reader.bind();
    let calls = (0..tokens.len()).flat_map(|at| reader.calls(at)).collect();
    KubeCalls { calls, objects: reader.objects }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound<'a> {
    Target(KubeTarget),
    /// Another name.
    Name(&'a str),
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    /// By the last part of a name: `quota` of `all.quota`.
    bound: BTreeMap<&'a str, BTreeSet<Bound<'a>>>,
    objects: BTreeSet<KubeTarget>,
}

impl<'a> Reader<'a> {
    fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    fn is(&self, at: usize, symbol: &str) -> bool {
        self.token(at).is_some_and(|it| it.is(symbol))
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        self.token(at).filter(|it| it.kind == Kind::Name).map(|it| it.text)
    }

    /// Binds names to the objects, calls and names that are assigned to them.
    fn bind(&mut self) {
        let mut function = None;
        for (at, token) in self.tokens.iter().enumerate() {
            if token.is("function") || token.is("fn") {
                function = self.name(at + 1).or(function);
            }
            let value = self.object(at).map(Bound::Target);
            if let Some(Bound::Target(object)) = &value {
                self.objects.insert(object.clone());
            }
            let value = value.or_else(|| self.assigned(at));
            let Some(value) = value else { continue };
            for name in self.names_before(at, function) {
                self.bound.entry(name).or_default().insert(value.clone());
            }
        }
    }

    /// Returns the value that begins here, if it is a call of `kube` or a name, and is assigned.
    fn assigned(&self, at: usize) -> Option<Bound<'a>> {
        let before = at.checked_sub(1)?;
        if !(self.is(before, "=") || self.is(before, ":") || self.is(before, "in")) {
            return None;
        }
        if let Some((_, arguments)) = self.function_of_kube(at) {
            let target = self.direct_target(arguments)?;
            return Some(Bound::Target(target));
        }
        let path = self.path(at)?;
        if path.is_handled {
            return Some(Bound::Target(KubeTarget::Handled));
        }
        Some(Bound::Name(path.last))
    }

    /// Returns the names to which the value that begins here is assigned.
    fn names_before(&self, at: usize, function: Option<&'a str>) -> Vec<&'a str> {
        let mut at = at;
        // `yaml.decode("…")`: the text is inside of a call.
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
        if self.is(before, "in") {
            // `for _, it in …`
            return (0..before)
                .rev()
                .map_while(|it| match self.token(it) {
                    Some(token) if token.is(",") => Some(None),
                    Some(token) if token.kind == Kind::Name => Some(Some(token.text)),
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

    /// Returns the object that is written out here: a map, or YAML in a string.
    fn object(&self, at: usize) -> Option<KubeTarget> {
        let token = self.token(at)?;
        if token.kind == Kind::Text {
            return in_yaml(token.text);
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
        let token = self.token(at).filter(|it| it.kind == Kind::Text)?;
        let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
        let is_plain = token.text.starts_with(['"', '\'']) && !inner.contains('\\');
        is_plain.then_some(inner)
    }

    /// Returns the function of `kube` that is called here, and where its arguments begin.
    fn function_of_kube(&self, at: usize) -> Option<(&'a str, usize)> {
        let is_kube =
            self.name(at) == Some("kube") && (self.is(at + 1, ".") || self.is(at + 1, "::"));
        let function = self.name(at + 2).filter(|_| is_kube)?;
        let has_parentheses = self.is(at + 3, "(");
        Some((function, at + 3 + usize::from(has_parentheses)))
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
            let used = BESIDE_RUN.into_iter().filter(move |it| it.0 != "run (files)" || with_files);
            used.map(move |(function, resource)| KubeCall {
                function: function.to_owned(),
                targets: [KubeTarget::Resource(vec![resource.to_owned()])].into(),
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
        // The first argument of this one is a verb.
        let arguments = arguments + if function == "can_i" { 2 } else { 0 };
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

    /// Returns what arguments that begin here name themselves: an object or a resource.
    fn direct_target(&self, at: usize) -> Option<KubeTarget> {
        if let Some(object) = self.object(at) {
            return Some(object);
        }
        let mut words = vec![self.text(at)?.to_owned()];
        let mut at = at + 1;
        while self.is(at, ",")
            && let Some(word) = self.text(at + 1)
        {
            words.push(word.to_owned());
            at += 2;
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
                Bound::Target(target) => drop(targets.insert(target.clone())),
                Bound::Name(other) if *other != name => self.follow(other, steps, targets),
                Bound::Name(_) => {}
            }
        }
    }
}

struct Path<'a> {
    last: &'a str,
    is_handled: bool,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str) -> KubeTarget {
        KubeTarget::Object { api_version: api_version.into(), kind: kind.into() }
    }

    fn resource(words: &[&str]) -> KubeTarget {
        KubeTarget::Resource(words.iter().map(|it| (*it).to_owned()).collect())
    }

    /// Returns `line: function targets` of each call.
    fn told(extension: &str, text: &str) -> Vec<(u32, String, Vec<KubeTarget>)> {
        let calls = kube_calls(extension, text).calls.into_iter();
        calls.map(|it| (it.line, it.function, it.targets.into_iter().collect())).collect()
    }

    #[test]
    fn some_functions_are_for_one_kind_and_some_read_what_they_write() {
        let text = "kube.secret('pods')\nkube.apply_crd(text)\nkube.create({ apiVersion = 'v1', kind = 'Pod' }, { exists_ok = true })";
        let crds = "customresourcedefinitions.apiextensions.k8s.io";
        assert_eq!(
            told("lua", text),
            [
                (1, "secret".to_owned(), vec![resource(&["secrets"])]),
                (2, "apply_crd".to_owned(), vec![resource(&[crds])]),
                (3, "create".to_owned(), vec![object("v1", "Pod")]),
                (3, "get".to_owned(), vec![object("v1", "Pod")]),
            ]
        );
    }

    #[test]
    fn arguments_name_resources_and_objects() {
        let text = r#"
kube.get("pods", { name = "x" })
kube.list("apps/v1", "Deployment")
kube.create({ apiVersion = "v1", kind = "Secret", metadata = { kind = "no" } })
kube.can_i("delete", "nodes")
-- kube.get("comments")
print("kube.get('strings')")
kube.delete(ctx.body)
kube.patch(unknown, {})
kube.version()"#;
        let expected = [
            (2, "get", vec![resource(&["pods"])]),
            (3, "list", vec![resource(&["apps/v1", "Deployment"])]),
            (4, "create", vec![object("v1", "Secret")]),
            (5, "can_i", vec![resource(&["nodes"])]),
            (8, "delete", vec![KubeTarget::Handled]),
            (9, "patch", vec![]),
            (10, "version", vec![]),
        ];
        assert_eq!(told("lua", text), expected.map(|(line, it, all)| (line, it.to_owned(), all)));
    }

    #[test]
    fn variables_are_followed_to_their_objects() {
        let lua = r#"
local all = { quota = { apiVersion = "v1", kind = "ResourceQuota" } }
local function pod(ctx)
    return { apiVersion = "v1", kind = "Pod" }
end
local made = pod(ctx)
local text = yaml.decode([[
apiVersion: batch/v1
kind: Job
]])
kube.apply(all.quota)
kube.create(made)
kube.create(pod(ctx))
kube.create(text)
for _, it in kube.list("nodes") do kube.delete(it) end
local me = ctx.body
kube.delete(me)"#;
        let targets: Vec<_> = told("lua", lua).into_iter().flat_map(|it| it.2).collect();
        let expected = [
            object("v1", "ResourceQuota"),
            object("v1", "Pod"),
            object("v1", "Pod"),
            object("batch/v1", "Job"),
            resource(&["nodes"]),
            resource(&["nodes"]),
            KubeTarget::Handled,
        ];
        assert_eq!(targets, expected);
    }

    #[test]
    fn rhai_is_read_in_the_same_way() {
        let rhai = r#"
fn pod(ctx) { return #{ apiVersion: "v1", kind: "Pod" }; }
let made = pod(ctx);
kube::create(made);
kube::get("configmaps", #{ name: "x" });
kube::delete(ctx.body);"#;
        let targets: Vec<_> = told("rhai", rhai).into_iter().flat_map(|it| it.2).collect();
        let expected = [object("v1", "Pod"), resource(&["configmaps"]), KubeTarget::Handled];
        assert_eq!(targets, expected);
    }
}
