//! The language server: provides the results of the checker to editors, over the Language Server Protocol.
//!
//! One thread reads messages into a bounded queue, another one responds in order, each within the limits of the checker. Mistakes
//! are reported when no request waits, so that typing does not queue them. Scripts are read, never executed.

mod convert;
mod documents;
mod framing;
mod requests;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    io::{self, BufReader, Read, Write},
    sync::mpsc::{Receiver, RecvError, TryRecvError, sync_channel},
    thread,
};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

pub use self::documents::Schemas;
use self::{
    documents::Documents,
    framing::{Incoming, read, write},
};

/// Maximum number of queued messages. Beyond it, the client must wait.
const QUEUE_MAX: usize = 64;

/// The way in which the client has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LspEnd {
    /// After a request to shut down.
    Orderly,
    /// Without such a request.
    Abrupt,
}

/// Serves a client until it ends.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    schemas: Schemas,
) -> io::Result<LspEnd> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    // It ends with its input, or when its messages are no longer received.
    thread::Builder::new().name("kopf-lsp".into()).spawn(move || {
        let mut input = BufReader::new(input);
        while let Some(incoming) = read(&mut input) {
            if sender.send(incoming).is_err() {
                return;
            }
        }
    })?;
    Server::new(output, schemas).run(&receiver)
}

struct Server<W> {
    output: W,
    documents: Documents,
    queue: VecDeque<Incoming>,
    /// Queued requests whose client no longer waits.
    cancelled: BTreeSet<RequestId>,
    is_initialized: bool,
    is_shut_down: bool,
}

impl<W: Write> Server<W> {
    fn new(output: W, schemas: Schemas) -> Self {
        Server {
            output,
            documents: Documents::new(schemas),
            queue: VecDeque::new(),
            cancelled: BTreeSet::new(),
            is_initialized: false,
            is_shut_down: false,
        }
    }

    fn run(&mut self, receiver: &Receiver<Incoming>) -> io::Result<LspEnd> {
        loop {
            if let Some(end) = self.next(receiver)? {
                return Ok(end);
            }
        }
    }

    /// Handles the next message; without one, checks the next document.
    fn next(&mut self, receiver: &Receiver<Incoming>) -> io::Result<Option<LspEnd>> {
        if self.queue.is_empty() && !self.documents.has_changed() {
            match receiver.recv() {
                Ok(incoming) => self.push(incoming),
                Err(RecvError) => return Ok(Some(self.end())),
            }
        }
        while self.queue.len() < QUEUE_MAX {
            match receiver.try_recv() {
                Ok(incoming) => self.push(incoming),
                Err(TryRecvError::Disconnected)
                    if self.queue.is_empty() && !self.documents.has_changed() =>
                {
                    return Ok(Some(self.end()));
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let Some(incoming) = self.queue.pop_front() else {
            if let Some(diagnostics) = self.documents.next_diagnostics() {
                self.notify("textDocument/publishDiagnostics", diagnostics)?;
            }
            return Ok(None);
        };
        match incoming {
            Incoming::Message(Message::Request(request)) => self.request(request)?,
            Incoming::Message(Message::Notification(notification)) => {
                if notification.method == "exit" {
                    return Ok(Some(self.end()));
                }
                self.notification(notification)?;
            }
            // The response to a request that was never sent.
            Incoming::Message(Message::Response(_)) => {}
            Incoming::Invalid(code, message) => {
                // Without an id, as JSON-RPC demands.
                let error = json!({ "code": code, "message": message });
                let response = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                write(&mut self.output, &response)?;
            }
        }
        Ok(None)
    }

    fn push(&mut self, incoming: Incoming) {
        if let Incoming::Message(Message::Notification(notification)) = &incoming
            && notification.method == "$/cancelRequest"
        {
            let id = notification.params.get("id").cloned().unwrap_or_default();
            self.cancelled.extend(serde_json::from_value::<RequestId>(id).ok());
            return;
        }
        self.queue.push_back(incoming);
    }

    fn end(&self) -> LspEnd {
        if self.is_shut_down { LspEnd::Orderly } else { LspEnd::Abrupt }
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        let Request { id, method, params } = request;
        let is_cancelled = self.cancelled.remove(&id);
        if self.queue.is_empty() {
            // Requests that were handled before they were cancelled.
            self.cancelled.clear();
        }
        let error = |code: ErrorCode, message: &str| Err((code, message.to_owned()));
        let outcome = if is_cancelled {
            error(ErrorCode::RequestCanceled, "cancelled by the client")
        } else if method == "initialize" && !self.is_initialized {
            self.is_initialized = true;
            Ok(capabilities())
        } else if !self.is_initialized {
            error(ErrorCode::ServerNotInitialized, "send `initialize` first")
        } else if self.is_shut_down {
            error(ErrorCode::InvalidRequest, "the server is shut down")
        } else if method == "shutdown" {
            self.is_shut_down = true;
            Ok(Value::Null)
        } else {
            requests::respond(&mut self.documents, &method, params)
        };
        let response = match outcome {
            Ok(result) => Response::new_ok(id, result),
            Err((code, message)) => Response::new_err(id, code as i32, message),
        };
        self.send(&Message::Response(response))
    }

    fn notification(&mut self, notification: Notification) -> io::Result<()> {
        if !self.is_initialized || self.is_shut_down {
            return Ok(());
        }
        let Notification { method, params } = notification;
        let result = match method.as_str() {
            "textDocument/didOpen" => self.documents.open(params),
            "textDocument/didChange" => self.documents.change(params),
            "textDocument/didSave" => {
                self.documents.forget_schemas();
                Ok(())
            }
            "textDocument/didClose" => {
                let closed = self.documents.close(params);
                if let Ok(Some(diagnostics)) = closed {
                    self.notify("textDocument/publishDiagnostics", diagnostics)?;
                }
                Ok(())
            }
            _ => Ok(()),
        };
        let Err(problem) = result else { return Ok(()) };
        // A notification has no response.
        let message = format!("kopf lsp: {method} ignored: {problem}");
        self.notify("window/logMessage", json!({ "type": 1, "message": message }))
    }

    fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        let method = method.to_owned();
        self.send(&Message::Notification(Notification { method, params }))
    }

    fn send(&mut self, message: &Message) -> io::Result<()> {
        let mut value = serde_json::to_value(message)?;
        if let Value::Object(fields) = &mut value {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
        }
        write(&mut self.output, &value)
    }
}

/// Returns the capabilities of the server.
fn capabilities() -> Value {
    let capabilities = lsp_types::ServerCapabilities {
        text_document_sync: Some(lsp_types::TextDocumentSyncCapability::Options(
            lsp_types::TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(lsp_types::TextDocumentSyncKind::FULL),
                save: Some(lsp_types::TextDocumentSyncSaveOptions::Supported(true)),
                ..lsp_types::TextDocumentSyncOptions::default()
            },
        )),
        completion_provider: Some(lsp_types::CompletionOptions {
            trigger_characters: Some([".", ":", "\"", "'"].map(str::to_owned).to_vec()),
            ..lsp_types::CompletionOptions::default()
        }),
        hover_provider: Some(lsp_types::HoverProviderCapability::Simple(true)),
        definition_provider: Some(lsp_types::OneOf::Left(true)),
        code_lens_provider: Some(lsp_types::CodeLensOptions { resolve_provider: Some(false) }),
        ..lsp_types::ServerCapabilities::default()
    };
    json!({
        "capabilities": capabilities,
        "serverInfo": { "name": "kopf", "version": env!("CARGO_PKG_VERSION") },
    })
}
