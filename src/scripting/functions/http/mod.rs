//! `http`: requests to granted servers.
//!
//! Grants are checked three times: for the host of the URL, for that of each redirect, and for the address of the connection
//! (`connect.rs`). `request.rs` reads the arguments, `exchange.rs` sends the request and follows redirects.

mod connect;
mod content;
mod errors;
mod exchange;
mod faked;
mod headers;
mod parts;
mod request;
mod retries;
#[cfg(test)]
mod tests;
mod trust;

pub(super) use self::exchange::HttpClients;
use super::Call;
use crate::ports::BoxFuture;
use crate::scripting::functions::{
    outcome::Outcome,
    types::{Body, Function, Library, Parameter, Type, optional, required},
};

const URL: Parameter = required("url", Type::Name, "The URL with its scheme, http or https.");
pub(super) const LIBRARY: Library = Library {
    name: "http",
    doc: "HTTP and HTTPS requests to hosts that are granted with `--allow-net`. While a request waits, other handlers run. Each function returns `{status, ok, headers, body, url}`, and `json` if the response is JSON. Header names are lowercase. A body that is not UTF-8 is returned as `body_base64`. Statuses like 404 are not errors: check `ok` or `status`. Without a response, the functions raise an error with the `reason` Unreachable, Untrusted (because of the certificate) or Timeout. Compression is not requested; if a server compresses anyway, the body is in `body_base64`.",
    functions: &[
        request(
            "get",
            "Sends a GET request: `http.get(\"https://api.example.com/items\", {query = {page = 1}})`.",
            |call| exchange::send(call, "GET"),
        ),
        request("head", "Sends a HEAD request, which returns only the headers.", |call| {
            exchange::send(call, "HEAD")
        }),
        request(
            "post",
            "Sends a POST request, to create something: `http.post(url, {json = {name = \"x\"}})`.",
            |call| exchange::send(call, "POST"),
        ),
        request("put", "Sends a PUT request, to replace something.", |call| {
            exchange::send(call, "PUT")
        }),
        request("patch", "Sends a PATCH request, to change something.", |call| {
            exchange::send(call, "PATCH")
        }),
        request("delete", "Sends a DELETE request.", |call| exchange::send(call, "DELETE")),
        Function {
            name: "request",
            doc: "Sends a request with any other method: `http.request(\"OPTIONS\", url)`.",
            parameters: &[
                required(
                    "method",
                    Type::Name,
                    "The method in capital letters, such as \"OPTIONS\"; not CONNECT.",
                ),
                URL,
            ],
            options: OPTIONS,
            returns: Type::Map,
            body: Body::Waiting(|call| {
                let method = call.text("method").to_owned();
                exchange::send(call, &method)
            }),
        },
    ],
};

const OPTIONS: &[Parameter] = &[
    optional("query", Type::Map, "Parameters to add to the query of the URL."),
    optional("headers", Type::Map, "Headers: strings by name."),
    optional("json", Type::Any, "A value to send as JSON."),
    optional("form", Type::Map, "Fields to send as a form."),
    optional("body", Type::Text, "A string to send unchanged."),
    optional("body_base64", Type::Text, "Bytes to send unchanged, in Base64."),
    optional(
        "files",
        Type::Map,
        "Files to send as multipart/form-data, with the fields of `form`: for each field a string, or `{content, name, type}`, or `content_base64` for bytes.",
    ),
    optional(
        "from",
        Type::Name,
        "The scratch file to send, which a response with `to` has made in the same call of a handler.",
    ),
    optional(
        "to",
        Type::Name,
        "A name for a scratch file: the body of a response with a status from 200 to 299 is written there, not returned, and `size` is its size in bytes. It is for `from` in the same call of a handler, and is deleted when that ends; needs `--allow-scratch=DIRECTORY`. All such files of a script have up to settings.sandbox.scratch_size.",
    ),
    optional("auth", Type::Map, "Basic authentication: `{user, password}`."),
    optional(
        "retries",
        Type::Map,
        "`{attempts, backoff, on}`: the maximum number of attempts, up to 20; the pause or a list of pauses between them, default: 1 s, doubled each time; the statuses that are retried, default: 429, 502, 503, 504. `Retry-After` of the server replaces the pause; no pause is longer than 60 s. POST and PATCH are retried only if `on` has the status, or if the server has certainly not executed them.",
    ),
    optional("cert", Type::Text, "The PEM certificate of the client; needs `key`."),
    optional("key", Type::Text, "The PEM private key of `cert`."),
    optional(
        "timeout",
        Type::Duration,
        "Timeout of the whole request, including redirects; of each attempt with `retries`. Default: 30 s.",
    ),
    optional(
        "redirects",
        Type::Integer,
        "Maximum number of redirects to follow, at most 20; default: 5.",
    ),
    optional(
        "size",
        Type::Integer,
        "Maximum size of the response in bytes; default: 1 MiB, at most settings.sandbox.string_size. With `to`, default and maximum are settings.sandbox.scratch_size.",
    ),
    optional(
        "ca",
        Type::Text,
        "PEM certificates to trust, in addition to the public certificate authorities.",
    ),
    optional(
        "insecure",
        Type::Boolean,
        "Whether to accept any certificate of the server; needs `--allow-insecure=HOST:PORT`. Prefer `ca`. Default: false.",
    ),
];

const fn request(
    name: &'static str,
    doc: &'static str,
    send: fn(Call) -> BoxFuture<'static, Outcome>,
) -> Function {
    let body = Body::Waiting(send);
    Function { name, doc, parameters: &[URL], options: OPTIONS, returns: Type::Map, body }
}
