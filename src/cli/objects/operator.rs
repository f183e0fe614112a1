//! `kopf status URL`: the scripts of a running operator, as its metrics show them.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::output::{aligned, plain};
use crate::cli::{report::Report, shared_args::OutputFormat};
use crate::logic::text::{printable::printable, size};

/// Maximum time until the whole page has arrived.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the page: that of one script, times the number of scripts of a large operator.
const PAGE_MAX: usize = 64 << 20;

/// The scripts of an operator.
#[derive(Debug, Default, PartialEq)]
struct Scripts {
    /// The live generation, and when it took over in seconds of Unix time.
    generation: Option<(f64, f64)>,
    by_file: BTreeMap<String, ScriptMetrics>,
}

/// The metrics of one script.
#[derive(Debug, Default, PartialEq)]
struct ScriptMetrics {
    sha256: Option<String>,
    memory_bytes: f64,
    limit_bytes: f64,
    cpu_seconds: f64,
}

/// Returns the state of the scripts of the operator at this address.
pub(super) async fn scripts(url: &str, output: OutputFormat) -> Result<String, Report> {
    let address = address(url)?;
    let page = match timeout(TIMEOUT, page(address.clone())).await {
        Ok(page) => page,
        Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
    };
    let page = page.map_err(|why| {
        let hint = "start the operator with --health 127.0.0.1:8081; for one in a pod: kubectl port-forward POD 8081";
        Report::failure(format!("cannot read {address}: {why}")).with_hint(hint)
    })?;
    let scripts = Scripts::parse(&page);
    if scripts.by_file.is_empty() {
        let text = format!("{address} reports no scripts");
        return Err(Report::failure(text).with_hint("is it the address of an operator?"));
    }
    Ok(match output {
        OutputFormat::Text => scripts.table(),
        OutputFormat::Json => format!("{}\n", printable(scripts.json().to_string())),
    })
}

/// Returns the address of the metrics: `/metrics`, unless the URL has a path.
fn address(url: &str) -> Result<Uri, Report> {
    let wrong = || {
        Report::usage(format!("'{}' is not the address of an operator", url.escape_debug()))
            .with_hint("write it as http://127.0.0.1:8081")
    };
    let uri = url.parse::<Uri>().or(Err(wrong()))?;
    let host = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
    let path = if matches!(uri.path(), "" | "/") { "/metrics" } else { uri.path() };
    let whole = Uri::builder().scheme("http").authority(host.as_str()).path_and_query(path);
    whole.build().or(Err(wrong()))
}

async fn page(address: Uri) -> Result<String, String> {
    let client: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let request = Request::get(address).body(Full::default()).map_err(|it| it.to_string())?;
    let response = client.request(request).await.map_err(|it| innermost(&it))?;
    if response.status() != StatusCode::OK {
        return Err(format!("the response is {}", response.status()));
    }
    let body = Limited::new(response.into_body(), PAGE_MAX).collect().await;
    let bytes = body.map_err(|it| it.to_string())?.to_bytes();
    String::from_utf8(bytes.into()).map_err(|it| format!("the response is invalid: {it}"))
}

/// Returns the most specific cause: the outer ones say "client error".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl Scripts {
    /// Reads a page of metrics.
    fn parse(page: &str) -> Self {
        let mut scripts = Scripts::default();
        let (mut number, mut since) = (None, None);
        for sample in page.lines().filter_map(Sample::parse) {
            match sample.name {
                "kopf_script_generation" => number = Some(sample.value),
                "kopf_script_generation_timestamp_seconds" => since = Some(sample.value),
                _ => scripts.add(sample),
            }
        }
        scripts.generation = number.zip(since);
        scripts
    }

    fn add(&mut self, Sample { name, mut labels, value }: Sample<'_>) {
        let set: fn(&mut ScriptMetrics, f64) = match name {
            "kopf_script_info" => |_, _| {},
            "kopf_script_memory_bytes" => |it, value| it.memory_bytes = value,
            "kopf_script_memory_limit_bytes" => |it, value| it.limit_bytes = value,
            "kopf_script_cpu_seconds_total" => |it, value| it.cpu_seconds = value,
            _ => return,
        };
        let Some(file) = labels.remove("script") else { return };
        let script = self.by_file.entry(file).or_default();
        set(script, value);
        if let Some(sha256) = labels.remove("sha256") {
            script.sha256 = Some(sha256);
        }
    }

    fn since(&self) -> Option<(f64, Timestamp)> {
        let (number, since) = self.generation?;
        let since = Duration::try_from_secs_f64(since).ok()?;
        Some((number, Timestamp::UNIX_EPOCH.checked_add(since).ok()?))
    }

    fn table(&self) -> String {
        let mut rows = vec![["SCRIPT", "SHA256", "MEMORY", "LIMIT", "CPU"].map(str::to_owned)];
        rows.extend(self.by_file.iter().map(|(file, it)| {
            let sha256 = it.sha256.as_deref().unwrap_or("-");
            let cpu = format!("{:.3} s", it.cpu_seconds);
            [
                plain(file),
                plain(sha256).chars().take(12).collect(),
                size::about(bytes(it.memory_bytes)),
                size::about(bytes(it.limit_bytes)),
                cpu,
            ]
        }));
        let mut text = aligned(&rows);
        if let Some((number, since)) = self.since() {
            // Writing to a string cannot fail.
            writeln!(text, "generation {number}, live since {since:.0}").unwrap_or_default();
        }
        text
    }

    fn json(&self) -> Value {
        let scripts = self.by_file.iter().map(|(file, it)| {
            json!({
                "script": file,
                "sha256": it.sha256,
                "memory_bytes": bytes(it.memory_bytes),
                "memory_limit_bytes": bytes(it.limit_bytes),
                "cpu_seconds": it.cpu_seconds,
            })
        });
        let since = self.since();
        json!({
            "generation": since.map(|(number, _)| number),
            "since": since.map(|(_, it)| format!("{it:.0}")),
            "scripts": scripts.collect::<Value>(),
        })
    }
}

/// One line of a page of metrics.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl<'a> Sample<'a> {
    /// Reads `name{label="value",…} number`. Returns `None` for comments, and for lines that are no samples.
    fn parse(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at_checked(end)?;
        let mut labels = BTreeMap::new();
        let mut rest = rest.strip_prefix('{').unwrap_or(rest);
        while let Some((label, after)) =
            rest.split_once("=\"").filter(|_| !rest.starts_with([' ', '}']))
        {
            let (value, after) = quoted(after)?;
            labels.insert(label.trim_start_matches(',').to_owned(), value);
            rest = after;
        }
        let value = rest.trim_start_matches('}').split_ascii_whitespace().next()?;
        Some(Sample { name, labels, value: value.parse().ok()? })
    }
}

/// Returns the string before the closing quote, without its escapes, and what follows the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (index, character) in text.char_indices() {
        match character {
            'n' if is_escaped => value.push('\n'),
            _ if is_escaped => value.push(character),
            '\\' => {}
            '"' => return Some((value, text.get(index + 1..)?)),
            _ => value.push(character),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    None
}

/// Returns a number of bytes; 0 if the page has something else there.
fn bytes(value: f64) -> usize {
    format!("{value:.0}").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Sample, Scripts, address};

    const PAGE: &str = "\
# HELP kopf_script_info The scripts of the live generation, with their SHA-256.
kopf_script_info{script=\"a \\\"b\\\\.lua\",sha256=\"0123456789abcdef\"} 1
kopf_script_memory_bytes{script=\"a \\\"b\\\\.lua\"} 1572864
kopf_script_memory_limit_bytes{script=\"a \\\"b\\\\.lua\"} 67108864
kopf_script_cpu_seconds_total{script=\"a \\\"b\\\\.lua\"} 0.25
kopf_script_a_queue{} 3.0
kopf_script_generation 3
kopf_script_generation_timestamp_seconds 1767225600.5
# EOF
";

    #[test]
    fn the_scripts_are_those_of_the_page() {
        let scripts = Scripts::parse(PAGE);
        let expected = "\
SCRIPT     SHA256        MEMORY   LIMIT     CPU
a \"b\\.lua  0123456789ab  1.5 MiB  64.0 MiB  0.250 s
generation 3, live since 2026-01-01T00:00:00Z
";
        assert_eq!(scripts.table(), expected);
        let json = scripts.json();
        assert_eq!(json["generation"], 3.0);
        assert_eq!(json["scripts"][0]["memory_bytes"], 1_572_864);
    }

    #[test]
    fn other_lines_than_samples_are_ignored() {
        for line in
            ["", " ", "x", "x{", "x{a=\"", "x{a=\"b", "x{a=\"b\\", "x{a=\"b\"}", "x y", "{\u{1b}} "]
        {
            assert_eq!(Sample::parse(line), None, "{line:?}");
        }
        assert_eq!(Scripts::parse("\u{0}\n{}{}{ 1\n"), Scripts::default());
    }

    #[test]
    fn an_address_is_that_of_the_metrics() {
        let of = |url| address(url).map(|it| it.to_string()).map_err(|it| it.message);
        assert_eq!(of("http://127.0.0.1:8080"), Ok("http://127.0.0.1:8080/metrics".into()));
        assert_eq!(of("http://[::1]:1/m"), Ok("http://[::1]:1/m".into()));
        for wrong in ["http://", "https://a", "http:///x", "http://a b", "ftp://a"] {
            assert!(of(wrong).is_err_and(|it| it.contains("is not the address")), "{wrong:?}");
        }
    }
}
