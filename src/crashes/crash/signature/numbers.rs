//! Conditions on numbers: `24`, `"0x18"`, `"< 0x100"`, and `""` for an unknown value.

use serde_json::Value;

use super::SignatureError;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Relation {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Number {
    /// None: the value must be unknown.
    condition: Option<(Relation, i128)>,
}

impl Number {
    pub(super) fn parse(value: &Value) -> Result<Self, SignatureError> {
        let condition = match value {
            Value::Bool(truth) => Some(Some((Relation::Equal, i128::from(*truth)))),
            Value::Number(number) => number.as_i128().map(|number| Some((Relation::Equal, number))),
            Value::String(text) if text.is_empty() => Some(None),
            Value::String(text) => compared(text).map(Some),
            _ => None,
        };
        let condition = condition
            .ok_or_else(|| SignatureError::new(format!("{value} is no condition on a number")))?;
        Ok(Self { condition })
    }

    pub(super) fn matches(self, value: Option<u64>) -> bool {
        match (self.condition, value.map(i128::from)) {
            (None, value) => value.is_none(),
            (_, None) => false,
            (Some((relation, number)), Some(value)) => match relation {
                Relation::Equal => value == number,
                Relation::Less => value < number,
                Relation::LessOrEqual => value <= number,
                Relation::Greater => value > number,
                Relation::GreaterOrEqual => value >= number,
            },
        }
    }
}

fn compared(text: &str) -> Option<(Relation, i128)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (relation, number) = match words[..] {
        [number] | ["==", number] => (Relation::Equal, number),
        ["<", number] => (Relation::Less, number),
        ["<=", number] => (Relation::LessOrEqual, number),
        [">", number] => (Relation::Greater, number),
        [">=", number] => (Relation::GreaterOrEqual, number),
        _ => return None,
    };
    Some((relation, integer(number)?))
}

fn integer(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}
