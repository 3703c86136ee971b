//! Literals of which one must occur wherever an expression matches: searching them first makes thousands of expressions
//! cheap.

use fancy_regex::Expr;

/// Maximum number of alternatives worth searching.
const MOST: usize = 16;

/// Literals of which one occurs in every matching text; empty if none are known.
pub(super) fn required(tree: &Expr) -> Vec<String> {
    let found = match tree {
        Expr::Literal { val, casei: false } => vec![val.clone()],
        Expr::Group(inner) => required(inner),
        Expr::AtomicGroup(inner) => required(inner),
        Expr::Repeat { child, lo: 1.., .. } => required(child),
        Expr::Concat(parts) => best(parts),
        Expr::Alt(branches) => {
            let branches: Vec<Vec<String>> = branches.iter().map(required).collect();
            if branches.iter().any(Vec::is_empty) { vec![] } else { branches.concat() }
        }
        _ => vec![],
    };
    if found.len() > MOST { vec![] } else { found }
}

/// Literals of the most selective of the parts, all of which must occur.
fn best(parts: &[Expr]) -> Vec<String> {
    let mut best = vec![];
    let mut run = String::new();
    for part in parts {
        if let Expr::Literal { val, casei: false } = part {
            run.push_str(val);
        } else {
            best = better(best, vec![std::mem::take(&mut run)]);
            best = better(best, required(part));
        }
    }
    better(best, vec![run])
}

fn better(one: Vec<String>, other: Vec<String>) -> Vec<String> {
    let worth = |texts: &Vec<String>| texts.iter().map(String::len).min().unwrap_or(0);
    if worth(&other) > worth(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_those_that_must_occur() {
        let cases: [(&str, &[&str]); 7] = [
            (r"ab+c", &["a"]),
            (r"x[0-9]+: error (?:a|b)", &[": error "]),
            (r"(?:foo|bar)\d", &["foo", "bar"]),
            (r"(?:foo|\d)", &[]),
            (r"(?i)foo", &[]),
            (r"(long)?x", &["x"]),
            (r"(?<!no )match(?=ed)", &["match"]),
        ];
        for (expression, wanted) in cases {
            let tree = Expr::parse_tree(expression).expect("an expression");
            assert_eq!(required(&tree.expr), wanted, "{expression}");
        }
    }
}
