//! Requests to the server's REST interface. Each is sent once; retries are up to the caller.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{Response, StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, RequestBuilder};

use super::error::CollectorError;
use super::report::Testcase;
use super::settings::ServerAccount;

const CONNECT: Duration = Duration::from_secs(10);
/// Longest answer kept in memory, bytes. A record contains what its client sent.
const MAX_ANSWER: u64 = 256 << 20;
/// Longest test case, bytes.
const MAX_FILE: u64 = 1 << 30;
/// Longest archive of signatures, bytes.
const MAX_ARCHIVE: u64 = 256 << 20;
/// Ratio of the time limit of a whole exchange to that of one read or write; ends exchanges with a server that sends a
/// byte now and then.
const PATIENCE_IN_ALL: u32 = 10;
/// Pause if the server requests none: its limit is per minute.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
/// Longest pause: at least one try a day.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// Number of bytes of an answer shown to the user.
const SHOWN: usize = 200;
const CRASHES: &str = "/crashmanager/rest/crashes/";

type ClientResult = Result<Response<Body>, CollectorError>;

/// A connection to one server.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    server: ServerAccount,
}

impl Client {
    pub fn new(server: ServerAccount) -> Result<Self, CollectorError> {
        let patience = server.patience;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("ffuzz/", env!("CARGO_PKG_VERSION")))
            // Redirects would send the token to another server.
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_per_call(Some(patience * PATIENCE_IN_ALL))
            .timeout_per_write(Some(patience))
            .timeout_recv_response(Some(patience))
            .timeout_per_read(Some(patience));
        if let Some(path) = &server.authority {
            let roots = RootCerts::new_with_certs(&certificates(path)?);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Self { agent: config.build().new_agent(), server })
    }

    #[must_use]
    pub fn server(&self) -> &ServerAccount {
        &self.server
    }

    /// Submits a crash. Returns its number at the server.
    pub fn submit(&self, fields: &[(&str, String)]) -> Result<u64, CollectorError> {
        let url = self.url(CRASHES);
        let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
        let request = self.authorized(self.agent.post(&url));
        let answer = self.checked(&url, request.send_form(fields))?;
        self.json(&url, answer)?["id"].as_u64().ok_or(CollectorError::NotTheServer { url })
    }

    /// Number of the crash with this id in its metadata. None if there is none, or if the account has no read
    /// permission.
    pub fn find(&self, id: &str) -> Result<Option<u64>, CollectorError> {
        // The id is long and random, so a match anywhere in the metadata identifies the report.
        let query = json!({ "op": "AND", "metadata__contains": id });
        match self.select(&query, 0) {
            Ok(answer) => Ok(answer["results"][0]["id"].as_u64()),
            Err(CollectorError::Forbidden { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The record of a crash.
    pub fn crash(&self, number: u64) -> Result<Value, CollectorError> {
        let url = self.url(&format!("{CRASHES}{number}/"));
        let answer = self.get(&url, &[])?;
        self.json(&url, answer)
    }

    /// Records of all crashes of a bucket.
    pub fn bucket(&self, number: u64) -> Result<Vec<Value>, CollectorError> {
        let mut found = vec![];
        let query = json!({ "op": "AND", "bucket": number });
        loop {
            let mut page = self.select(&query, found.len())?;
            let Value::Array(results) = page["results"].take() else { break };
            let was_last = page["next"].is_null() || results.is_empty();
            found.extend(results);
            if was_last {
                break;
            }
        }
        Ok(found)
    }

    /// The input of a crash.
    pub fn testcase(&self, number: u64) -> Result<Vec<u8>, CollectorError> {
        let url = self.url(&format!("{CRASHES}{number}/download/"));
        let mut answer = self.get(&url, &[])?;
        let body = answer.body_mut().with_config().limit(MAX_FILE);
        body.read_to_vec().map_err(|error| failed(&url, error))
    }

    /// Writes the archive of all signatures to `to`; false if the server has none yet.
    pub fn signatures(&self, to: &mut impl Write) -> Result<bool, CollectorError> {
        let url = self.url("/crashmanager/rest/signatures/download/");
        let mut answer = match self.get(&url, &[]) {
            Err(CollectorError::Refused { status: 404, .. }) => return Ok(false),
            answer => answer?,
        };
        let mut body = answer.body_mut().as_reader().take(MAX_ARCHIVE + 1);
        match io::copy(&mut body, to) {
            Ok(..=MAX_ARCHIVE) => Ok(true),
            Ok(_) => Err(CollectorError::Archive { url, reason: "it has no end".into() }),
            Err(error) => Err(failed(&url, error.into())),
        }
    }

    /// Submits the coverage of a campaign.
    pub fn coverage(&self, fields: &Value) -> Result<(), CollectorError> {
        let url = self.url("/covmanager/rest/collections/");
        let request = self.authorized(self.agent.post(&url));
        let body = fields.to_string();
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.checked(&url, request.send(body.as_str())).map(drop)
    }

    fn select(&self, query: &Value, offset: usize) -> Result<Value, CollectorError> {
        let url = self.url(CRASHES);
        let parameters = [
            ("query", query.to_string()),
            ("include_raw", "0".into()),
            ("ignore_toolfilter", "1".into()),
            ("ordering", "id".into()),
            ("offset", offset.to_string()),
        ];
        let answer = self.get(&url, &parameters)?;
        let answer = self.json(&url, answer)?;
        match answer["results"].is_array() {
            true => Ok(answer),
            false => Err(CollectorError::NotTheServer { url }),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url)
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        request.header(header::AUTHORIZATION, format!("Token {}", self.server.token.secret()))
    }

    fn get(&self, url: &str, parameters: &[(&str, String)]) -> ClientResult {
        let parameters = parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let request = self.authorized(self.agent.get(url)).query_pairs(parameters);
        self.checked(url, request.call())
    }

    /// Turns an error answer into an error.
    fn checked(&self, url: &str, answer: Result<Response<Body>, ureq::Error>) -> ClientResult {
        let mut answer = answer.map_err(|error| failed(url, error))?;
        let status = answer.status();
        let url = url.to_owned();
        let is_html = text_of(&answer, header::CONTENT_TYPE).starts_with("text/html");
        // FuzzManager also answers with HTML pages.
        let is_ours = answer.headers().contains_key("x-username");
        let retry_after = text_of(&answer, header::RETRY_AFTER).parse().ok();
        let retry_after =
            retry_after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE));
        Err(match status {
            StatusCode::UNAUTHORIZED => CollectorError::Unauthorized { url },
            StatusCode::FORBIDDEN => CollectorError::Forbidden { url },
            StatusCode::TOO_MANY_REQUESTS => {
                CollectorError::TooMany { url, retry_after: retry_after.unwrap_or(DEFAULT_WAIT) }
            }
            _ if status.is_server_error() => {
                let (status, text) = (status.as_u16(), shown(&mut answer, is_html));
                CollectorError::Failing { url, status, text, retry_after }
            }
            _ if (is_html && !is_ours) || status.is_redirection() => {
                CollectorError::NotTheServer { url }
            }
            _ if status.is_success() => return Ok(answer),
            _ => {
                let (status, text) = (status.as_u16(), shown(&mut answer, is_html));
                CollectorError::Refused { url, status, text }
            }
        })
    }

    fn json(&self, url: &str, mut answer: Response<Body>) -> Result<Value, CollectorError> {
        let body = answer.body_mut().with_config().limit(MAX_ANSWER);
        let bytes = body.read_to_vec().map_err(|error| failed(url, error))?;
        serde_json::from_slice(&bytes)
            .map_err(|_| CollectorError::NotTheServer { url: url.to_owned() })
    }
}

fn certificates(path: &Path) -> Result<Vec<ureq::tls::Certificate<'static>>, CollectorError> {
    let bytes = fs::read(path).map_err(|error| CollectorError::read(path, error))?;
    let (mut found, mut reason) = (Vec::new(), "it holds no certificate in PEM form");
    for item in parse_pem(&bytes).flatten() {
        match item {
            PemItem::Certificate(certificate) => found.push(certificate),
            PemItem::PrivateKey(_) => reason = "it holds a private key, and no certificate",
            _ => {}
        }
    }
    match found.is_empty() {
        true => Err(CollectorError::Authority { path: path.to_owned(), reason }),
        false => Ok(found),
    }
}

fn text_of(answer: &Response<Body>, name: header::HeaderName) -> String {
    let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_ascii_lowercase()
}

/// Beginning of an answer on one line; empty for HTML pages.
fn shown(answer: &mut Response<Body>, is_html: bool) -> String {
    let mut bytes = vec![];
    let reader = answer.body_mut().as_reader();
    if is_html || reader.take(SHOWN as u64).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn failed(url: &str, error: ureq::Error) -> CollectorError {
    let url = url.to_owned();
    match error {
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            CollectorError::Unreachable { url, reason: "no connection in time".into() }
        }
        ureq::Error::Timeout(_) => CollectorError::Slow { url },
        ureq::Error::Tls(reason) => CollectorError::Tls { url, reason: reason.into() },
        ureq::Error::Rustls(error) => CollectorError::Tls { url, reason: error.to_string() },
        // Errors of the TLS library are wrapped like this.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            CollectorError::Tls { url, reason: error.to_string() }
        }
        ureq::Error::Io(error) if is_end(error.kind()) => CollectorError::BrokenOff { url },
        error => CollectorError::Unreachable { url, reason: error.to_string() },
    }
}

/// True if an established connection ended.
fn is_end(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// File name for a downloaded input: the number, and the extension given by its client.
#[must_use]
pub fn download_name(number: u64, record: &Value) -> Option<String> {
    let stored = record["testcase"].as_str().filter(|path| !path.is_empty())?;
    let extension = Testcase::extension_of(Path::new(stored));
    Some(if extension.is_empty() { number.to_string() } else { format!("{number}.{extension}") })
}
