//! `kopf rbac`: the permissions that an operator needs.
//!
//! `survey.rs` loads the scripts and the kinds that exist for them, `templates.rs` finds the files of their templates; `needs.rs`
//! determines what the operator and the functions of `kube` do; `permissions.rs` and `roles.rs` turn this into rules; `verify.rs` checks
//! whether a server grants them.

mod account;
mod needs;
mod output;
mod permissions;
mod record;
mod roles;
mod survey;
mod templates;
mod verify;

use crate::cli::{
    args::InstallArgs,
    report::{Exit, Report},
};

pub(super) use self::{
    account::{Account, name, namespace},
    needs::{Installer, Needs},
    output::{joined, print, warn},
    permissions::PermissionScope,
    record::PermissionRecord,
    roles::documents,
    survey::Survey,
    templates::templates_of,
    verify::verify,
};

/// Prints the roles and bindings.
pub(super) fn generate(args: &InstallArgs) -> Result<Exit, Report> {
    let survey = Survey::of(args)?;
    let needs = Needs::of(&survey, args)?;
    let (name, namespace) = (name(args, &survey)?, namespace(args)?);
    let account = Account { name: &name, namespace };
    let documents = documents(&needs.permissions, &survey.options.scope, &account);
    warn(&needs.warnings);
    print(&joined(documents.iter().map(|(_, text)| text.as_str())));
    Ok(Exit::Success)
}
