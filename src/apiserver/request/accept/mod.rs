//! What form of an answer the client wants: the `Accept` header against what there is.
//!
//! The real server looks twice. The router of the native kinds knows whole media types only, and refuses in its own words; the
//! rest looks at parameters, weights and wildcards. Protobuf is offered in messages, because the real one says so, but not
//! served: clients that ask for nothing else are refused as the real server refuses them for custom resources.

#[cfg(test)]
mod tests;

use crate::{
    refusal::Refusal,
    request::{
        Ask,
        query::Query,
        route::{self, Route},
    },
};

const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// What is asked for, as far as the forms of its answers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Objects and lists of a native kind.
    Native,
    /// Objects and lists of a kind that a CRD defines.
    Custom,
    /// A watch of a native kind.
    NativeWatch,
    /// A watch of a kind that a CRD defines.
    CustomWatch,
    /// `/api` and `/apis`, which can be told in one piece.
    Discovery,
    /// Documents that have one form, such as the resources of a group.
    Document,
}

/// The version of `meta.k8s.io` that an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

/// The encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
}

/// What is shown of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object or the list as it is.
    Whole,
    Table(MetaVersion),
    /// `PartialObjectMetadata`: of one object, or in watch events.
    Partial(MetaVersion),
    /// `PartialObjectMetadataList`
    PartialList(MetaVersion),
    /// Aggregated discovery: `apidiscovery.k8s.io/v2`.
    Groups,
}

/// What the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) media: Media,
    pub(crate) shape: Shape,
    /// The header asks for line breaks and indents; see also [`pretty`].
    pub(crate) pretty: bool,
}

impl MetaVersion {
    /// Of a `Table` and of partial objects.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Media {
    /// For the header of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// How an answer that is JSON is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) media: Media,
    pub(crate) pretty: bool,
}

impl Form {
    /// For the answer to a request. Refusals have a form of their own.
    pub(crate) fn of(ask: &Ask, refused: bool) -> Self {
        let header = ask.header(http::header::ACCEPT);
        let endpoint = match route::parse(&ask.path) {
            Some(Route::Objects(_)) => Endpoint::Custom,
            _ => Endpoint::Document,
        };
        // What no form fits is a refusal, or has one form only.
        let accept = Accept::parse(header, endpoint).ok();
        let media = match accept {
            _ if refused => Accept::of_refusal(header),
            Some(accept) => accept.media,
            None => Media::Json,
        };
        let query = Query::parse(&ask.query);
        let agent = ask.header(http::header::USER_AGENT);
        let wished = pretty(query.all("pretty").next(), agent);
        Self { media, pretty: wished || accept.is_some_and(|it| it.pretty) }
    }
}

/// What the router of the native kinds says to a header.
pub(crate) fn check_routed(header: &str) -> Result<(), Refusal> {
    if knows_router(header) { Ok(()) } else { Err(unroutable()) }
}

impl Accept {
    /// Chooses the first acceptable form. An empty header accepts everything.
    pub(crate) fn parse(header: &str, endpoint: Endpoint) -> Result<Self, Refusal> {
        let routed = matches!(endpoint, Endpoint::Native | Endpoint::NativeWatch);
        if routed {
            check_routed(header)?;
        }
        let ranges = ranges(header);
        let streams = matches!(endpoint, Endpoint::NativeWatch | Endpoint::CustomWatch);
        let mut chosen = None;
        for range in &ranges {
            if chosen.is_none() {
                chosen = range.choose(endpoint);
            }
        }
        if ranges.is_empty() {
            chosen = Some(Self { media: Media::Json, shape: Shape::Whole, pretty: false });
        }
        match chosen {
            None if routed && streams => Err(unacceptable(STREAMS)),
            None => Err(unacceptable(ALL)),
            // A stream of YAML documents is nothing that anybody serves.
            Some(Self { media: Media::Yaml, .. }) if streams => Err(unacceptable(STREAMS)),
            Some(accept) => Ok(accept),
        }
    }

    /// How to encode a refusal for this client: it is never transformed.
    pub(crate) fn of_refusal(header: &str) -> Media {
        let ranges = ranges(header);
        let mut plain = ranges.iter().filter(|it| it.convert == Convert::default());
        plain.find_map(Range::media).unwrap_or(Media::Json)
    }

    /// For the header of the answer. Clients of aggregated discovery read from it whether they got what they wanted.
    pub(crate) fn content_type(self) -> &'static str {
        match (self.shape, self.media) {
            (Shape::Groups, Media::Json) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            (_, media) => media.content_type(),
        }
    }
}

/// Whether JSON is written for people: by the parameter `pretty`, otherwise for those who look at it in a terminal or in a
/// browser.
pub(crate) fn pretty(parameter: Option<&str>, user_agent: &str) -> bool {
    match parameter {
        None | Some("") => {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|it| user_agent.starts_with(it))
        }
        Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// The client asks for the metadata of one object, but gets a list, or the other way round. `go_type` is how the real server
/// calls the answer, as in `*core.Pod`.
pub(crate) fn wrong_shape(shape: Shape, go_type: &str) -> Option<Refusal> {
    let text = match shape {
        Shape::Partial(_) => {
            format!("PartialObjectMetadata, but the requested object is a list ({go_type})")
        }
        Shape::PartialList(_) => {
            format!("PartialObjectMetadataList, but the requested object is not a list ({go_type})")
        }
        Shape::Whole | Shape::Table(_) | Shape::Groups => return None,
    };
    Some(not_acceptable(format!("you requested {text}"), None))
}

/// The parameters that ask for a transformation.
#[derive(Debug, Default, PartialEq)]
struct Convert<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

/// One part of the header.
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
                // A weight that is no number is none.
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

    /// `None`: this part does not fit.
    fn choose(&self, endpoint: Endpoint) -> Option<Accept> {
        let streams = matches!(endpoint, Endpoint::NativeWatch | Endpoint::CustomWatch);
        let lists = matches!(endpoint, Endpoint::Native | Endpoint::Custom) || streams;
        if self.stream.is_some_and(|it| it != "watch" || !lists) {
            return None;
        }
        let shape = self.shape()?;
        let fits = match shape {
            Shape::Whole => true,
            Shape::Groups => endpoint == Endpoint::Discovery,
            Shape::Table(_) | Shape::Partial(_) | Shape::PartialList(_) => lists,
        };
        let media = self.media()?;
        fits.then_some(Accept { media, shape, pretty: self.pretty })
    }

    fn shape(&self) -> Option<Shape> {
        let Convert { kind, group, version } = self.convert;
        let meta = match (group, version) {
            ("", "") if kind.is_empty() => return Some(Shape::Whole),
            ("apidiscovery.k8s.io", "v2") if kind == "APIGroupDiscoveryList" => {
                return Some(Shape::Groups);
            }
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
            _ => return None,
        };
        match kind {
            "Table" => Some(Shape::Table(meta)),
            "PartialObjectMetadata" => Some(Shape::Partial(meta)),
            "PartialObjectMetadataList" => Some(Shape::PartialList(meta)),
            _ => None,
        }
    }
}

/// The parts in the order of preference: by weight, then wildcards last, then as they stand.
fn ranges(header: &str) -> Vec<Range<'_>> {
    let mut ranges: Vec<Range<'_>> = header.split(',').filter_map(Range::parse).collect();
    let wild = |it: &Range<'_>| (it.kind == "*", it.subtype == "*");
    ranges.sort_by(|left, right| {
        right.weight.total_cmp(&left.weight).then_with(|| wild(left).cmp(&wild(right)))
    });
    ranges
}

/// Whether the router of the native kinds finds a media type that it knows.
fn knows_router(header: &str) -> bool {
    let header = if header.trim().is_empty() { "*/*" } else { header };
    header.split(',').any(|it| {
        matches!(
            it.split(';').next().unwrap_or_default().trim(),
            "*/*" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf"
        )
    })
}

/// The words of the router.
fn unroutable() -> Refusal {
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
