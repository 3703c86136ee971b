//! Checks JSON against a JSON schema (draft 4), as far as the one of SARIF uses it. A keyword that is not
//! known here is an error, so that none is passed over.

use serde_json::Value;

/// What is wrong with `value`: a line each.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root: schema, faults: Vec::new() };
    check.against(schema, value, "$");
    check.faults
}

struct Check<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, at: &str, words: &str, value: &Value) {
        self.faults.push(format!("{at}: {words}: {value}"));
    }

    fn is_good(&self, schema: &Value, value: &Value) -> bool {
        let mut check = Check { root: self.root, faults: Vec::new() };
        check.against(schema, value, "");
        check.faults.is_empty()
    }

    fn against(&mut self, schema: &Value, value: &Value, at: &str) {
        for (keyword, wanted) in schema.as_object().unwrap() {
            let number = |limit: &Value| limit.as_f64().unwrap();
            let good = match keyword.as_str() {
                "$ref" => {
                    let path = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                    let target = self.root.pointer(path).unwrap();
                    self.against(target, value, at);
                    true
                }
                "type" => is_of_type(wanted.as_str().unwrap(), value),
                "enum" => wanted.as_array().unwrap().contains(value),
                "required" => {
                    let mut names = wanted.as_array().unwrap().iter().filter_map(Value::as_str);
                    value.as_object().is_none_or(|all| names.all(|name| all.contains_key(name)))
                }
                "minimum" => value.as_f64().is_none_or(|found| found >= number(wanted)),
                "maximum" => value.as_f64().is_none_or(|found| found <= number(wanted)),
                "minItems" => value
                    .as_array()
                    .is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
                "uniqueItems" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    let twice = |at: usize| items[..at].contains(&items[at]);
                    wanted == false || !(0..items.len()).any(twice)
                }
                "pattern" => {
                    let pattern = fancy_regex::Regex::new(wanted.as_str().unwrap()).unwrap();
                    value.as_str().is_none_or(|text| pattern.is_match(text).unwrap())
                }
                "format" => {
                    value.as_str().is_none_or(|text| is_of_format(wanted.as_str().unwrap(), text))
                }
                "anyOf" | "oneOf" => {
                    let schemas = wanted.as_array().unwrap();
                    let count = schemas.iter().filter(|schema| self.is_good(schema, value)).count();
                    if keyword == "oneOf" { count == 1 } else { count > 0 }
                }
                "properties" => {
                    for (name, schema) in wanted.as_object().unwrap() {
                        if let Some(value) = value.get(name) {
                            self.against(schema, value, &format!("{at}.{name}"));
                        }
                    }
                    true
                }
                "additionalProperties" => self.others(schema, wanted, value, at),
                "items" => {
                    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                        self.against(wanted, value, &format!("{at}[{index}]"));
                    }
                    true
                }
                "$schema" | "id" | "title" | "description" | "default" | "definitions" => true,
                other => panic!("a keyword of JSON schemas that is not known: {other}"),
            };
            if !good {
                self.fault(at, &format!("{keyword} is {wanted}"), value);
            }
        }
    }

    /// Properties that the schema does not name.
    fn others(&mut self, schema: &Value, wanted: &Value, value: &Value, at: &str) -> bool {
        let Some(object) = value.as_object() else { return true };
        let others = object.iter().filter(|(name, _)| schema["properties"].get(name).is_none());
        let others: Vec<_> = others.collect();
        match wanted {
            Value::Bool(allowed) => *allowed || others.is_empty(),
            wanted => {
                for (name, value) in others {
                    self.against(wanted, value, &format!("{at}.{name}"));
                }
                true
            }
        }
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type: {other}"),
    }
}

fn is_of_format(name: &str, text: &str) -> bool {
    let letters = |more: &str| {
        text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
    };
    let is_uri = letters("-._~:/?#[]@!$&'()*+,;=%");
    let scheme = text.split_once(':').filter(|(scheme, _)| !scheme.contains('/'));
    match name {
        "uri" => is_uri && scheme.is_some(),
        "uri-reference" => is_uri,
        "date-time" => letters("-:.TZ+"),
        other => panic!("no format: {other}"),
    }
}
