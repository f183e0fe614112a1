//! `kube`: the cluster as scripts use it. This is the table; `desk.rs` knows whom to ask, `reading.rs`, `writing.rs` and
//! `watching.rs` ask.

mod desk;
mod reading;
mod watching;
mod writing;

use super::{Body, Function, Library, Parameter, Type, optional, required};

pub(super) const LIBRARY: Library = Library {
    name: "kube",
    doc: "The cluster, with the credentials of the operator. Objects are plain tables, as in YAML.",
    functions: &[
        Function {
            name: "get",
            doc: "One object, or nothing if it is not there. The resource is named as for handlers (\"pods\", \
                  \"deployments.apps\", \"apps/v1\" and \"Deployment\"); an object or a reference to one says all in one.",
            parameters: SELECTOR,
            options: &[
                optional("name", Type::Name, "The name of the object."),
                NAMESPACE_OF_OBJECT,
            ],
            returns: Type::Any,
            body: Body::Waiting(reading::get),
        },
        Function {
            name: "list",
            doc: "The objects of a resource, as a list: those of the namespace of the handled object, unless `namespace` \
                  says otherwise.",
            parameters: SELECTOR,
            options: &[
                NAMESPACE_OF_LIST,
                LABELS,
                FIELDS,
                optional("limit", Type::Count, "The most objects to give; all if left out."),
            ],
            returns: Type::List,
            body: Body::Waiting(reading::list),
        },
        Function {
            name: "create",
            doc: "Creates an object, and gives it as it is then. One that is there already is an error (409): kube.apply \
                  changes it.",
            parameters: &[OBJECT],
            options: &[NAMESPACE_OF_OBJECT, MANAGER, DRY_RUN],
            returns: Type::Map,
            body: Body::Waiting(writing::create),
        },
        Function {
            name: "apply",
            doc: "Creates an object or changes the one that is there, so that it has these fields (server-side apply); \
                  fields that were applied before and are left out now are removed. Gives the object as it is then. Fields \
                  of other managers are a conflict (409) that names them.",
            parameters: &[OBJECT],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "force",
                    Type::Boolean,
                    "Takes over fields of other managers; false if left out.",
                ),
                MANAGER,
                SUBRESOURCE,
                DRY_RUN,
            ],
            returns: Type::Map,
            body: Body::Waiting(writing::apply),
        },
        Function {
            name: "patch",
            doc: "Changes some fields of an object, and gives it as it is then. For the handled object itself ctx.patch is \
                  better: it is sent once, after the handler, together with everything else.",
            parameters: &[
                REFERENCE,
                required(
                    "patch",
                    Type::Any,
                    "A map of the fields to change, where null (kopf.null in Lua, () in Rhai) removes one; or a list of \
                     operations.",
                ),
            ],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "type",
                    Type::Name,
                    "\"merge\", \"json\" or \"strategic\"; if left out, \"merge\" for a map and \"json\" for a list.",
                ),
                SUBRESOURCE,
                MANAGER,
                DRY_RUN,
            ],
            returns: Type::Map,
            body: Body::Waiting(writing::patch),
        },
        Function {
            name: "replace",
            doc: "Puts a whole object in the place of the one that is there, and gives it as it is then. With its \
                  resourceVersion in it, it is a conflict (409) if somebody else has changed it meanwhile.",
            parameters: &[OBJECT],
            options: &[NAMESPACE_OF_OBJECT, SUBRESOURCE, MANAGER, DRY_RUN],
            returns: Type::Map,
            body: Body::Waiting(writing::replace),
        },
        Function {
            name: "delete",
            doc: "Deletes an object. Gives whether it was there.",
            parameters: &[REFERENCE],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "propagation",
                    Type::Name,
                    "What becomes of what it owns: \"Background\", \"Foreground\" or \"Orphan\"; if left out, as the \
                     resource has it.",
                ),
                optional(
                    "uid",
                    Type::Name,
                    "Deletes only the object with this uid; another one is a conflict (409).",
                ),
                optional(
                    "missing_ok",
                    Type::Boolean,
                    "Whether it may be gone already; true if left out, otherwise that is an error (404).",
                ),
                optional("grace_period", Type::Duration, "How long it has to end; 0 for at once."),
                DRY_RUN,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(writing::delete),
        },
        Function {
            name: "watch",
            doc: "Loops over the objects of a resource and then over their changes, each a map with `type` (\"ADDED\", \
                  \"MODIFIED\" or \"DELETED\") and `object`. It goes on after the server was away; what went in that time is \
                  told as \"DELETED\", with its metadata only. It ends when the loop is left, with `timeout`, and in a \
                  daemon when that must stop.",
            parameters: SELECTOR,
            options: &[
                NAMESPACE_OF_LIST,
                LABELS,
                FIELDS,
                optional("name", Type::Name, "Watches only the object of this name."),
                optional("timeout", Type::Duration, "When it ends; never if left out."),
            ],
            returns: Type::Any,
            body: Body::Streaming(watching::watch),
        },
        Function {
            name: "wait",
            doc: "Waits until something holds of an object: \"condition=Ready\", \"condition=Ready=False\", \"created\", \
                  \"deleted\", or what a function says that gets the object as it is now and after each change (nothing while \
                  it is not there): `kube.wait(job, function(it) return it and it.status.succeeded == 1 end, \"10m\")`. Gives \
                  the object, or true if it is gone; nothing if it is in a daemon that must stop meanwhile. An error if it \
                  takes longer than `timeout`.",
            parameters: &[
                REFERENCE,
                required("predicate", Type::Test, "What to wait for."),
                TIMEOUT,
            ],
            options: &[NAMESPACE_OF_OBJECT],
            returns: Type::Any,
            body: Body::Script,
        },
        Function {
            name: "logs",
            doc: "What a pod has written, as a text.",
            parameters: &[POD],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional("container", Type::Name, "Which container; needed if there are several."),
                optional("tail", Type::Count, "Only so many lines of its end."),
                optional("since", Type::Duration, "Only what is not older than this."),
                optional(
                    "previous",
                    Type::Boolean,
                    "Of the container that ran before; false if left out.",
                ),
                optional(
                    "timestamps",
                    Type::Boolean,
                    "With the time before each line; false if left out.",
                ),
            ],
            returns: Type::Text,
            body: Body::Waiting(reading::logs),
        },
        Function {
            name: "scale",
            doc: "Sets the replicas of a Deployment, a StatefulSet or anything else that can be scaled. Gives its scale.",
            parameters: &[REFERENCE, required("replicas", Type::Count, "How many.")],
            options: &[NAMESPACE_OF_OBJECT, DRY_RUN],
            returns: Type::Map,
            body: Body::Waiting(writing::scale),
        },
        Function {
            name: "evict",
            doc: "Deletes a pod as far as its disruption budget allows. Gives whether it was there.",
            parameters: &[POD],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional("grace_period", Type::Duration, "How long it has to end."),
                DRY_RUN,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(writing::evict),
        },
        Function {
            name: "can_i",
            doc: "Whether the operator may do something: a verb such as \"get\", \"list\", \"watch\", \"create\", \"patch\" or \
                  \"delete\", and a resource.",
            parameters: &[required("verb", Type::Name, "What to do."), FIRST, SECOND, THIRD],
            options: &[
                NAMESPACE_OF_LIST,
                optional("name", Type::Name, "With which object; with any if left out."),
                SUBRESOURCE,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(reading::can_i),
        },
        Function {
            name: "version",
            doc: "The version of the server: a map with `major`, `minor`, `gitVersion` and more.",
            parameters: &[],
            options: &[],
            returns: Type::Map,
            body: Body::Waiting(reading::version),
        },
    ],
};

/// What the host does for `stdlib/kube.*`.
pub(super) const STATES: Function = Function {
    name: "wait",
    doc: "Loops over the states of an object in which a predicate holds, or over all if there is none: maps with `object`, \
          unless it is not there. It ends in a daemon that must stop; an error after `timeout`.",
    parameters: &[
        REFERENCE,
        optional("predicate", Type::Name, "What holds; nothing of a function that is asked later."),
        TIMEOUT,
    ],
    options: &[NAMESPACE_OF_OBJECT],
    returns: Type::Any,
    body: Body::Streaming(watching::wait),
};

/// A selector as handlers have it.
const SELECTOR: &[Parameter] = &[FIRST, SECOND, THIRD];
const FIRST: Parameter = required(
    "selector",
    Type::Selector,
    "The resource: \"pods\", \"deployments.apps\", \"apps/v1\" with a name after it, or ctx.resource.",
);
const SECOND: Parameter =
    optional("selector2", Type::Name, "The rest of the selector, such as \"Deployment\".");
const THIRD: Parameter = optional("selector3", Type::Name, "The rest of the selector.");

const OBJECT: Parameter =
    required("object", Type::Object, "The object, with `apiVersion`, `kind` and `metadata.name`.");
const REFERENCE: Parameter =
    required("object", Type::Object, "The object, a reference to it, or ctx.");
const TIMEOUT: Parameter =
    optional("timeout", Type::Duration, "How long to wait at most; 30 seconds if left out.");
const POD: Parameter = required("pod", Type::Any, "The name of the pod, or the pod itself.");
const NAMESPACE_OF_OBJECT: Parameter = optional(
    "namespace",
    Type::Name,
    "Its namespace; if neither this nor the object says it, that of the handled object, or else of the credentials.",
);
const NAMESPACE_OF_LIST: Parameter = optional(
    "namespace",
    Type::Name,
    "Which namespace, or \"*\" for all; if left out, that of the handled object, or else of the credentials.",
);
const LABELS: Parameter = optional(
    "label_selector",
    Type::Labels,
    "Only with these labels: \"app=web,tier!=db\", or a map.",
);
const FIELDS: Parameter = optional(
    "field_selector",
    Type::Labels,
    "Only with these fields: \"status.phase=Running\", or a map.",
);
const MANAGER: Parameter =
    optional("field_manager", Type::Name, "Who has the fields from then on; \"kopf\" if left out.");
const SUBRESOURCE: Parameter = optional(
    "subresource",
    Type::Name,
    "A part of it, such as \"status\"; the object itself if left out.",
);
const DRY_RUN: Parameter =
    optional("dry_run", Type::Boolean, "Checks everything and changes nothing; false if left out.");
