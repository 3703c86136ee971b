//! A chart over time as SVG.

use std::fmt::Write as _;

use crate::disk::output::plot::Row;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 260.0;
/// Room for the numbers beside and below.
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 24.0;
/// More points than pixels show nothing more.
const MOST_POINTS: usize = 1000;
const STEPS: u32 = 4;

pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) lines: &'static [ChartLine],
}

pub(super) struct ChartLine {
    pub(super) name: &'static str,
    pub(super) column: usize,
    pub(super) color: &'static str,
}

/// Text that may stand between tags.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Chart {
    pub(super) fn draw(&self, rows: &[Row]) -> String {
        let every = rows.len().div_ceil(MOST_POINTS).max(1);
        // The last row is the most important one.
        let shown: Vec<&Row> = rows.iter().rev().step_by(every).rev().collect();
        let (start, end) = (shown[0][0], shown[shown.len() - 1][0]);
        let values = || shown.iter().flat_map(|row| self.lines.iter().map(|line| row[line.column]));
        let top = values().fold(1.0, f64::max);
        let x = |time: f64| LEFT + (time - start) / (end - start).max(1.0) * (WIDTH - LEFT);
        let y = |value: f64| (1.0 - value / top) * (HEIGHT - BOTTOM - 8.0) + 8.0;
        let mut svg = format!(
            "<h2>{}</h2>\n<p>{}</p>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-size=\"11\">\n",
            self.title,
            self.legend(&shown),
        );
        for step in 0..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            let (value, time) = (top * part, start + (end - start) * part);
            let height = y(value);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {height:.1}H{WIDTH}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <text x=\"{:.0}\" y=\"{HEIGHT}\" text-anchor=\"{}\">{}</text>",
                LEFT - 6.0,
                height + 4.0,
                number(value),
                x(time),
                ["start", "middle", "middle", "middle", "end"][step as usize],
                clock(time),
            );
        }
        for line in self.lines {
            let points: String = shown
                .iter()
                .map(|row| format!("{:.1},{:.1} ", x(row[0]), y(row[line.column])))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"{}\" points=\"{}\"/>",
                line.color,
                points.trim_end(),
            );
        }
        svg + "</svg>\n"
    }

    /// Names in their colours, with the last values.
    fn legend(&self, rows: &[&Row]) -> String {
        let last = rows[rows.len() - 1];
        let name = |line: &ChartLine| {
            let value = number(last[line.column]);
            format!("<span style=\"color:{}\">&#9632; {}: {value}</span>", line.color, line.name)
        };
        self.lines.iter().map(name).collect::<Vec<_>>().join(" &nbsp; ")
    }
}

/// Whole numbers, small ones with a digit after the point if they need it.
fn number(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Hours and minutes of seconds.
fn clock(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor();
    let hours = (minutes / 60.0).floor();
    format!("{hours}:{:02}:{:02}", minutes - hours * 60.0, seconds.floor() - minutes * 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reaches_from_edge_to_edge() {
        let chart =
            Chart { title: "T", lines: &[ChartLine { name: "n", column: 3, color: "#000" }] };
        let row = |time: f64, value: f64| {
            let mut row = Row::default();
            (row[0], row[3]) = (time, value);
            row
        };
        let svg = chart.draw(&[row(5.0, 0.0), row(65.0, 4.0), row(3665.0, 8.0)]);
        assert!(svg.contains("points=\"70.0,236.0 85.2,122.0 1000.0,8.0\""), "{svg}");
        assert!(svg.contains(">8</text>") && svg.contains("1:01:05"), "{svg}");
        assert!(svg.contains("n: 8</span>"), "{svg}");
        let many: Vec<Row> = (0..9999).map(|n| row(f64::from(n), 1.0)).collect();
        let points = chart.draw(&many).split("points=").nth(1).unwrap().matches(',').count();
        assert!((900..=MOST_POINTS).contains(&points), "{points}");
        // Nothing moved, in no time.
        assert!(!chart.draw(&[row(1.0, 0.0), row(1.0, 0.0)]).contains("NaN"));
    }
}
