//! Conditions on texts: plain text must occur, `/EXPRESSION/` must match.

use std::sync::OnceLock;

use fancy_regex::{Expr, Regex, RegexBuilder};
use serde_json::Value;

use super::{SignatureError, dialect, literals};

/// Backtracking limit, enough for ordinary expressions; a line on which one exceeds it does not match.
const MOST_STEPS: usize = 100_000;
/// Maximum length of an expression, bytes; the longest created ones have a third of it.
const LONGEST: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(super) enum StringPattern {
    Contains(String),
    Expression(Box<Expression>),
}

/// An expression, compiled when a text first contains one of its literals.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    translated: String,
    /// Literals of which one is part of every matching text; empty if none are known.
    literals: Vec<String>,
    compiled: OnceLock<Option<Regex>>,
}

impl StringPattern {
    /// Parses a text, or an object with `value` and `matchType`.
    pub(super) fn parse(value: &Value) -> Result<Self, SignatureError> {
        match value {
            Value::String(text) => Self::of(text),
            Value::Object(object) => {
                let text = object.get("value").and_then(Value::as_str);
                let text = text
                    .ok_or_else(|| SignatureError::new("an object without the text \"value\""))?;
                match object.get("matchType").map(|kind| kind.as_str().map(str::to_lowercase)) {
                    None => Ok(Self::Contains(text.to_owned())),
                    Some(Some(kind)) if kind == "contains" => Ok(Self::Contains(text.to_owned())),
                    Some(Some(kind)) if kind == "pcre" => Self::expression(text),
                    _ => Err(SignatureError::new("\"matchType\" is neither contains nor pcre")),
                }
            }
            other => Err(SignatureError::new(format!("{other} is neither a text nor an object"))),
        }
    }

    pub(super) fn of(text: &str) -> Result<Self, SignatureError> {
        if text.starts_with('/') && text.ends_with('/') {
            Self::expression(text.get(1..text.len() - 1).unwrap_or_default())
        } else {
            Ok(Self::Contains(text.to_owned()))
        }
    }

    fn expression(text: &str) -> Result<Self, SignatureError> {
        if text.len() > LONGEST {
            return Err(SignatureError::new("an expression is longer than 64 KiB: shorten it"));
        }
        let refused =
            |reason: String| SignatureError::new(format!("the expression {text}: {reason}"));
        let translated = dialect::translate(text).map_err(&refused)?;
        let tree =
            Expr::parse_tree(&translated.text).map_err(|error| refused(error.to_string()))?;
        let compiled = OnceLock::new();
        if translated.is_special {
            let regex = compile(&translated.text).map_err(|error| refused(error.to_string()))?;
            compiled.get_or_init(|| Some(regex));
        }
        let literals = literals::required(&tree.expr);
        Ok(Self::Expression(Box::new(Expression {
            translated: translated.text,
            literals,
            compiled,
        })))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Expression(expression) => expression.may_match(text) && expression.matches(text),
        }
    }

    /// Literals of which one occurs in every matching text; empty if none are known.
    pub(super) fn literals(&self) -> &[String] {
        match self {
            Self::Contains(part) => std::slice::from_ref(part),
            Self::Expression(expression) => &expression.literals,
        }
    }

    /// The plain text, for example a wildcard of frames; None for an expression.
    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Self::Contains(part) => Some(part),
            Self::Expression(_) => None,
        }
    }
}

impl Expression {
    fn may_match(&self, text: &str) -> bool {
        self.literals.is_empty() || self.literals.iter().any(|part| text.contains(part.as_str()))
    }

    fn matches(&self, text: &str) -> bool {
        let regex = self.compiled.get_or_init(|| compile(&self.translated).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text).unwrap_or(false))
    }
}

fn compile(translated: &str) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(translated).backtrack_limit(MOST_STEPS).build()
}
