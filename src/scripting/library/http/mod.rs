//! `http`: requests to servers that are granted.
//!
//! Who may be reached is asked three times: for the host of the URL, for that of each redirection, and for the address that
//! is connected to (`reach.rs`). `request.rs` reads the arguments, `exchange.rs` sends and follows.

mod exchange;
mod reach;
mod request;
#[cfg(test)]
mod tests;
mod trouble;

pub(super) use self::exchange::Web;
use super::{Body, Call, Function, Library, Outcome, Parameter, Type, optional, required};
use crate::ports::BoxFuture;

const URL: Parameter = required("url", Type::Name, "With its scheme, http or https.");
pub(super) const LIBRARY: Library = Library {
    name: "http",
    doc: "Requests over HTTP and HTTPS to hosts that `--allow-net` grants. They wait, and the other handlers go on. \
          Each gives `{status, ok, headers, body, url}`, and `json` if the answer is JSON. The names of headers are in small \
          letters. A body that is no text is `body_base64`. Answers like 404 are no errors: look at `ok` or `status`. \
          Without any answer there is an error with the `reason` Unreachable, Untrusted (its certificate) or Timeout. \
          Compression is not asked for; a server that compresses all the same gives `body_base64`.",
    functions: &[
        request(
            "get",
            "Reads something: `http.get(\"https://api.example.com/items\", {query = {page = 1}})`.",
            |call| exchange::send(call, "GET"),
        ),
        request("head", "Asks for the headers alone.", |call| exchange::send(call, "HEAD")),
        request(
            "post",
            "Sends something new: `http.post(url, {json = {name = \"x\"}})`.",
            |call| exchange::send(call, "POST"),
        ),
        request("put", "Sends something in place of what is there.", |call| {
            exchange::send(call, "PUT")
        }),
        request("patch", "Sends a change.", |call| exchange::send(call, "PATCH")),
        request("delete", "Removes something.", |call| exchange::send(call, "DELETE")),
        Function {
            name: "request",
            doc: "Any other method: `http.request(\"OPTIONS\", url)`.",
            parameters: &[
                required(
                    "method",
                    Type::Name,
                    "Capital letters, such as \"OPTIONS\"; not CONNECT.",
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
    optional("query", Type::Map, "Fields that are added to the URL."),
    optional("headers", Type::Map, "Texts by name."),
    optional("json", Type::Any, "A value that is sent as JSON."),
    optional("form", Type::Map, "Fields that are sent as a form."),
    optional("body", Type::Text, "A text that is sent as it is."),
    optional("body_base64", Type::Text, "Bytes that are sent as they are, in Base64."),
    optional("timeout", Type::Duration, "For all of it, with redirections; 30 s if left out."),
    optional("redirects", Type::Integer, "How many are followed, at most 20; 5 if left out."),
    optional(
        "size",
        Type::Integer,
        "The most bytes of the answer; 1 MiB if left out, at most settings.sandbox.string_size.",
    ),
    optional("ca", Type::Text, "Certificates in PEM to trust besides those of the public web."),
];

const fn request(
    name: &'static str,
    doc: &'static str,
    send: fn(Call) -> BoxFuture<'static, Outcome>,
) -> Function {
    let body = Body::Waiting(send);
    Function { name, doc, parameters: &[URL], options: OPTIONS, returns: Type::Map, body }
}
