//! `ListOptions`: which state of a collection is asked for, and how much of it.

use std::time::Duration;

use super::query::Query;
use crate::refusal::{Problem, ProblemKind, Refusal, go};

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
        let version = query.text("resourceVersion").map(version).transpose()?;
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
    const FIELD: &str = "resourceVersionMatch";
    let Some(matching) = query.text(FIELD) else { return Ok(()) };
    let mut problems = Vec::new();
    let mut forbidden = |why: &str| problems.push(Problem::forbidden(FIELD, why));
    let version = query.text("resourceVersion");
    // With initial events a watch may say what they are to match.
    let initial = watch && query.flag("sendInitialEvents");
    if watch && !initial {
        forbidden("resourceVersionMatch is forbidden for watch");
    }
    if version.is_none() && !initial {
        forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if query.text("continue").is_some() {
        forbidden("resourceVersionMatch is forbidden when continue is provided");
    }
    if matching == "Exact" && version == Some("0") {
        forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        let accepted = ["Exact", "NotOlderThan", ""].map(String::from).into();
        problems.push(Problem::new(FIELD, ProblemKind::NotSupported(matching.into(), accepted)));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &problems))
}
