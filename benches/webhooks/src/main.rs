//! Reviews pods like the scripts of `scripts/bench-admission`: each image must be of one registry.
//!
//! Written as in the documentation of kube and axum. Arguments: the port, the file of the certificate, the file of its key.

use std::{env::args, net::SocketAddr};

use anyhow::Context as _;
use axum::{Json, Router, routing::post};
use axum_server::tls_rustls::RustlsConfig;
use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
};

/// The registry of all images.
const REGISTRY: &str = "registry.example.com/";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // An error means that a provider was already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let [port, certificate, key]: [String; 3] =
        args().skip(1).collect::<Vec<_>>().try_into().ok().context("PORT CERTIFICATE KEY")?;
    let tls = RustlsConfig::from_pem_file(certificate, key).await?;
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
    let app = Router::new().route("/images", post(review));
    axum_server::bind_rustls(address, tls).serve(app.into_make_service()).await?;
    Ok(())
}

async fn review(
    Json(review): Json<AdmissionReview<DynamicObject>>,
) -> Json<AdmissionReview<DynamicObject>> {
    let request: AdmissionRequest<DynamicObject> = match review.try_into() {
        Ok(request) => request,
        Err(error) => return Json(AdmissionResponse::invalid(error).into_review()),
    };
    let response = AdmissionResponse::from(&request);
    let response = match request.object.as_ref().and_then(foreign) {
        Some(image) => response.deny(format!("the image {image} is not of {REGISTRY}")),
        None => response,
    };
    Json(response.into_review())
}

/// Returns an image of another registry.
fn foreign(pod: &DynamicObject) -> Option<&str> {
    let containers = pod.data.get("spec")?.get("containers")?.as_array()?;
    let mut images = containers.iter().filter_map(|it| it.get("image")?.as_str());
    images.find(|it| !it.starts_with(REGISTRY))
}
