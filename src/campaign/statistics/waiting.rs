//! The part of the measured hand-over time that is only waiting for a core.
//!
//! The hand-over is measured in wall time, so on an overloaded machine it would include the waiting for
//! all processes. Its real cost is processor time: that of the fork server, and that of its children
//! beyond their work.

use std::time::{Duration, Instant};

use crate::engine::executor::{ProcessorTime, Spent};
use crate::sys::load;

/// Interval between two measurements: processor time comes in ticks of ten milliseconds.
const PAUSE: Duration = Duration::from_secs(1);
/// Share of a period in which this thread was ready to run but had no core, from which on cores count as
/// short. On an idle machine it is a hundredth of that.
const SHORT: f64 = 0.02;
/// Weight of old samples of the machine's load relative to a new one; AFL's.
const SMOOTHING: f64 = 16.0;

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    spent: Spent,
    processor: ProcessorTime,
    delay: Duration,
}

/// Waiting time of the campaign.
#[derive(Debug, Default)]
pub(super) struct WaitingTime {
    last: Option<Sample>,
    total: Duration,
    load: Option<f64>,
}

impl WaitingTime {
    /// Takes a measurement; call it at each tick.
    pub(super) fn look(&mut self, spent: Spent, processor: impl FnOnce() -> Option<ProcessorTime>) {
        if let Some(now) = load::machine_percent() {
            let before = self.load.unwrap_or(now);
            self.load = Some(before + (now - before) / SMOOTHING);
        }
        if self.last.is_some_and(|last| last.at.elapsed() < PAUSE) {
            return;
        }
        let sample = processor().zip(load::run_delay()).map(|(processor, delay)| Sample {
            at: Instant::now(),
            spent,
            processor,
            delay,
        });
        if let (Some(before), Some(now)) = (&self.last, &sample) {
            self.total += between(before, now);
        }
        self.last = sample;
    }

    pub(super) fn total(&self) -> Duration {
        self.total
    }

    pub(super) fn load_percent(&self) -> Option<f64> {
        self.load
    }
}

fn between(before: &Sample, now: &Sample) -> Duration {
    let hand_over = |sample: &Sample| sample.spent.hand_over.unwrap_or_default();
    let wall = hand_over(now).saturating_sub(hand_over(before));
    let delay = now.delay.saturating_sub(before.delay);
    if delay.as_secs_f64() < SHORT * (now.at - before.at).as_secs_f64() {
        return Duration::ZERO;
    }
    // A restarted fork server has used less time than the one before.
    let since = |field: fn(&ProcessorTime) -> Duration| {
        field(&now.processor).checked_sub(field(&before.processor))
    };
    let (Some(server), Some(children)) = (since(|time| time.server), since(|time| time.children))
    else {
        return Duration::ZERO;
    };
    let work = now.spent.target.saturating_sub(before.spent.target);
    wall.saturating_sub(server + children.saturating_sub(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Instant, ms: [u64; 5]) -> Sample {
        let [target, hand_over, server, children, delay] = ms.map(Duration::from_millis);
        Sample {
            at,
            spent: Spent { target, hand_over: Some(hand_over) },
            processor: ProcessorTime { server, children },
            delay,
        }
    }

    #[test]
    fn what_others_used_is_no_hand_over() {
        let start = Instant::now();
        let before = sample(start, [100, 1000, 50, 100, 7]);
        let waited = |ms| between(&before, &sample(start + Duration::from_secs(10), ms));
        // 9 s of wall time, of which the fork server worked 0.4 s, and children 0.1 s beyond their runs.
        let ms = Duration::from_millis;
        assert_eq!(waited([300, 10_000, 450, 400, 5000]), ms(8500));
        // The core was free, so the wall time is right, whatever took so long.
        assert_eq!(waited([300, 10_000, 450, 400, 107]), Duration::ZERO);
        // More processor time than wall time, because of its ticks.
        assert_eq!(waited([300, 1010, 90, 300, 5000]), Duration::ZERO);
        // Another fork server.
        assert_eq!(waited([300, 10_000, 10, 20, 5000]), Duration::ZERO);
    }
}
