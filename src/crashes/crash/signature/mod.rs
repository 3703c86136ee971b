//! Signatures: conditions on a crash, written as JSON, that recognise a bug.

mod create;
mod dialect;
mod fit;
mod frames;
mod literals;
mod many;
mod numbers;
mod strings;
mod symptom;

use serde_json::{Value, json};

use super::info::{CrashInfo, Output, ProgramInfo};
pub(in crate::crash) use create::symptoms;
pub use many::{CollectedSignature, Signatures};
use symptom::{CrashTexts, Symptom};

/// Everything a signature may test.
#[derive(Clone, Copy, Debug)]
pub struct CrashFacts<'a> {
    pub info: &'a CrashInfo,
    pub output: &'a Output,
    pub program: &'a ProgramInfo,
    /// The input, if it is text.
    pub testcase: Option<&'a str>,
}

/// Reason why a signature is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SignatureError {
    reason: String,
}

impl SignatureError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Content of a new signature.
#[derive(Clone, Copy, Debug)]
pub struct SignatureOptions {
    pub frames: usize,
    pub force_address: bool,
    pub force_instruction: bool,
}

impl Default for SignatureOptions {
    /// The server's default.
    fn default() -> Self {
        Self { frames: 8, force_address: true, force_instruction: false }
    }
}

/// One signature.
#[derive(Clone, Debug)]
pub struct Signature {
    json: Value,
    /// Symptoms, the cheap ones first.
    symptoms: Vec<Symptom>,
    platforms: Option<Vec<String>>,
    systems: Option<Vec<String>>,
    products: Option<Vec<String>>,
}

impl Signature {
    pub fn parse(json: &str) -> Result<Self, SignatureError> {
        let json = serde_json::from_str(json);
        Self::from_value(json.map_err(|error| SignatureError::new(format!("no JSON: {error}")))?)
    }

    fn from_value(json: Value) -> Result<Self, SignatureError> {
        let object =
            json.as_object().ok_or_else(|| SignatureError::new("a signature is an object"))?;
        let symptoms = symptom::list(object, "symptoms")?.filter(|symptoms| !symptoms.is_empty());
        let symptoms =
            symptoms.ok_or_else(|| SignatureError::new("a signature needs \"symptoms\""))?;
        let symptoms: Result<Vec<Symptom>, SignatureError> =
            symptoms.iter().map(Symptom::parse).collect();
        let mut symptoms = symptoms?;
        symptoms.sort_by_key(Symptom::cost);
        let names = |key: &str| {
            let names = symptom::list(object, key)?;
            let texts = |names: &Vec<Value>| {
                names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
            };
            Ok::<_, SignatureError>(names.map(texts))
        };
        let (platforms, systems) = (names("platforms")?, names("operatingSystems")?);
        let products = names("products")?;
        Ok(Self { symptoms, platforms, systems, products, json })
    }

    /// True if all conditions hold.
    #[must_use]
    pub fn matches(&self, crash: &CrashFacts<'_>) -> bool {
        self.holds(&CrashTexts::new(*crash))
    }

    fn holds(&self, seen: &CrashTexts<'_>) -> bool {
        let program = seen.crash.program;
        let listed = |names: &Option<Vec<String>>, name: &String| {
            names.as_ref().is_none_or(|names| names.contains(name))
        };
        listed(&self.platforms, &program.platform)
            && listed(&self.systems, &program.os)
            && listed(&self.products, &program.product)
            && self.symptoms.iter().all(|symptom| symptom.matches(seen))
    }

    /// Creates a signature. None if the crash has too little information to be recognized again.
    #[must_use]
    pub fn create(info: &CrashInfo, wanted: SignatureOptions) -> Option<Self> {
        Self::of(symptoms(info, wanted)?)
    }

    pub(super) fn of(symptoms: Vec<Value>) -> Option<Self> {
        Self::from_value(json!({"symptoms": symptoms})).ok()
    }

    /// The closest signature that also matches `crash`; None if nothing would be left.
    #[must_use]
    pub fn fitted(&self, crash: &CrashFacts<'_>) -> Option<Self> {
        let symptoms = fit::symptoms(self.json["symptoms"].as_array()?, &CrashTexts::new(*crash));
        let mut fitted = json!({ "symptoms": symptoms });
        for key in ["platforms", "operatingSystems", "products"] {
            if self.json[key].as_array().is_some_and(|names| !names.is_empty()) {
                fitted[key] = self.json[key].clone();
            }
        }
        Self::from_value(fitted).ok()
    }

    /// Indented by two, keys sorted.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!("{:#}", self.json)
    }
}
