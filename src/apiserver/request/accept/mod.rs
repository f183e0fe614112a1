//! Content negotiation: the `Accept` header against the forms of a response.
//!
//! The real server negotiates twice. The router of the native kinds supports only complete media types, and refuses with its own message;
//! the second step supports parameters, weights and wildcards. Messages offer protobuf, as those of the real server do, but it is not
//! served: clients that accept nothing else are refused as the real server refuses them for custom resources.

#[cfg(test)]
mod tests;

use crate::sorted;
use crate::{
    refusal::Refusal,
    request::{
        ApiRequest,
        query::Query,
        route::{self, Route},
    },
};

const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The endpoint of a request, as far as it determines the forms of its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointKind {
    /// Objects and lists of a native kind.
    Native,
    /// Objects and lists of a kind that a CRD defines.
    Custom,
    /// A watch of a native kind.
    NativeWatch,
    /// A watch of a kind that a CRD defines.
    CustomWatch,
    /// `/api` and `/apis`, which also have an aggregated form.
    Discovery,
    /// Documents that have one form, such as the resources of a group.
    Document,
}

/// The version of `meta.k8s.io` of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

/// The encodings of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
}

/// The part of objects that a response shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseShape {
    /// The object or the list as it is.
    Whole,
    Table(MetaVersion),
    /// `PartialObjectMetadata`: of one object, or in watch events.
    Partial(MetaVersion),
    /// `PartialObjectMetadataList`: of a list.
    PartialList(MetaVersion),
    /// Aggregated discovery: `apidiscovery.k8s.io/v2`.
    Groups,
}

/// The negotiated form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) media: Media,
    pub(crate) shape: ResponseShape,
    /// The header requests indented JSON; see also [`pretty`].
    pub(crate) pretty: bool,
}

impl MetaVersion {
    /// Returns the `apiVersion` of a `Table` and of partial objects.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Media {
    /// Returns the `Content-Type` header.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// The encoding of a response that is JSON inside of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseEncoding {
    pub(crate) media: Media,
    pub(crate) pretty: bool,
}

impl ResponseEncoding {
    /// Returns the form of the response to a request. Refusals have a separate form.
    pub(crate) fn of(request: &ApiRequest, refused: bool) -> Self {
        let header = request.header(http::header::ACCEPT);
        let endpoint = match route::parse(&request.path) {
            Some(Route::Objects(_)) => EndpointKind::Custom,
            _ => EndpointKind::Document,
        };
        // Without an acceptable form, the response is a refusal, or has only one form.
        let accept = Accept::parse(header, endpoint).ok();
        let media = match accept {
            _ if refused => Accept::of_refusal(header),
            Some(accept) => accept.media,
            None => Media::Json,
        };
        let query = Query::parse(&request.query);
        let agent = request.header(http::header::USER_AGENT);
        let wished = pretty(query.all("pretty").next(), agent);
        Self { media, pretty: wished || accept.is_some_and(|it| it.pretty) }
    }
}

/// Negotiates as the router of the native kinds does.
pub(crate) fn check_routed(header: &str) -> Result<(), Refusal> {
    if router_accepts(header) { Ok(()) } else { Err(router_refusal()) }
}

impl Accept {
    /// Chooses the first acceptable form. An empty header accepts everything.
    pub(crate) fn parse(header: &str, endpoint: EndpointKind) -> Result<Self, Refusal> {
        let routed = matches!(endpoint, EndpointKind::Native | EndpointKind::NativeWatch);
        if routed {
            check_routed(header)?;
        }
        let ranges = ranges(header);
        let streams = matches!(endpoint, EndpointKind::NativeWatch | EndpointKind::CustomWatch);
        let mut chosen = None;
        for range in &ranges {
            if chosen.is_none() {
                chosen = range.choose(endpoint);
            }
        }
        if ranges.is_empty() {
            chosen = Some(Self { media: Media::Json, shape: ResponseShape::Whole, pretty: false });
        }
        match chosen {
            None if routed && streams => Err(unacceptable(STREAMS)),
            None => Err(unacceptable(ALL)),
            // No server has a stream of YAML documents.
            Some(Self { media: Media::Yaml, .. }) if streams => Err(unacceptable(STREAMS)),
            Some(accept) => Ok(accept),
        }
    }

    /// Returns the encoding of a refusal, which is never transformed.
    pub(crate) fn of_refusal(header: &str) -> Media {
        let ranges = ranges(header);
        let mut plain = ranges.iter().filter(|it| it.convert == Convert::default());
        plain.find_map(Range::media).unwrap_or(Media::Json)
    }

    /// Returns the `Content-Type` header. Clients of aggregated discovery detect by it whether they got it.
    pub(crate) fn content_type(self) -> &'static str {
        match (self.shape, self.media) {
            (ResponseShape::Groups, Media::Json) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (_, media) => media.content_type(),
        }
    }
}

/// Returns whether JSON is indented: by the parameter `pretty`, or by default for terminals and browsers.
pub(crate) fn pretty(parameter: Option<&str>, user_agent: &str) -> bool {
    match parameter {
        None | Some("") => {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|it| user_agent.starts_with(it))
        }
        Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// Returns the refusal if the client requests the metadata of one object but the response is a list, or the other way round. `go_type` is
/// the type of the response in the real server, such as `*core.Pod`.
pub(crate) fn wrong_shape(shape: ResponseShape, go_type: &str) -> Option<Refusal> {
    let text = match shape {
        ResponseShape::Partial(_) => {
            format!("PartialObjectMetadata, but the requested object is a list ({go_type})")
        }
        ResponseShape::PartialList(_) => {
            format!("PartialObjectMetadataList, but the requested object is not a list ({go_type})")
        }
        ResponseShape::Whole | ResponseShape::Table(_) | ResponseShape::Groups => return None,
    };
    Some(not_acceptable(format!("you requested {text}"), None))
}

/// The parameters that request a transformation.
#[derive(Debug, Default, PartialEq)]
struct Convert<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

/// One media range of the header.
#[derive(Debug)]
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    weight: f64,
    stream: Option<&'a str>,
    pretty: bool,
    convert: Convert<'a>,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let media = parts.next()?;
        let (kind, subtype) = match media.trim() {
            "*" => ("*", "*"),
            _ => media.split_once('/').filter(|(_, it)| !it.contains('/'))?,
        };
        let mut range = Self {
            kind: kind.trim(),
            subtype: subtype.trim(),
            weight: 1.0,
            stream: None,
            pretty: false,
            convert: Convert::default(),
        };
        for (name, value) in parts.filter_map(|it| it.split_once('=')) {
            let value = value.trim();
            match name.trim() {
                // An invalid weight counts as zero.
                "q" => range.weight = value.parse().unwrap_or(0.0),
                "as" => range.convert.kind = value,
                "g" => range.convert.group = value,
                "v" => range.convert.version = value,
                "stream" => range.stream = Some(value),
                "pretty" => range.pretty = value == "1",
                _ => {}
            }
        }
        Some(range)
    }

    fn media(&self) -> Option<Media> {
        match (self.kind, self.subtype) {
            ("application", "json" | "*") | ("*", "*") => Some(Media::Json),
            ("application", "yaml") => Some(Media::Yaml),
            _ => None,
        }
    }

    /// Returns the form that this range selects; `None` if there is none.
    fn choose(&self, endpoint: EndpointKind) -> Option<Accept> {
        let streams = matches!(endpoint, EndpointKind::NativeWatch | EndpointKind::CustomWatch);
        let lists = matches!(endpoint, EndpointKind::Native | EndpointKind::Custom) || streams;
        if self.stream.is_some_and(|it| it != "watch" || !lists) {
            return None;
        }
        let shape = self.shape()?;
        let fits = match shape {
            ResponseShape::Whole => true,
            ResponseShape::Groups => endpoint == EndpointKind::Discovery,
            ResponseShape::Table(_) | ResponseShape::Partial(_) | ResponseShape::PartialList(_) => {
                lists
            }
        };
        let media = self.media()?;
        fits.then_some(Accept { media, shape, pretty: self.pretty })
    }

    fn shape(&self) -> Option<ResponseShape> {
        let Convert { kind, group, version } = self.convert;
        let meta = match (group, version) {
            ("", "") if kind.is_empty() => return Some(ResponseShape::Whole),
            ("apidiscovery.k8s.io", "v2") if kind == "APIGroupDiscoveryList" => {
                return Some(ResponseShape::Groups);
            }
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
            _ => return None,
        };
        match kind {
            "Table" => Some(ResponseShape::Table(meta)),
            "PartialObjectMetadata" => Some(ResponseShape::Partial(meta)),
            "PartialObjectMetadataList" => Some(ResponseShape::PartialList(meta)),
            _ => None,
        }
    }
}

/// Returns the ranges in the order of preference: by weight, then wildcards last, then as written.
fn ranges(header: &str) -> Vec<Range<'_>> {
    let mut ranges: Vec<Range<'_>> = header.split(',').filter_map(Range::parse).collect();
    let wild = |it: &Range<'_>| (it.kind == "*", it.subtype == "*");
    sorted::sort_by(&mut ranges, |left, right| {
        right.weight.total_cmp(&left.weight).then_with(|| wild(left).cmp(&wild(right)))
    });
    ranges
}

/// Returns whether the router of the native kinds finds a known media type.
fn router_accepts(header: &str) -> bool {
    let header = if header.trim().is_empty() { "*/*" } else { header };
    header.split(',').any(|it| {
        matches!(
            it.split(';').next().unwrap_or_default().trim(),
            "*/*" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf"
        )
    })
}

/// Makes the refusal of the router.
fn router_refusal() -> Refusal {
    let text = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                application/vnd.kubernetes.protobuf";
    not_acceptable(text.into(), Some(serde_json::json!({})))
}

fn unacceptable(accepted: &str) -> Refusal {
    not_acceptable(format!("only the following media types are accepted: {accepted}"), None)
}

fn not_acceptable(message: String, details: Option<serde_json::Value>) -> Refusal {
    Refusal { code: 406, reason: "NotAcceptable".into(), message, details: details.map(Box::new) }
}
