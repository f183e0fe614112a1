//! Sends a request, follows redirects, reads the response.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use ::url::Url;
use bytes::Bytes;
use http::{
    Method, Response, StatusCode,
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, LOCATION, PROXY_AUTHORIZATION,
    },
    response::Parts,
};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::{
    connect::{Connector, check_host, check_insecure},
    content::{RequestContent, Sent},
    errors::{failed, no_response},
    faked,
    headers::{headers, is_json},
    request::{self, Request, described, web_url},
    retries::HttpAttempt,
    trust::{Trust, tls},
};
use crate::logic::access::grants::Access;
use crate::ports::BoxFuture;
use crate::scripting::functions::{
    Call, Surroundings,
    call::aside,
    outcome::{Datum, Failure, Outcome},
    scratch::{self, Draft},
    tree,
};

/// Maximum number of concurrent requests of one script, because their responses are in memory; further ones wait.
const TOGETHER_MAX: usize = 32;
/// Maximum number of headers of a response.
const HEADERS_MAX: usize = 100;
/// Maximum number of idle connections to one host that are kept for further requests.
const IDLE_MAX: usize = 4;

/// The body of a response, from a server or from a test.
type ReceivedBody = Either<Incoming, Full<Bytes>>;
type Channel = Client<HttpsConnector<Connector>, Sent>;

/// The state of one script's requests; created with the first one.
#[derive(Default)]
pub(in crate::scripting::functions) struct HttpClients {
    channel: OnceLock<Channel>,
    turns: OnceLock<Semaphore>,
}

impl fmt::Debug for HttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connections of a script")
    }
}

impl HttpClients {
    /// Returns a client that trusts the public web and these certificates; only clients without such certificates are kept.
    fn channel(&self, access: &Access, trust: &Trust) -> Result<Channel, Failure> {
        if let Some(channel) = self.channel.get().filter(|_| *trust == Trust::default()) {
            return Ok(channel.clone());
        }
        let reach = Connector(Arc::new(access.clone()));
        let connector = HttpsConnector::from((reach, tls(trust)?));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http1_max_headers(HEADERS_MAX).pool_max_idle_per_host(IDLE_MAX);
        let channel: Channel = builder.build(connector);
        if *trust == Trust::default() {
            drop(self.channel.set(channel.clone()));
        }
        Ok(channel)
    }
}

/// Sends the request of a call. The call itself builds the request, so that its CPU time counts.
pub(super) fn send(call: Call, method: &str) -> BoxFuture<'static, Outcome> {
    let request = Request::of(&call, method);
    Box::pin(async move {
        let request = request?;
        let mut number = 1;
        loop {
            let unsent = AtomicBool::new(false);
            let outcome = attempt(&call, request.clone(), &unsent).await;
            let (method, is_unsent) = (&request.method, unsent.into_inner());
            let ended = HttpAttempt { number, method, outcome: &outcome, is_unsent };
            let Some(pause) = request.retries.pause(&ended, call.surroundings.clock.now()) else {
                return outcome;
            };
            drop(outcome);
            tokio::time::sleep(pause).await;
            number += 1;
        }
    })
}

/// Sends a request once. Sets `unsent` to whether the server has certainly not received it.
async fn attempt(call: &Call, request: Request, unsent: &AtomicBool) -> Outcome {
    let (timeout, url) = (request.timeout, request.url.clone());
    let exchanged = tokio::time::timeout(timeout, exchange(call, request, unsent)).await;
    exchanged.unwrap_or_else(|_elapsed| {
        let seconds = timeout.as_secs_f64();
        let hint = "increase the option `timeout`";
        Err(no_response(
            "Timeout",
            format!("{url}: no complete response within {seconds} s; {hint}"),
        ))
    })
}

async fn exchange(call: &Call, mut request: Request, unsent: &AtomicBool) -> Outcome {
    let surroundings = &call.surroundings;
    let turns = surroundings.web.turns.get_or_init(|| Semaphore::new(TOGETHER_MAX));
    let _turn = turns.acquire().await.map_err(|it| Failure::Plain(it.to_string()))?;
    let (own, trust) = (Arc::clone(surroundings), request::trust(call)?);
    let is_insecure = trust.is_insecure;
    check(&surroundings.access, &request.url, is_insecure)?;
    let bytes = trust.ca.as_ref().map_or(0, String::len);
    let channel = aside(bytes, move || own.web.channel(&own.access, &trust)).await??;
    let mut left = request.redirects;
    loop {
        let answer = once((call, &channel), &request, unsent).await?;
        let Some(next) = target(&answer, &request.url)?.filter(|_| left > 0) else {
            return match &request.to {
                Some(to) if answer.status().is_success() => {
                    receive(call, answer, (&request, to)).await
                }
                Some(_) | None => read(answer, &request).await,
            };
        };
        left -= 1;
        check(&surroundings.access, &next, is_insecure)
            .map_err(|it| format!("{} redirects to {next}: {}", request.url, it.into_message()))?;
        redirect(&mut request, answer.status(), next);
    }
}

/// Checks that the host of a URL is granted, and also that its certificate need not be checked.
fn check(access: &Access, url: &Url, is_insecure: bool) -> Result<(), Failure> {
    let (host, port) =
        (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    check_host(access, host, port).map_err(Failure::Plain)?;
    if is_insecure && url.scheme() == "https" {
        check_insecure(access, host, port).map_err(Failure::Plain)?;
    }
    Ok(())
}

async fn once(
    (call, channel): (&Call, &Channel),
    request: &Request,
    unsent: &AtomicBool,
) -> Result<Response<ReceivedBody>, Failure> {
    let Request { method, url, headers, body, .. } = request;
    call.surroundings.check_not_dry(|| format!("send {method} {url}"))?;
    if let Some(fakes) = &call.surroundings.fakes {
        let answer = faked::respond(fakes, (method, url), described(call, request)?).await;
        let is_refused =
            |it: &Failure| matches!(it, Failure::Answer(it) if it.reason == "Unreachable");
        unsent.store(answer.as_ref().is_err_and(is_refused), Ordering::Relaxed);
        return answer.map(|it| it.map(Either::Right));
    }
    let mut built = http::Request::new(body.sent());
    *built.method_mut() = method.clone();
    *built.uri_mut() = url.as_str().parse().map_err(|it| Failure::Plain(format!("{url}: {it}")))?;
    *built.headers_mut() = headers.clone();
    let answer = channel.request(built).await.map_err(|it| {
        unsent.store(it.is_connect(), Ordering::Relaxed);
        failed(url, &it)
    })?;
    Ok(answer.map(Either::Left))
}

/// Returns the target of a redirect.
fn target(answer: &Response<ReceivedBody>, from: &Url) -> Result<Option<Url>, Failure> {
    let leads = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = answer.headers().get(LOCATION).filter(|_| leads) else { return Ok(None) };
    let wrong =
        |problem: &str| Failure::Plain(format!("{from} redirects to an invalid URL: {problem}"));
    let location = location.to_str().map_err(|it| wrong(&it.to_string()))?;
    let next = from.join(location).map_err(|it| wrong(&it.to_string()))?;
    let next = web_url(next.as_str()).map_err(|it| wrong(&it.into_message()))?;
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(format!("{from} redirects to {next}, which is not encrypted").into());
    }
    Ok(Some(next))
}

/// Changes the request for a redirect as browsers do: secrets stay with their host.
fn redirect(request: &mut Request, status: StatusCode, next: Url) {
    if next.origin() != request.url.origin() {
        for secret in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
            request.headers.remove(secret);
        }
    }
    let asks = request.method == Method::GET || request.method == Method::HEAD;
    let becomes_get = status == StatusCode::SEE_OTHER
        || (request.method == Method::POST
            && matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND));
    if becomes_get && !asks {
        request.method = Method::GET;
        request.body = RequestContent::Bytes(Bytes::new());
        request.headers.remove(CONTENT_TYPE);
        request.headers.remove(CONTENT_ENCODING);
    }
    request.url = next;
}

/// Returns the error of a response whose body cannot be read.
fn unread(request: &Request, problem: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
    let (url, size) = (&request.url, request.size);
    if problem.is::<http_body_util::LengthLimitError>() {
        let hint = "increase the option `size`";
        return format!("{url}: the response is larger than {size} bytes; {hint}").into();
    }
    failed(url, problem)
}

/// Writes the body of a response to a scratch file.
async fn receive(
    call: &Call,
    answer: Response<ReceivedBody>,
    (request, name): (&Request, &str),
) -> Outcome {
    let (head, body) = answer.into_parts();
    let mut body = Limited::new(body, request.size);
    let Surroundings { access, limits, scratch, .. } = &*call.surroundings;
    let directory = scratch::directory(access)?.to_owned();
    let mut draft = Draft::new(scratch, directory, limits.scratch_size).await?;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|it| unread(request, &*it))?;
        if let Ok(bytes) = frame.into_data() {
            draft = draft.write(bytes).await?;
        }
    }
    let size = draft.finish(scratch, call.present.as_ref(), name)?;
    let mut fields = about(&head, &request.url);
    fields.insert("size".into(), size.into());
    Ok(Value::Object(fields).into())
}

async fn read(answer: Response<ReceivedBody>, request: &Request) -> Outcome {
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, request.size).collect().await;
    let body = body.map_err(|it| unread(request, &*it))?;
    let (body, url) = (body.to_bytes(), request.url.clone());
    aside(body.len(), move || Ok(described_response(&head, &body, &url))).await?
}

/// Returns the fields that every response has.
fn about(head: &Parts, url: &Url) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("status".into(), head.status.as_u16().into());
    fields.insert("ok".into(), head.status.is_success().into());
    fields.insert("url".into(), url.as_str().into());
    fields.insert("headers".into(), headers(&head.headers));
    fields
}

fn described_response(head: &Parts, body: &[u8], url: &Url) -> Datum {
    let mut fields = about(head, url);
    match std::str::from_utf8(body) {
        Ok(text) => {
            if is_json(&head.headers)
                && let Ok(value) = tree::json(text)
            {
                fields.insert("json".into(), value);
            }
            fields.insert("body".into(), text.into());
        }
        Err(_) => drop(fields.insert("body_base64".into(), json!(STANDARD.encode(body)))),
    }
    Value::Object(fields).into()
}
