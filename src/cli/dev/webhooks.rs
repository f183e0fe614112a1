//! Admission webhooks on the embedded server.

use crate::webhooks::LocalWebhooks;
use kopf_apiserver::{Post, WebhookTarget};

/// Returns the function that sends reviews: to the operator in this process, or over HTTPS to other webhooks.
pub(in crate::cli) fn post(local: &LocalWebhooks) -> Post {
    let (local, elsewhere) = (local.clone(), Post::https());
    Post::new(move |target: WebhookTarget, body| {
        let (local, elsewhere) = (local.clone(), elsewhere.clone());
        async move {
            match local.review(&target.url, &body).await {
                Some(answer) => answer,
                None => elsewhere.call(&target, body).await,
            }
        }
    })
}
