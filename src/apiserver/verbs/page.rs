//! What a list or a watch asks for beyond its selectors: which state, and which page of it.

use base64::{DecodeError, Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::apiserver::{
    refusal::{Problem, ProblemKind, Refusal, go},
    request::{
        json::{self, Fault},
        query::Query,
    },
    store::Place,
};

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Refuses parameters that make no sense, alone or together.
pub(crate) fn check(query: &Query, watching: bool) -> Result<(), Refusal> {
    query.integer("timeoutSeconds")?;
    query.integer("limit")?;
    let problems = if watching { problems_of_watch(query) } else { problems_of_list(query) };
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &problems))
}

const MATCH: &str = "resourceVersionMatch";

fn problems_of_list(query: &Query) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(how) = query.text(MATCH) {
        let version = query.text("resourceVersion");
        if version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            problems.push(Problem::forbidden(MATCH, why));
        }
        if query.text("continue").is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            problems.push(Problem::forbidden(MATCH, why));
        }
        if !matches!(how, "Exact" | "NotOlderThan") {
            problems.push(unknown_match(how, &["Exact", "NotOlderThan", ""]));
        }
        if how == "Exact" && version == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            problems.push(Problem::forbidden(MATCH, why));
        }
    }
    if query.has("sendInitialEvents") {
        let why = "sendInitialEvents is forbidden for list";
        problems.push(Problem::forbidden("sendInitialEvents", why));
    }
    problems
}

fn problems_of_watch(query: &Query) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (how, initial) = (query.text(MATCH), query.has("sendInitialEvents"));
    if initial && how != Some("NotOlderThan") {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        problems.push(Problem::forbidden(MATCH, why));
    }
    let Some(how) = how else { return problems };
    if !initial {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        problems.push(Problem::forbidden(MATCH, why));
    }
    if how != "NotOlderThan" {
        problems.push(unknown_match(how, &["NotOlderThan"]));
    }
    if query.text("continue").is_some() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        problems.push(Problem::forbidden(MATCH, why));
    }
    problems
}

fn unknown_match(how: &str, known: &[&str]) -> Problem {
    let known = known.iter().map(|it| (*it).to_owned()).collect();
    Problem::new(MATCH, ProblemKind::NotSupported(how.into(), known))
}

/// Which page of which state is asked for.
pub(crate) struct Page {
    pub(crate) revision: u64,
    /// The first object that may be on it.
    pub(crate) start: Option<Place>,
    pub(crate) limit: Option<usize>,
}

impl Page {
    /// `namespace` is that of the list, `current` the version of the server.
    pub(crate) fn parse(
        query: &Query,
        namespace: Option<&str>,
        namespaced: bool,
        current: u64,
    ) -> Result<Self, Refusal> {
        let limit = query.integer("limit")?.and_then(|it| usize::try_from(it).ok());
        let limit = limit.filter(|it| *it > 0);
        let asked = query.text("resourceVersion");
        if let Some(token) = query.text("continue") {
            let scope = if namespaced { namespace } else { Some("") };
            let (revision, start) = place(token, scope)
                .map_err(|why| Refusal::bad_request(format!("invalid continue token: {why}")))?;
            if asked.is_some_and(|it| it != "0") {
                return Err(Refusal::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            // A version that is none asks for the present one: so tokens say it that have outlived their state.
            return Ok(Self { revision: revision.unwrap_or(current), start: Some(start), limit });
        }
        let how = query.text(MATCH);
        let (revision, limit) = match asked {
            None => (current, limit),
            // Any version will do: the real server answers from memory, where it counts no pages.
            Some("0") => (current, None),
            Some(text) => {
                let asked = version(text)?;
                if asked > current {
                    return Err(Refusal::too_new(asked, current));
                }
                // Pages were exact before clients could say so.
                let exact = how == Some("Exact") || (how.is_none() && limit.is_some());
                (if exact { asked } else { current }, limit)
            }
        };
        Ok(Self { revision, start: None, limit })
    }

    /// The state is forgotten.
    pub(crate) fn too_old(&self, oldest: u64) -> Refusal {
        match self.start {
            Some(_) => Refusal::continue_too_old(),
            None => Refusal::too_old(self.revision, oldest),
        }
    }
}

/// A token says where the next page begins: after this object, in this state. Lists of all namespaces name that too.
pub(crate) fn token(revision: u64, namespace: &str, name: &str) -> String {
    let start =
        if namespace.is_empty() { format!("{name}\0") } else { format!("{namespace}/{name}\0") };
    let token = json!({ "v": TOKEN_VERSION, "rv": revision, "start": start });
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

/// Opens a token; without a namespace, its place names one. The error is in the words of the real server.
fn place(token: &str, namespace: Option<&str>) -> Result<(Option<u64>, Place), String> {
    let invalid = |why: &str| format!("continue key is not valid: {why}");
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|error| invalid(&format!("illegal base64 data at input byte {}", at(&error))))?;
    let token = json::parse(&bytes).map_err(|fault| match fault {
        Fault::Syntax { text, .. } => invalid(&text),
        Fault::Number => invalid("number out of range"),
    })?;
    let text = |field| token.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("v") != TOKEN_VERSION {
        let given = go::quote(text("v"));
        let why = format!("server does not recognize this encoded version {given}");
        return Err(invalid(&why));
    }
    let revision = token.get("rv").and_then(Value::as_i64).unwrap_or(0);
    if revision == 0 {
        let why = format!("incorrect encoded start resourceVersion (version {TOKEN_VERSION})");
        return Err(invalid(&why));
    }
    let start = text("start");
    if start.is_empty() {
        return Err(invalid(&format!("encoded start key empty (version {TOKEN_VERSION})")));
    }
    let path = start.strip_prefix('/').unwrap_or(start);
    if path.split('/').any(|it| matches!(it, "" | "." | "..")) {
        return Err(invalid(start));
    }
    let (namespace, name) = match (namespace, path.split_once('/')) {
        (Some(namespace), _) => (namespace, path),
        (None, Some((namespace, name))) => (namespace, name),
        (None, None) => (path, ""),
    };
    let place = Place { namespace: namespace.into(), name: name.into() };
    Ok((u64::try_from(revision).ok(), place))
}

fn at(error: &DecodeError) -> usize {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => *at,
        DecodeError::InvalidLength(at) => *at,
        DecodeError::InvalidPadding => 0,
    }
}

/// A version that a client names.
pub(crate) fn version(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_error| {
        let shown = go::quote(text);
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let why = if digits { "value out of range" } else { "invalid syntax" };
        Refusal::unclassed(format!(
            "resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {why}"
        ))
    })
}
