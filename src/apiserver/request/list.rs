//! `ListOptions`: which state of a collection is asked for, and how much of it.

use std::time::Duration;

use super::query::Query;
use crate::refusal::{Problem, Refusal, go};

/// Which versions are meant by a version.
const MATCH: &str = "resourceVersionMatch";

/// The parameters of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Not asked for is not the same as zero, which is any version.
    pub(crate) version: Option<u64>,
    /// Exactly this version.
    pub(crate) exact: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) next: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Refusal> {
        let limit = query.integer("limit")?;
        let timeout = query.integer("timeoutSeconds")?;
        let next = query.text("continue").map(String::from);
        check_match(query, watch)?;
        let version = query.text("resourceVersion").map(version).transpose();
        let version = version.map_err(|it| {
            if watch {
                return it;
            }
            Refusal::bad_request(format!("invalid resource version: {}", it.message))
        })?;
        if next.is_some() && !watch && version.is_some_and(|it| it > 0) {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Refusal::bad_request(why));
        }
        let limit = limit.and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0);
        let matching = query.text("resourceVersionMatch");
        // Older than the parameter: a page of a version was always exactly that.
        let page = matching.is_none() && limit.is_some() && version.is_some_and(|it| it > 0);
        Ok(Self {
            version,
            exact: matching == Some("Exact") || page,
            // Whatever is there is told at once: the real server has it in its cache.
            limit: limit.filter(|_| version != Some(0) || next.is_some()),
            next,
            timeout: timeout
                .and_then(|it| u64::try_from(it).ok())
                .filter(|it| *it > 0)
                .map(Duration::from_secs),
        })
    }
}

/// A version as clients got it from the server.
pub(crate) fn version(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_error| {
        // The real server takes this for a mistake of its own.
        let text = go::quote(text);
        Refusal::unclassed(format!(
            "resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: invalid syntax"
        ))
    })
}

fn check_match(query: &Query, watch: bool) -> Result<(), Refusal> {
    if watch {
        return check_watch(query);
    }
    let mut problems = Vec::new();
    if query.has("sendInitialEvents") {
        let why = "sendInitialEvents is forbidden for list";
        problems.push(Problem::forbidden("sendInitialEvents", why));
    }
    let Some(matching) = query.text(MATCH) else { return refuse(&problems) };
    let mut forbidden = |why: &str| problems.push(Problem::forbidden(MATCH, why));
    let version = query.text("resourceVersion");
    if version.is_none() {
        forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if query.text("continue").is_some() {
        forbidden("resourceVersionMatch is forbidden when continue is provided");
    }
    if matching == "Exact" && version == Some("0") {
        forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        let accepted = ["Exact", "NotOlderThan", ""];
        problems.push(Problem::not_supported(MATCH, matching, &accepted));
    }
    refuse(&problems)
}

/// What a watch may say of its first events.
fn check_watch(query: &Query) -> Result<(), Refusal> {
    const NOT_OLDER: &str = "NotOlderThan";
    let mut problems = Vec::new();
    let matching = query.text(MATCH).unwrap_or_default();
    let mut forbidden = |why: &str| problems.push(Problem::forbidden(MATCH, why));
    let is_initial = query.has("sendInitialEvents");
    if is_initial && matching != NOT_OLDER {
        forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if !matching.is_empty() && !is_initial {
        forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        );
    }
    if query.text("continue").is_some() {
        forbidden("resourceVersionMatch is forbidden when continue is provided");
    }
    if !matching.is_empty() && matching != NOT_OLDER {
        problems.push(Problem::not_supported(MATCH, matching, &[NOT_OLDER]));
    }
    refuse(&problems)
}

fn refuse(problems: &[Problem]) -> Result<(), Refusal> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", problems))
}
