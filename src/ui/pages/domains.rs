//! The domains of the target: their best values and the inputs that reached them.

use ratatui::style::Style;
use ratatui::text::Line;
use serde::Deserialize;
use serde_json::json;

use super::overview::place;
use super::{DIM, List, NEW, TextPart, answer, fact};
use crate::format::{count, fit, fit_end, short_time};
use crate::screen::facts::{Facts, domain_names};
use ffuzz_event::DomainStatus;

/// Maximum number of keys listed.
const MOST_KEYS: u64 = 100;
/// Seconds for which a moved domain is marked.
const RECENT_S: u64 = 10;

pub(super) struct Domains<'a>(pub(super) &'a Facts);

/// A domain of the answer to `domains`.
#[derive(Deserialize)]
struct DomainValues {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Value {
    key: u32,
    value: u32,
    place: String,
    input: Option<String>,
}

impl Domains<'_> {
    fn name(&self, index: usize) -> String {
        domain_names(&self.0.snapshot).nth(index).unwrap_or_default()
    }

    /// Lists the most remarkable keys of a domain.
    fn keys(&self, index: usize, width: usize) -> Vec<Line<'static>> {
        let question = json!({"cmd": "domains", "name": self.name(index), "limit": MOST_KEYS});
        let answer = match answer(self.0, question) {
            Ok(answer) => answer,
            Err(why) => return vec![Line::raw(format!(" {why}"))],
        };
        let values = answer["entries"].get(0).and_then(|one| DomainValues::deserialize(one).ok());
        let keys = values.into_iter().flat_map(|values| values.keys);
        let mut lines = vec![Line::styled("      value  input      place", DIM)];
        lines.extend(keys.map(|it| {
            let place = place(it.key, &it.place);
            let input = it.input.unwrap_or_default();
            let input = input.split(',').next().unwrap_or_default().to_owned();
            let room = width.saturating_sub(24);
            Line::raw(format!(" {:>10}  {input:<9}  {}", it.value, fit_end(&place, room)))
        }));
        lines
    }
}

impl List for Domains<'_> {
    fn header(&self) -> String {
        " domain        keys  waypoints        best    moved  at".into()
    }

    fn len(&self) -> usize {
        self.0.snapshot.domains.len()
    }

    fn row(&self, index: usize, width: usize) -> Line<'static> {
        let DomainStatus { keys, best, best_place, last, waypoints, .. } =
            &self.0.snapshot.domains[index];
        let ago = last.map(|(_, _, at)| self.0.snapshot.times.now.saturating_sub(at));
        let value = best.map_or_else(|| "-".to_owned(), |(_, value)| value.to_string());
        let moved = ago.map_or_else(|| "-".to_owned(), short_time);
        let at = best.map_or_else(String::new, |(key, _)| place(key, best_place));
        let row = format!(
            " {:<12} {:>5} {:>10} {value:>11} {moved:>8}  ",
            fit(&self.name(index), 12),
            count((*keys).into()),
            count(*waypoints),
        );
        let room = width.saturating_sub(row.chars().count());
        let is_new = ago.is_some_and(|ago| ago < RECENT_S);
        Line::styled(row + &fit_end(&at, room), if is_new { NEW } else { Style::new() })
    }

    fn text(&self, index: usize, part: TextPart) -> Vec<Line<'static>> {
        let Some(domain) = self.0.snapshot.domains.get(index) else { return Vec::new() };
        let mut lines = vec![
            fact("domain", &self.name(index), part.width),
            fact("reducer", &domain.reducer, part.width),
            fact("keys", &format!("{} have a value, of {}", domain.keys, domain.size), part.width),
        ];
        if let Some((key, value)) = domain.best {
            let text = format!("{value} at {}", place(key, &domain.best_place));
            lines.push(fact("best", &text, part.width));
        }
        if let Some((key, value, _)) = domain.last {
            let text = format!("{value} at {}", place(key, &domain.last_place));
            lines.push(fact("moved last", &text, part.width));
        }
        lines.push(Line::default());
        match part.is_open {
            true => lines.extend(self.keys(index, part.width)),
            false => lines
                .push(Line::styled(" Enter: its best keys, and the inputs that have them", DIM)),
        }
        part.of(lines)
    }

    fn empty(&self) -> String {
        "The target reports no domain: build it with WAYPOINTS=… ffuzz-cc, see docs/domains.md."
            .into()
    }
}
