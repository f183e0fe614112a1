//! Paths of requests.

use super::{collection, object, with_query};
use crate::logic::object::resource::Resource;

fn pods() -> Resource {
    Resource { version: "v1".into(), plural: "pods".into(), ..Resource::default() }
}

#[test]
fn the_core_group_lives_under_api_and_others_under_apis() {
    assert_eq!(collection(&pods(), Some("ns1")), "/api/v1/namespaces/ns1/pods");
    let other = Resource { group: "kopf.dev".into(), ..pods() };
    assert_eq!(collection(&other, None), "/apis/kopf.dev/v1/pods");
}

#[test]
fn a_name_cannot_leave_its_segment() {
    let path = |name: &str| object(collection(&pods(), None), name, Some("status"));
    assert_eq!(path("a/b?c#d e"), "/api/v1/pods/a%2Fb%3Fc%23d%20e/status");
    assert_eq!(path("system:node"), "/api/v1/pods/system:node/status");
    assert_eq!(path("ü"), "/api/v1/pods/%C3%BC/status");
    for trap in ["..", ".", ""] {
        assert_eq!(path(trap), "/api/v1/pods/%00/status");
    }
}

#[test]
fn query_values_are_encoded_and_keep_their_order() {
    let parameters = [("watch", "true".to_owned()), ("continue", "a+b=&".to_owned())];
    assert_eq!(with_query("/api", &parameters), "/api?watch=true&continue=a%2Bb%3D%26");
    assert_eq!(with_query("/api", &[]), "/api");
}
