//! A chart over time: lines as SVG, with labels as text, which stay readable on a small screen.

use std::fmt::Write as _;

use maud::{Markup, html};

/// Size of the drawing in its own units; the page scales it.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 220.0;
/// Approximate number of labels on an axis.
const TICKS: f64 = 5.0;
/// Percentage of the axis from which on a label is aligned at the edge.
const LAST_TICK: f64 = 96.0;
/// Possible intervals between time labels, in seconds.
const STEPS: [u64; 22] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000,
];

pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) lines: Vec<ChartLine<'a>>,
    /// End of the time axis in seconds, unless a line is longer.
    pub(super) end: u64,
    /// Single events: seconds and text.
    pub(super) marks: Vec<(u64, &'a str)>,
}

pub(super) struct ChartLine<'a> {
    pub(super) name: &'a str,
    /// Seconds and value, by time. A value holds until the next point.
    pub(super) points: Vec<(u64, u64)>,
}

/// Scale of the time axis.
#[derive(Clone, Copy)]
enum Time {
    Linear,
    Logarithmic,
}

impl Chart<'_> {
    /// Draws the chart; empty without a duration or a line.
    pub(super) fn draw(&self) -> Markup {
        let end = self.points().map(|(time, _)| time).fold(self.end, u64::max);
        if end == 0 || self.points().next().is_none() {
            return html! {};
        }
        let step = round_step(self.points().map(|(_, value)| value).max().unwrap_or(0) as f64);
        let top = step
            * (self.points().map(|(_, value)| value as f64 / step).fold(0.0, f64::max))
                .ceil()
                .max(1.0);
        let values = (0..=(top / step).round() as u32).rev().map(|tick| f64::from(tick) * step);
        let values: Vec<f64> = values.collect();
        html! {
            figure.chart {
                figcaption {
                    b { (self.title) }
                    @for (number, line) in self.lines.iter().enumerate() {
                        " " span.{ "k" (number % 6) } { "■ " (line.name) }
                        @if let Some((_, last)) = line.points.last() { " " (super::number(*last)) }
                    }
                }
                .plot {
                    .values { @for value in &values { span { (super::number(*value as u64)) } } }
                    (self.lines_over(Time::Linear, end, top, values.len()))
                    (self.lines_over(Time::Logarithmic, end, top, values.len()))
                    (times(Time::Linear, end))
                    (times(Time::Logarithmic, end))
                }
            }
        }
    }

    fn points(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lines.iter().flat_map(|line| line.points.iter().copied())
    }

    fn lines_over(&self, time: Time, end: u64, top: f64, values: usize) -> Markup {
        let size = format!("0 0 {WIDTH} {HEIGHT}");
        html! {
            svg.{ (time.class()) } viewBox=(size) preserveAspectRatio="none" role="img" aria-label=(self.title) {
                @for row in 0..values {
                    @let y = HEIGHT * row as f64 / (values - 1).max(1) as f64;
                    path.grid d=(format!("M0 {y:.1}H{WIDTH}")) {}
                }
                @for (seconds, text) in &self.marks {
                    @let x = time.place(*seconds, end);
                    path.mark d=(format!("M{x:.1} 0V{HEIGHT}")) { title { (text) } }
                }
                @for (number, line) in self.lines.iter().enumerate() {
                    path.{ "k" (number % 6) } d=(steps(&line.points, time, end, top)) {}
                }
            }
        }
    }
}

impl Time {
    fn place(self, seconds: u64, end: u64) -> f64 {
        let part = match self {
            Self::Linear => seconds as f64 / end as f64,
            Self::Logarithmic => (seconds as f64).ln_1p() / (end as f64).ln_1p(),
        };
        part.min(1.0) * WIDTH
    }

    fn class(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logarithmic => "logarithmic",
        }
    }

    /// Times with a label below the axis.
    fn ticks(self, end: u64) -> Vec<u64> {
        match self {
            Self::Linear => {
                let step = STEPS.into_iter().find(|step| end / step <= TICKS as u64);
                let step = step.unwrap_or(end / TICKS as u64).max(1);
                (0..=end / step).map(|tick| tick * step).collect()
            }
            Self::Logarithmic => {
                let all = [0, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000];
                all.into_iter().take_while(|seconds| *seconds <= end).collect()
            }
        }
    }
}

fn times(time: Time, end: u64) -> Markup {
    html! {
        .times.{ (time.class()) } {
            @for seconds in time.ticks(end) {
                @let left = 100.0 * time.place(seconds, end) / WIDTH;
                // The last label would cross the edge.
                @let style = if left > LAST_TICK { "right:0;transform:none".into() } else { format!("left:{left:.2}%") };
                span style=(style) { (short_time(seconds)) }
            }
        }
    }
}

fn short_time(seconds: u64) -> String {
    match seconds {
        0 => "0".into(),
        86_400.. if seconds.is_multiple_of(86_400) => format!("{} d", seconds / 86_400),
        3600.. if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        60.. if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

/// Path of a line as steps, because values change at once.
fn steps(points: &[(u64, u64)], time: Time, end: u64, top: f64) -> String {
    let y = |value: u64| (1.0 - value as f64 / top) * HEIGHT;
    let mut path = String::new();
    for (number, (seconds, value)) in points.iter().enumerate() {
        let (x, y) = (time.place(*seconds, end), y(*value));
        let _ = match number {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    path + &format!("H{WIDTH}")
}

/// Interval between labels: 1, 2 or 5 times a power of ten, so that about five of them reach `most`.
fn round_step(most: f64) -> f64 {
    let rough = (most / TICKS).max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beside_the_axes_are_round() {
        assert_eq!([0.0, 4.0, 7.0, 574.0, 1148.0].map(round_step), [1.0, 1.0, 2.0, 200.0, 500.0]);
        assert_eq!(Time::Linear.ticks(10), [0, 2, 4, 6, 8, 10]);
        assert_eq!(Time::Linear.ticks(86_400), [0, 21_600, 43_200, 64_800, 86_400]);
        assert_eq!(Time::Logarithmic.ticks(700), [0, 1, 10, 60, 600]);
        assert_eq!(
            [0, 59, 60, 90, 7200, 172_800].map(short_time),
            ["0", "59 s", "1 min", "90 s", "2 h", "2 d"]
        );
    }

    #[test]
    fn a_value_moves_in_steps_from_edge_to_edge() {
        let path = steps(&[(0, 0), (5, 10), (10, 5)], Time::Linear, 10, 10.0);
        assert_eq!(path, "M0.0 220.0H500.0V0.0H1000.0V110.0H1000");
        assert_eq!(
            steps(&[(0, 0), (9, 1)], Time::Logarithmic, 99, 1.0),
            "M0.0 220.0H500.0V0.0H1000"
        );
    }

    #[test]
    fn text_is_escaped_and_nothing_is_drawn_of_nothing() {
        let line = |points| ChartLine { name: "<script>", points };
        let chart = |points| Chart {
            title: "T",
            lines: vec![line(points)],
            end: 0,
            marks: vec![(1, "\"><b>")],
        };
        let drawn = chart(vec![(0, 1), (2, 3)]).draw().into_string();
        assert!(
            !drawn.contains("<script>")
                && !drawn.contains("<b></b>")
                && drawn.contains("&lt;b&gt;"),
            "{drawn}"
        );
        assert_eq!(chart(vec![(0, 1)]).draw().into_string(), "");
        assert_eq!(Chart { end: 9, ..chart(vec![]) }.draw().into_string(), "");
    }
}
