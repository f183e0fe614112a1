//! The sub-handlers that a call can have, with the same errors in both languages.

use crate::call::{Children, Invocation};
use crate::logic::handlers::declare::DeclareError;

/// Returns the sub-handlers of the current call, for this function of `kopf`.
pub(crate) fn of_call(
    present: Option<&Invocation>,
    function: &str,
) -> Result<Children, DeclareError> {
    let children = present.and_then(|it| it.children.clone());
    children.ok_or_else(|| DeclareError {
        message: format!("kopf.{function}: only change handlers can have sub-handlers"),
        hint: Some(
            "call it in a handler of on_create, on_update, on_delete, on_resume or on_field, or in a sub-handler".into(),
        ),
    })
}
