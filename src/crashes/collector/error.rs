//! Errors of the communication with the crash server, and their remedies.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;
use nix::errno::Errno;

use super::ini::IniError;

const CHECK_SERVER: &str = "check serverhost and serverport, and whether the server runs";

/// Error of one operation; names what was tried.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CollectorError {
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("check the name and the permissions"))]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    #[diagnostic(help("check the permissions of the folder"))]
    Write { path: PathBuf, source: io::Error },
    #[error("no room left to write {}", path.display())]
    #[diagnostic(help("free some space; nothing is lost"))]
    Full { path: PathBuf },
    #[error("{}: {source}", path.display())]
    #[diagnostic(help("write [Main], then lines KEY = VALUE"))]
    Config { path: PathBuf, source: IniError },
    #[error("{}: {reason}", path.display())]
    #[diagnostic(help("remove {}", path.display()))]
    Damaged { path: PathBuf, reason: String },
    #[error("servercafile {}: {reason}", path.display())]
    #[diagnostic(help(
        "set servercafile to your authority's certificate: a file with BEGIN CERTIFICATE"
    ))]
    Authority { path: PathBuf, reason: &'static str },
    #[error("{key} is not set")]
    #[diagnostic(help("{}", missing(key)))]
    Missing { key: &'static str },
    #[error("{key} = {value} is not {expected}")]
    #[diagnostic(help("set {key} to {expected}"))]
    Invalid { key: &'static str, value: String, expected: &'static str },
    #[error("cannot reach {url}: {reason}")]
    #[diagnostic(help("{}", CHECK_SERVER))]
    Unreachable { url: String, reason: String },
    #[error("no secure connection to {url}: {reason}")]
    #[diagnostic(help(
        "set servercafile to your own authority's certificate, or serverproto = http"
    ))]
    Tls { url: String, reason: String },
    #[error("{url} gave no answer in time")]
    #[diagnostic(help(
        "check whether the server runs; set servertimeout to more seconds if it is slow"
    ))]
    Slow { url: String },
    #[error("{url} ended the connection without an answer")]
    #[diagnostic(help("{}", CHECK_SERVER))]
    BrokenOff { url: String },
    #[error("{url} answers 401: the token is missing or wrong")]
    #[diagnostic(help("set serverauthtoken to what `manage.py get_auth_token USER` prints there"))]
    Unauthorized { url: String },
    #[error("{url} answers 403: the account may not do this")]
    #[diagnostic(help(
        "on the server: manage.py add_permission USER view_crashmanager crashmanager_all"
    ))]
    Forbidden { url: String },
    #[error("{url} answers 429: too many requests")]
    #[diagnostic(help("try again in {} s", retry_after.as_secs()))]
    TooMany { url: String, retry_after: Duration },
    #[error("{url} answers {status}{}", said(text))]
    #[diagnostic(help("correct the values that the answer names"))]
    Refused { url: String, status: u16, text: String },
    #[error("{url} answers {status}{}", said(text))]
    #[diagnostic(help("{}", CHECK_SERVER))]
    Failing { url: String, status: u16, text: String, retry_after: Option<Duration> },
    #[error("{url} answers with something that is not FuzzManager's")]
    #[diagnostic(help(
        "set serverhost, serverport and serverproto to FuzzManager's, not to a proxy's"
    ))]
    NotTheServer { url: String },
    #[error("{url} has no signatures yet")]
    #[diagnostic(help("on the server: manage.py export_signatures signatures.zip, once an hour"))]
    NoSignatures { url: String },
    #[error("{url} is damaged: {reason}")]
    #[diagnostic(help(
        "try again; if it fails again: manage.py export_signatures signatures.zip there"
    ))]
    Archive { url: String, reason: String },
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl CollectorError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOSPC | Errno::EDQUOT) => Self::Full { path },
            _ => Self::Write { path, source },
        }
    }

    /// True if the same request may succeed later.
    #[must_use]
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Slow { .. }
                | Self::BrokenOff { .. }
                | Self::TooMany { .. }
                | Self::Failing { .. }
        )
    }

    /// True if the server, or one behind a proxy, may still be processing the request.
    #[must_use]
    pub(crate) fn leaves_request_open(&self) -> bool {
        matches!(
            self,
            Self::Slow { .. } | Self::BrokenOff { .. } | Self::Failing { status: 504, .. }
        )
    }

    /// True if the server has the request and exceeded the timeout.
    #[must_use]
    pub(crate) fn is_overdue(&self) -> bool {
        matches!(self, Self::Slow { .. } | Self::Failing { status: 504, .. })
    }

    /// Pause requested by the server.
    #[must_use]
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooMany { retry_after, .. } => Some(*retry_after),
            Self::Failing { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

fn missing(key: &str) -> String {
    match key {
        "product" | "platform" | "os" => {
            format!("write {key} = … under [Main] of BINARY.fuzzmanagerconf, or give --{key}")
        }
        "repository" => {
            "give --repository: manage.py setup_repository made it at the server".into()
        }
        "revision" => "give --revision, the commit that was built".into(),
        "serverauthtoken" => {
            "write serverauthtoken or serverauthtokenfile under [Main] of ~/.fuzzmanagerconf".into()
        }
        _ => format!("write {key} = … under [Main] of ~/.fuzzmanagerconf, or give --{key}"),
    }
}
