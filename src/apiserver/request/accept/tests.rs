//! Negotiation, compared with the responses of a real server to the same headers.

use super::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn shape(header: &str) -> Option<(Media, ResponseShape)> {
    let accept = Accept::parse(header, EndpointKind::Native).ok()?;
    assert_eq!(Accept::parse(header, EndpointKind::Custom), Ok(accept), "{header}");
    Some((accept.media, accept.shape))
}

fn refusal(header: &str, endpoint: EndpointKind) -> String {
    let refusal = Accept::parse(header, endpoint).unwrap_err();
    assert_eq!((refusal.code, &*refusal.reason), (406, "NotAcceptable"), "{header}");
    refusal.message
}

#[test]
fn json_is_the_default_form() {
    for header in [
        "",
        "*/*",
        "application/json",
        "application/json;q=x",
        "application/json;charset=utf-8",
        "application/json;stream=watch",
        "text/html,*/*;q=0.1",
        "application/vnd.kubernetes.protobuf,application/json",
    ] {
        assert_eq!(shape(header), Some((Media::Json, ResponseShape::Whole)), "{header}");
    }
}

#[test]
fn weights_decide_before_the_order() {
    let yaml = Some((Media::Yaml, ResponseShape::Whole));
    assert_eq!(shape("application/json;q=0.1,application/yaml;q=0.9"), yaml);
    assert_eq!(shape("*/*,application/yaml"), yaml);
    assert_eq!(
        shape("application/json,application/yaml"),
        Some((Media::Json, ResponseShape::Whole))
    );
}

#[test]
fn objects_are_transformed_on_request() {
    use MetaVersion::{V1, V1Beta1};
    assert_eq!(shape(TABLE), Some((Media::Json, ResponseShape::Table(V1))));
    let beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
    assert_eq!(shape(beta), Some((Media::Json, ResponseShape::Table(V1Beta1))));
    let yaml = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(shape(yaml), Some((Media::Yaml, ResponseShape::Table(V1))));
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(shape(partial), Some((Media::Json, ResponseShape::Partial(V1))));
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(shape(list), Some((Media::Json, ResponseShape::PartialList(V1))));
    // The header of kubectl: the second and the third form are for old servers.
    let kubectl = format!("{TABLE},{beta},application/json");
    assert_eq!(shape(&kubectl), Some((Media::Json, ResponseShape::Table(V1))));
    let unknown = "application/json;as=Table;v=v9;g=meta.k8s.io,application/json";
    assert_eq!(shape(unknown), Some((Media::Json, ResponseShape::Whole)));
}

#[test]
fn the_router_refuses_media_types_that_it_does_not_know() {
    for header in
        ["text/plain", "text/*", "application/*", "garbage", "APPLICATION/JSON", "text/html,a/b"]
    {
        let refusal = Accept::parse(header, EndpointKind::Native).unwrap_err();
        assert!(refusal.message.starts_with("406: Not Acceptable"), "{header}");
        assert_eq!(refusal.details, Some(Box::new(serde_json::json!({}))));
    }
    // There is no router in front of custom resources.
    assert!(Accept::parse("application/*", EndpointKind::Custom).is_ok());
}

#[test]
fn refusals_list_the_acceptable_forms() {
    let all = "only the following media types are accepted: application/json, application/yaml, \
               application/vnd.kubernetes.protobuf";
    for header in [
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Foo;v=v1;g=meta.k8s.io",
        "application/json;as=Table",
        "application/json;v=v1;g=meta.k8s.io",
        "application/json; AS=Table;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ] {
        assert_eq!(refusal(header, EndpointKind::Native), all, "{header}");
        assert_eq!(refusal(header, EndpointKind::Custom), all, "{header}");
    }
    assert_eq!(refusal("text/plain", EndpointKind::Custom), all);
    assert_eq!(refusal("text/html", EndpointKind::CustomWatch), all);
    assert_eq!(refusal(TABLE, EndpointKind::Document), all);
    assert_eq!(refusal("text/plain", EndpointKind::Discovery), all);
}

#[test]
fn a_watch_is_a_stream_of_json() {
    let streams = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(refusal("application/yaml", EndpointKind::NativeWatch), streams);
    assert_eq!(Accept::of_refusal("application/yaml"), Media::Yaml);
    let accept = Accept::parse(TABLE, EndpointKind::NativeWatch).map(|it| it.shape);
    assert_eq!(accept, Ok(ResponseShape::Table(MetaVersion::V1)));
}

#[test]
fn refusals_are_never_transformed() {
    assert_eq!(Accept::of_refusal("application/yaml;as=Table;v=v1;g=meta.k8s.io"), Media::Json);
    assert_eq!(Accept::of_refusal(""), Media::Json);
    assert_eq!(Accept::of_refusal("text/plain"), Media::Json);
}

#[test]
fn aggregated_discovery_is_recognized_by_its_content_type() {
    // The header of client-go.
    let form = |version| {
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    };
    let header = format!("{},{},application/json", form("v2"), form("v2beta1"));
    let accept = Accept::parse(&header, EndpointKind::Discovery).unwrap();
    assert_eq!((accept.shape, accept.content_type()), (ResponseShape::Groups, form("v2").as_str()));
    // Kubernetes 1.36 no longer has the beta version.
    assert!(Accept::parse(&form("v2beta1"), EndpointKind::Discovery).is_err());
    // Other documents have only the plain form.
    let accept = Accept::parse(&header, EndpointKind::Document).unwrap();
    assert_eq!(accept.content_type(), "application/json");
}

#[test]
fn one_object_is_no_list() {
    let shape = ResponseShape::Partial(MetaVersion::V1);
    let refusal = wrong_shape(shape, "*core.NamespaceList").unwrap();
    let text = "you requested PartialObjectMetadata, but the requested object is a list (*core.NamespaceList)";
    assert_eq!(refusal.message, text);
    assert_eq!(wrong_shape(ResponseShape::Whole, ""), None);
}

#[test]
fn people_get_indented_json() {
    assert!(pretty(None, "curl/7.88"));
    assert!(!pretty(None, "kubectl/v1.20.2"));
    assert!(!pretty(Some("false"), "curl/7.88"));
    assert!(pretty(Some("true"), ""));
    assert!(Accept::parse("application/json;pretty=1", EndpointKind::Native).unwrap().pretty);
}
