//! Which sub-handlers a script's call can have, told the same in both languages.

use crate::call::{Children, Invocation};
use crate::logic::handlers::declare::DeclareError;

/// The sub-handlers of the call that runs now, for this function of `kopf`.
pub(crate) fn of_call(
    present: Option<&Invocation>,
    function: &str,
) -> Result<Children, DeclareError> {
    let children = present.and_then(|it| it.children.clone());
    children.ok_or_else(|| DeclareError {
        message: format!("kopf.{function}: only handlers of changes have sub-handlers"),
        hint: Some(
            "call it while a handler of on_create, on_update, on_delete, on_resume or on_field runs, or a sub-handler".into(),
        ),
    })
}
