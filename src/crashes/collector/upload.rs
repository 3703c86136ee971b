//! The upload of source coverage.

use serde_json::json;

use super::coverage::SourceCoverage;
use super::{Client, CollectorError, Settings};

/// Facts about the measured sources; missing ones are taken from the coverage.
#[derive(Clone, Debug)]
pub struct SourceFacts {
    /// Name of the repository at the server.
    pub repository: Option<String>,
    pub revision: Option<String>,
    pub branch: Option<String>,
    pub description: String,
}

/// Sends coverage to the server.
pub fn upload(
    settings: &Settings,
    facts: &SourceFacts,
    coverage: &SourceCoverage,
) -> Result<(), CollectorError> {
    let server = settings.server()?;
    let revision = facts.revision.as_ref().or(coverage.revision.as_ref());
    let branch = facts.branch.as_ref().or(coverage.branch.as_ref());
    let fields = json!({
        "repository": needed(facts.repository.as_ref(), "repository")?,
        "revision": needed(revision, "revision")?,
        "branch": branch.cloned().unwrap_or_default(),
        "tools": server.tool,
        "client": server.client,
        "description": facts.description,
        "coverage": coverage.tree().to_string(),
    });
    Client::new(server)?.coverage(&fields)
}

fn needed<'a>(given: Option<&'a String>, key: &'static str) -> Result<&'a String, CollectorError> {
    given.ok_or(CollectorError::Missing { key })
}
