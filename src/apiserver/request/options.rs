//! The parameters that all writes share.

use crate::{
    metadata,
    refusal::{Refusal, ValidationProblem},
    request::query::Query,
};

/// The values of `fieldValidation`, for unknown and duplicate fields.
const VALIDATIONS: [&str; 4] = ["", "Ignore", "Strict", "Warn"];

/// The kinds of writes; each has a separate name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Create,
    Update,
    Patch,
    /// A PATCH for server-side apply.
    Apply,
    Delete,
}

/// The parameters of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// The result is not stored.
    pub(crate) dry_run: bool,
    /// The field manager; `None` for deletions.
    pub(crate) manager: Option<String>,
    /// Takes fields over from other managers.
    pub(crate) force: bool,
}

impl WriteOptions {
    pub(crate) fn parse(query: &Query, write: Write) -> Result<Self, Refusal> {
        let manager = query.text("fieldManager").filter(|_| write != Write::Delete);
        let mut problems = Vec::new();
        match write {
            Write::Patch if query.all("force").next().is_some() => {
                let text = "may not be specified for non-apply patch";
                problems.push(ValidationProblem::forbidden("force", text));
            }
            Write::Apply if manager.is_none() => {
                problems.push(ValidationProblem::required(
                    "fieldManager",
                    "is required for apply patch",
                ));
            }
            Write::Create | Write::Update | Write::Patch | Write::Apply | Write::Delete => {}
        }
        problems.extend(manager.map(metadata::check_manager).unwrap_or_default());
        let dry_runs: Vec<String> = query.all("dryRun").map(String::from).collect();
        if dry_runs.iter().any(|it| it != "All") {
            problems.push(ValidationProblem::not_supported("dryRun", dry_runs.clone(), &["All"]));
        }
        if let Some(validation) = query.text("fieldValidation")
            && !VALIDATIONS.contains(&validation)
        {
            problems.push(ValidationProblem::not_supported(
                "fieldValidation",
                validation,
                &VALIDATIONS,
            ));
        }
        if !problems.is_empty() {
            return Err(Refusal::invalid("meta.k8s.io", write.kind(), "", &problems));
        }
        Ok(Self {
            dry_run: !dry_runs.is_empty(),
            manager: manager.map(String::from),
            force: query.flag("force"),
        })
    }
}

impl Write {
    fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}
