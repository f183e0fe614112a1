//! `ListOptions`: the revision of a collection, and the size of a page.

use std::time::Duration;

use super::query::Query;
use crate::refusal::{Refusal, ValidationProblem, go};

/// The parameter that determines how a version is compared.
const MATCH: &str = "resourceVersionMatch";

/// The parameters of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// `None` differs from zero, which means any version.
    pub(crate) version: Option<u64>,
    /// The list must show exactly this version.
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
        // Older than the parameter: a page with a version has always been exact.
        let page = matching.is_none() && limit.is_some() && version.is_some_and(|it| it > 0);
        Ok(Self {
            version,
            exact: matching == Some("Exact") || page,
            // Version 0 is served from the watch cache of the real server, which ignores the limit.
            limit: limit.filter(|_| version != Some(0) || next.is_some()),
            next,
            timeout: timeout
                .and_then(|it| u64::try_from(it).ok())
                .filter(|it| *it > 0)
                .map(Duration::from_secs),
        })
    }
}

/// Parses a resource version.
pub(crate) fn version(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_error| {
        // The real server reports it as an internal error.
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
        problems.push(ValidationProblem::forbidden("sendInitialEvents", why));
    }
    let Some(matching) = query.text(MATCH) else { return refuse(&problems) };
    let mut forbidden = |why: &str| problems.push(ValidationProblem::forbidden(MATCH, why));
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
        problems.push(ValidationProblem::not_supported(MATCH, matching, &accepted));
    }
    refuse(&problems)
}

/// Validates the parameters about the first events of a watch.
fn check_watch(query: &Query) -> Result<(), Refusal> {
    const NOT_OLDER: &str = "NotOlderThan";
    let mut problems = Vec::new();
    let matching = query.text(MATCH).unwrap_or_default();
    let mut forbidden = |why: &str| problems.push(ValidationProblem::forbidden(MATCH, why));
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
        problems.push(ValidationProblem::not_supported(MATCH, matching, &[NOT_OLDER]));
    }
    refuse(&problems)
}

fn refuse(problems: &[ValidationProblem]) -> Result<(), Refusal> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", problems))
}
