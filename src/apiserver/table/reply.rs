//! Conversion of replies to the negotiated form.

use jiff::Timestamp;
use serde_json::Value;

use super::{Include, Printer, partial, partial_list};
use crate::{
    object,
    refusal::Refusal,
    reply::{List, Reply},
    request::accept::{Accept, EndpointKind, MetaVersion, ResponseShape, wrong_shape},
    resource::kind::VersionedKind,
};

/// The negotiated form of the objects of one kind.
#[derive(Debug)]
pub(crate) struct Presenter {
    accept: Accept,
    printer: Printer,
}

impl Presenter {
    /// Negotiates by the header `Accept` and the parameter `includeObject`.
    pub(crate) fn new(
        view: &VersionedKind,
        header: &str,
        watching: bool,
        include: Option<&str>,
    ) -> Result<Self, Refusal> {
        let reviews = view.kind.native.is_some_and(|it| it.review.is_some());
        let endpoint = match (view.kind.def.native, watching) {
            // The responses of reviews are not stored objects.
            _ if reviews => EndpointKind::Document,
            (true, false) => EndpointKind::Native,
            (true, true) => EndpointKind::NativeWatch,
            (false, false) => EndpointKind::Custom,
            (false, true) => EndpointKind::CustomWatch,
        };
        let accept = Accept::parse(header, endpoint)?;
        let (meta, include) = match accept.shape {
            ResponseShape::Table(meta) => (meta, Include::parse(include)?),
            ResponseShape::Whole
            | ResponseShape::Partial(_)
            | ResponseShape::PartialList(_)
            | ResponseShape::Groups => (MetaVersion::V1, Include::default()),
        };
        Ok(Self { accept, printer: Printer::new(&view.kind, &view.version, meta, include) })
    }

    /// Returns whether objects are returned as they are.
    fn is_plain(&self) -> bool {
        self.accept.shape == ResponseShape::Whole
    }

    /// Converts a reply. A status or a scale, which are not objects of the kind, are not converted.
    pub(crate) fn reply(self, reply: Reply, now: &str) -> Result<Reply, Refusal> {
        let now = time(now);
        match (reply, self.accept.shape) {
            (Reply::Object { status, view, object }, ResponseShape::Table(_)) => {
                Ok(Reply::Document(status, self.printer.object(&view.tree(&object), now)))
            }
            (Reply::Object { status, view, object }, ResponseShape::Partial(version)) => {
                Ok(Reply::Document(status, partial(&view.tree(&object), version)))
            }
            // Custom resources have one Go type for objects and lists, so the real server detects it later.
            (Reply::Object { view, .. }, ResponseShape::PartialList(_))
                if !view.kind.def.native =>
            {
                Err(Refusal::unclassed("content is not a list"))
            }
            (Reply::Object { view, .. }, shape @ ResponseShape::PartialList(_)) => {
                // For custom objects, the real server reports an internal error.
                Err(if view.kind.def.native {
                    mismatch(shape, &view, "")
                } else {
                    Refusal::unclassed("content is not a list")
                })
            }
            (Reply::List(list), ResponseShape::Table(_)) => {
                let items: Vec<Value> = list.items.iter().map(|it| list.view.tree(it)).collect();
                Ok(Reply::Document(200, self.printer.list(&shown(&list), &items, now)))
            }
            (Reply::List(list), ResponseShape::PartialList(version)) => {
                let items: Vec<Value> = list.items.iter().map(|it| list.view.tree(it)).collect();
                Ok(Reply::Document(200, partial_list(&shown(&list), &items, version)))
            }
            (Reply::List(list), shape @ ResponseShape::Partial(_)) => {
                Err(mismatch(shape, &list.view, "List"))
            }
            (Reply::Document(status, document), shape)
                if object::text(&document, "/kind") == "Scale" =>
            {
                Ok(Reply::Document(status, self.printer.scale(document, shape, now)))
            }
            (Reply::Watch(mut watch), _) if !self.is_plain() => {
                watch.presenter = Some(self);
                Ok(Reply::Watch(watch))
            }
            (reply, _) => Ok(reply),
        }
    }

    /// Converts the object of a watch event.
    pub(crate) fn event(&self, object: &Value, first: bool, now: &str) -> Value {
        let now = time(now);
        match self.accept.shape {
            ResponseShape::Table(_) => self.printer.event(object, first, now),
            ResponseShape::Partial(version) | ResponseShape::PartialList(version) => {
                partial(object, version)
            }
            ResponseShape::Whole | ResponseShape::Groups => object.clone(),
        }
    }
}

/// Parses the time of the server. An invalid one makes ages useless, but not the rest.
fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Makes the refusal of a form that does not fit. The message contains the Go type; custom resources share one.
fn mismatch(shape: ResponseShape, view: &VersionedKind, suffix: &str) -> Refusal {
    let def = &view.kind.def;
    let group = def.group.split('.').next().filter(|it| !it.is_empty()).unwrap_or("core");
    let go_type = match (def.native, suffix) {
        (true, suffix) => format!("*{group}.{}{suffix}", def.kind),
        (false, suffix) => format!("*unstructured.Unstructured{suffix}"),
    };
    wrong_shape(shape, &go_type).unwrap_or_else(Refusal::unknown_resource)
}

/// Returns the metadata of a list. In tables and partial lists of custom objects, an empty `continue` is left out.
fn shown(list: &List) -> Value {
    let mut metadata = list.metadata();
    if let Some(fields) = metadata.as_object_mut().filter(|_| list.next.is_none()) {
        fields.shift_remove("continue");
    }
    metadata
}
