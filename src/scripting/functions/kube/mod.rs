//! `kube`: the cluster as scripts use it. This is the table; `client.rs` resolves what the arguments name; `reading.rs`,
//! `writing.rs` and `watching.rs` send the requests.

mod client;
mod crds;
mod faked;
mod pods;
mod reading;
mod run;
mod watching;
mod writing;

use crate::scripting::functions::types::{
    Body, Function, Library, Parameter, Type, optional, required,
};

pub(super) const LIBRARY: Library = Library {
    name: "kube",
    doc: "The Kubernetes client, with the credentials of the operator. Objects are plain tables, as in YAML.",
    functions: &[
        Function {
            name: "get",
            doc: "Returns one object, or nil if it does not exist. The resource is named as for handlers (\"pods\", \"deployments.apps\", \"apps/v1\" and \"Deployment\"); an object or a reference to one can replace all arguments.",
            parameters: SELECTOR,
            options: &[
                optional("name", Type::Name, "The name of the object."),
                NAMESPACE_OF_OBJECT,
            ],
            returns: Type::Any,
            body: Body::Waiting(reading::get),
        },
        Function {
            name: "secret",
            doc: "Returns the decoded data of a Secret: a map of strings (in Rhai, a blob for what is not UTF-8); nil if there is no such Secret.",
            parameters: &[required("name", Type::Name, "The name of the Secret.")],
            options: &[NAMESPACE_OF_OBJECT],
            returns: Type::Any,
            body: Body::Waiting(reading::secret),
        },
        Function {
            name: "apply_crd",
            doc: "Applies a CRD, as `kube.apply` with `force`, and waits until the API server serves it. Several CRDs can be in one string. Returns the CRD, or a list of them.",
            parameters: &[
                required(
                    "crd",
                    Type::Any,
                    "The CRD: a map, its YAML, or the path of a file that ends in .yaml, .yml or .json, which needs `--allow-read`.",
                ),
                TIMEOUT,
            ],
            options: &[MANAGER],
            returns: Type::Any,
            body: Body::Waiting(crds::apply_crd),
        },
        Function {
            name: "list",
            doc: "Returns the objects of a resource as a list: those in the namespace of the handled object, unless `namespace` is set.",
            parameters: SELECTOR,
            options: &[
                NAMESPACE_OF_LIST,
                LABELS,
                FIELDS,
                optional(
                    "limit",
                    Type::Count,
                    "Maximum number of objects to return; default: all.",
                ),
            ],
            returns: Type::List,
            body: Body::Waiting(reading::list),
        },
        Function {
            name: "create",
            doc: "Creates an object and returns it. If it already exists, this is an error (409), unless `exists_ok` is true: use kube.apply to change it.",
            parameters: &[OBJECT],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "exists_ok",
                    Type::Boolean,
                    "Return the existing object, unchanged, if there is one; default: false.",
                ),
                MANAGER,
                DRY_RUN,
            ],
            returns: Type::Map,
            body: Body::Waiting(writing::create),
        },
        Function {
            name: "apply",
            doc: "Creates an object, or changes the existing one so that it has these fields (server-side apply); fields that were applied before and are omitted now are removed. Returns the resulting object. If other managers own a field, this is a conflict (409) that names them.",
            parameters: &[OBJECT],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "force",
                    Type::Boolean,
                    "Take over fields of other managers; default: false.",
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
            doc: "Changes some fields of an object and returns the resulting object. For the handled object, prefer ctx.patch: it is sent once, after the handler, together with all other changes.",
            parameters: &[
                REFERENCE,
                required(
                    "patch",
                    Type::Any,
                    "A map of the fields to change, where null (kopf.null in Lua, () in Rhai) removes one; or a list of JSON patch operations.",
                ),
            ],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "type",
                    Type::Name,
                    "\"merge\", \"json\" or \"strategic\"; default: \"merge\" for a map, \"json\" for a list.",
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
            doc: "Replaces a whole object and returns the resulting object. If the object contains its resourceVersion, this is a conflict (409) when the object has changed meanwhile.",
            parameters: &[OBJECT],
            options: &[NAMESPACE_OF_OBJECT, SUBRESOURCE, MANAGER, DRY_RUN],
            returns: Type::Map,
            body: Body::Waiting(writing::replace),
        },
        Function {
            name: "delete",
            doc: "Deletes an object. Returns whether it existed.",
            parameters: &[REFERENCE],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional(
                    "propagation",
                    Type::Name,
                    "How its dependents are deleted: \"Background\", \"Foreground\" or \"Orphan\"; default: that of the resource.",
                ),
                optional(
                    "uid",
                    Type::Name,
                    "Delete the object only if it has this uid; otherwise, this is a conflict (409).",
                ),
                optional(
                    "missing_ok",
                    Type::Boolean,
                    "Whether the object may be missing; default: true. If false, a missing object is an error (404).",
                ),
                optional(
                    "grace_period",
                    Type::Duration,
                    "Grace period; 0: delete immediately.",
                ),
                DRY_RUN,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(writing::delete),
        },
        Function {
            name: "watch",
            doc: "Iterates over the objects of a resource and then over their changes, each a map with `type` (\"ADDED\", \"MODIFIED\" or \"DELETED\") and `object`. It continues after an outage of the server; objects that were deleted meanwhile are reported as \"DELETED\", with their metadata only. It ends when the loop is left, after `timeout`, and in a daemon when the daemon must stop.",
            parameters: SELECTOR,
            options: &[
                NAMESPACE_OF_LIST,
                LABELS,
                FIELDS,
                optional("name", Type::Name, "Watch only the object with this name."),
                optional("timeout", Type::Duration, "When to end; default: never."),
            ],
            returns: Type::Any,
            body: Body::Streaming(watching::watch),
        },
        Function {
            name: "wait",
            doc: "Waits until a condition of an object is met: \"condition=Ready\", \"condition=Ready=False\", \"created\", \"deleted\", or until a function returns true, which is called with the current object and after each change (with nil while the object does not exist): `kube.wait(job, function(it) return it and it.status.succeeded == 1 end, \"10m\")`. Returns the object, or true if it is deleted; nil if it runs in a daemon that must stop meanwhile. Raises an error after `timeout`.",
            parameters: &[
                REFERENCE,
                required("predicate", Type::Test, "The condition to wait for."),
                TIMEOUT,
            ],
            options: &[NAMESPACE_OF_OBJECT],
            returns: Type::Any,
            body: Body::Script,
        },
        Function {
            name: "logs",
            doc: "Returns the log of a pod as a string.",
            parameters: &[POD],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional("container", Type::Name, "The container; required if there are several."),
                optional("tail", Type::Count, "Return only this many lines from the end."),
                optional(
                    "since",
                    Type::Duration,
                    "Return only lines that are not older than this.",
                ),
                optional(
                    "previous",
                    Type::Boolean,
                    "Read the log of the previous container; default: false.",
                ),
                optional(
                    "timestamps",
                    Type::Boolean,
                    "Begin each line with its time; default: false.",
                ),
            ],
            returns: Type::Text,
            body: Body::Waiting(reading::logs),
        },
        Function {
            name: "exec",
            doc: "Runs a command in a container, without a shell, and waits until it ends. Returns a map with `stdout`, `stderr` and `code`; a code other than 0 is not an error. Use kube.copy_from for binary data.",
            parameters: &[
                POD,
                required("command", Type::List, "The program and its arguments: `{ \"sh\", \"-c\", \"…\" }`."),
            ],
            options: &[
                NAMESPACE_OF_OBJECT,
                CONTAINER,
                optional("stdin", Type::Text, "The standard input of the command; default: empty."),
                TIMEOUT,
            ],
            returns: Type::Map,
            body: Body::Waiting(pods::exec),
        },
        Function {
            name: "copy_to",
            doc: "Writes a file in a container, which must have `tar`. The directory must exist.",
            parameters: &[
                POD,
                required("path", Type::Name, "The absolute path of the file."),
                required("data", Type::Bytes, "The content: a string or bytes.").secret(),
            ],
            options: &[
                NAMESPACE_OF_OBJECT,
                CONTAINER,
                optional("mode", Type::Integer, "The permissions; default: 420, which is 0644 in octal."),
                TIMEOUT,
            ],
            returns: Type::Nothing,
            body: Body::Waiting(pods::copy_to),
        },
        Function {
            name: "copy_from",
            doc: "Reads a file in a container, which must have `tar`. Returns its content as bytes: a string in Lua, a blob in Rhai. Links and directories are refused.",
            parameters: &[POD, required("path", Type::Name, "The absolute path of the file.")],
            options: &[NAMESPACE_OF_OBJECT, CONTAINER, TIMEOUT],
            returns: Type::Bytes,
            body: Body::Waiting(pods::copy_from),
        },
        Function {
            name: "run",
            doc: "Runs a program as a Job that the handled object owns, and waits until it ends. Returns a map with `code` and `log`, and with `problem` if the log could not be read. The Job is deleted afterwards. After a restart of the operator, the same call finds the Job again instead of running it twice.",
            parameters: &[
                required("image", Type::Name, "The image."),
                required("command", Type::List, "The program and its arguments."),
            ],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional("name", Type::Name, "The name of the Job; default: derived from the handled object and the arguments."),
                optional("env", Type::Map, "Environment variables: strings, numbers, or sources such as `{ secretKeyRef = … }`.").secret(),
                optional("files", Type::Map, "Up to 100 files by their absolute paths, mounted from a Secret.").secret(),
                optional("service_account", Type::Name, "The service account; default: that of the namespace, without its token."),
                optional("timeout", Type::Duration, "Maximum time of the Job; default: 10 minutes."),
                optional("keep", Type::Boolean, "Keep the Job with its pod, and return its result the next time, too; default: false."),
            ],
            returns: Type::Map,
            body: Body::Waiting(run::run),
        },
        Function {
            name: "scale",
            doc: "Sets the replicas of a Deployment, a StatefulSet or any other scalable object. Returns its scale.",
            parameters: &[REFERENCE, required("replicas", Type::Count, "The number of replicas.")],
            options: &[NAMESPACE_OF_OBJECT, DRY_RUN],
            returns: Type::Map,
            body: Body::Waiting(writing::scale),
        },
        Function {
            name: "evict",
            doc: "Deletes a pod if its disruption budget permits it. Returns whether the pod existed.",
            parameters: &[POD],
            options: &[
                NAMESPACE_OF_OBJECT,
                optional("grace_period", Type::Duration, "Grace period."),
                DRY_RUN,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(writing::evict),
        },
        Function {
            name: "can_i",
            doc: "Returns whether the operator has a permission: a verb such as \"get\", \"list\", \"watch\", \"create\", \"patch\" or \"delete\", and a resource.",
            parameters: &[required("verb", Type::Name, "The verb."), FIRST, SECOND, THIRD],
            options: &[
                NAMESPACE_OF_LIST,
                optional("name", Type::Name, "The name of the object; default: any."),
                SUBRESOURCE,
            ],
            returns: Type::Boolean,
            body: Body::Waiting(reading::can_i),
        },
        Function {
            name: "version",
            doc: "Returns the version of the server: a map with `major`, `minor`, `gitVersion` and more.",
            parameters: &[],
            options: &[],
            returns: Type::Map,
            body: Body::Waiting(reading::version),
        },
    ],
};

/// The function of the host for `stdlib/kube.*`.
pub(super) const STATES: Function = Function {
    name: "wait",
    doc: "Iterates over the states of an object in which a predicate is true, or over all of them without a predicate: maps with `object`, unless the object does not exist. Ends in a daemon that must stop; raises an error after `timeout`.",
    parameters: &[
        REFERENCE,
        optional(
            "predicate",
            Type::Name,
            "The predicate; nil for a function that is called later.",
        ),
        TIMEOUT,
    ],
    options: &[NAMESPACE_OF_OBJECT],
    returns: Type::Any,
    body: Body::Streaming(watching::wait),
};

/// A selector, as in declarations of handlers.
const SELECTOR: &[Parameter] = &[FIRST, SECOND, THIRD];
const FIRST: Parameter = required(
    "selector",
    Type::Selector,
    "The resource: \"pods\", \"deployments.apps\", \"apps/v1\" followed by a name, or ctx.resource.",
);
const SECOND: Parameter =
    optional("selector2", Type::Name, "The rest of the selector, such as \"Deployment\".");
const THIRD: Parameter = optional("selector3", Type::Name, "The rest of the selector.");

const OBJECT: Parameter =
    required("object", Type::Object, "The object, with `apiVersion`, `kind` and `metadata.name`.");
const REFERENCE: Parameter =
    required("object", Type::Object, "The object, a reference to it, or ctx.");
const TIMEOUT: Parameter =
    optional("timeout", Type::Duration, "Maximum time to wait; default: 30 s.");
const CONTAINER: Parameter =
    optional("container", Type::Name, "The container; required if there are several.");
const POD: Parameter = required("pod", Type::Any, "The name of the pod, or the pod itself.");
const NAMESPACE_OF_OBJECT: Parameter = optional(
    "namespace",
    Type::Name,
    "The namespace; default: that of the object, of the handled object, or of the credentials.",
);
const NAMESPACE_OF_LIST: Parameter = optional(
    "namespace",
    Type::Name,
    "The namespace, or \"*\" for all; default: that of the handled object, or of the credentials.",
);
const LABELS: Parameter = optional(
    "label_selector",
    Type::Labels,
    "Only objects with these labels: \"app=web,tier!=db\", or a map.",
);
const FIELDS: Parameter = optional(
    "field_selector",
    Type::Labels,
    "Only objects with these fields: \"status.phase=Running\", or a map.",
);
const MANAGER: Parameter = optional(
    "field_manager",
    Type::Name,
    "The manager that owns the fields from then on; default: \"kopf\".",
);
const SUBRESOURCE: Parameter = optional(
    "subresource",
    Type::Name,
    "The subresource, such as \"status\"; default: the object itself.",
);
const DRY_RUN: Parameter = optional(
    "dry_run",
    Type::Boolean,
    "Validate the request without changing anything; default: false.",
);
