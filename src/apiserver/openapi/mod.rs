//! OpenAPI documents of all served kinds: clients use them for validation, `explain` and strategic merge patches.
//!
//! They are generated on demand, and kept compressed until the served kinds change.

mod definitions;
mod gnostic;
mod paths;
mod publish;
#[cfg(test)]
mod tests;
mod v3;

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use prost::Message as _;
use serde_json::{Map, Value, json};

use self::definitions::OpenApiDefinitions;
use crate::{
    discovery::document::{self, CompressedDocument},
    resource::kind::Kind,
};

/// The media type that old clients request; `kubectl` reads OpenAPI v2 only in this form.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Returns the definitions of the native kinds: OpenAPI v2 schemas by names such as `io.k8s.api.core.v1.Pod`.
type DefinitionSource = fn() -> Map<String, Value>;

/// The generated documents, for as long as they are up to date.
pub(crate) struct OpenApi {
    source: DefinitionSource,
    kept: Mutex<OpenApiCache>,
}

#[derive(Default)]
struct OpenApiCache {
    /// The kinds in the documents. These references keep any other kind from getting the address of one of them.
    kinds: Vec<Arc<Kind>>,
    documents: BTreeMap<String, CompressedDocument>,
}

/// The forms of OpenAPI v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenApiEncoding {
    Json,
    Protobuf,
}

impl OpenApi {
    pub(crate) fn new(source: DefinitionSource) -> Self {
        Self { source, kept: Mutex::default() }
    }

    /// Returns `/openapi/v2` in the form that a header `Accept` requests; `None` for an unknown form: the response is a 406 without a body.
    pub(crate) fn v2(&self, kinds: &[Arc<Kind>], accept: &str) -> Option<CompressedDocument> {
        let form = form(accept)?;
        let make = || {
            let definitions = OpenApiDefinitions::collect(kinds, (self.source)());
            let document = json!({
                "swagger": "2.0",
                "info": { "title": "Kubernetes", "version": "v1.36.3" },
                "paths": paths::paths(kinds, &definitions),
                "definitions": definitions.all,
            });
            Some(match form {
                OpenApiEncoding::Json => {
                    CompressedDocument::new("application/json", document.to_string().as_bytes())
                }
                OpenApiEncoding::Protobuf => {
                    CompressedDocument::new(PROTOBUF, &gnostic::document(&document).encode_to_vec())
                }
            })
        };
        self.keep(kinds, &format!("v2 {form:?}"), make)
    }

    /// Returns `/openapi/v3`: the paths of the documents of all versions.
    pub(crate) fn v3_index(&self, kinds: &[Arc<Kind>]) -> Option<CompressedDocument> {
        self.keep(kinds, "v3", || {
            let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for kind in kinds {
                for version in &kind.def.versions {
                    let schema = kind.versions.get(version).map(|it| &it.raw_schema);
                    let known = versions.entry(paths::base(&kind.def, version)).or_default();
                    known.push(format!("{:?} {schema:?}", kind.def));
                }
            }
            let paths = versions.into_iter().map(|(path, content)| {
                let hash = document::etag(content.concat().as_bytes());
                let url = format!("/openapi/v3/{path}?hash={}", hash.trim_matches('"'));
                (path, json!({ "serverRelativeURL": url }))
            });
            let paths: Map<String, Value> = paths.collect();
            let index = json!({ "paths": paths }).to_string();
            Some(CompressedDocument::new("application/json", index.as_bytes()))
        })
    }

    /// Returns `/openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`; `None` for an unknown version.
    pub(crate) fn v3(
        &self,
        kinds: &[Arc<Kind>],
        group: &str,
        version: &str,
    ) -> Option<CompressedDocument> {
        self.keep(kinds, &format!("v3 {group} {version}"), || {
            let served: Vec<Arc<Kind>> = kinds
                .iter()
                .filter(|it| it.def.group == group && it.versions.contains_key(version))
                .map(|it| {
                    let mut kind = (**it).clone();
                    kind.def.versions = vec![version.into()];
                    Arc::new(kind)
                })
                .collect();
            if served.is_empty() {
                return None;
            }
            let document = v3::document(&served, (self.source)());
            Some(CompressedDocument::new("application/json", document.to_string().as_bytes()))
        })
    }

    fn keep(
        &self,
        kinds: &[Arc<Kind>],
        name: &str,
        make: impl FnOnce() -> Option<CompressedDocument>,
    ) -> Option<CompressedDocument> {
        // Concurrent requests wait for the same document.
        let mut kept = self.kept.lock();
        let same = kept.kinds.len() == kinds.len()
            && kept.kinds.iter().zip(kinds).all(|(left, right)| Arc::ptr_eq(left, right));
        if !same {
            *kept = OpenApiCache { kinds: kinds.to_vec(), documents: BTreeMap::new() };
        }
        if let Some(document) = kept.documents.get(name) {
            return Some(document.clone());
        }
        let document = make()?;
        kept.documents.insert(name.into(), document.clone());
        Some(document)
    }
}

impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApi").finish_non_exhaustive()
    }
}

/// Returns the first acceptable form.
fn form(accept: &str) -> Option<OpenApiEncoding> {
    if accept.trim().is_empty() {
        return Some(OpenApiEncoding::Json);
    }
    let mut media = accept.split(',').map(|it| it.split(';').next().unwrap_or_default().trim());
    media.find_map(|it| match it {
        "application/json" | "application/*" | "*/*" => Some(OpenApiEncoding::Json),
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" | PROTOBUF => {
            Some(OpenApiEncoding::Protobuf)
        }
        _ => None,
    })
}
