//! What two samples say about each other: median, Mann–Whitney's test, Vargha and Delaney's A12, and
//! the geometric mean of ratios. No files, no clock.

/// The middle one, or the mean of the two in the middle. NaN of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// NaN of nothing.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// How often a value of `left` is larger than one of `right`, ties by half: 0.5 is no difference.
pub(super) fn a12(left: &[f64], right: &[f64]) -> f64 {
    wins(left, right) / (left.len() * right.len()) as f64
}

/// U of `left`.
fn wins(left: &[f64], right: &[f64]) -> f64 {
    let score = |a: f64, b: f64| match a.total_cmp(&b) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    left.iter().flat_map(|&a| right.iter().map(move |&b| score(a, b))).sum()
}

/// Samples up to this size together are tested exactly: 184756 splits at most.
const EXACT: usize = 20;

/// Two-sided p of Mann and Whitney's test: exact for small samples, also with ties, else by the normal
/// approximation with corrections for ties and continuity.
pub(super) fn mann_whitney(left: &[f64], right: &[f64]) -> f64 {
    if left.is_empty() || right.is_empty() {
        return f64::NAN;
    }
    let all: Vec<f64> = left.iter().chain(right).copied().collect();
    let away = (wins(left, right) - (left.len() * right.len()) as f64 / 2.0).abs();
    if all.len() <= EXACT { exact(&all, left.len(), away) } else { normal(&all, left.len(), away) }
}

/// The share of all splits of `all` whose U is at least as far from the middle.
fn exact(all: &[f64], first: usize, away: f64) -> f64 {
    let ranks = ranks(all);
    let (n, m) = (first as f64, (all.len() - first) as f64);
    let middle = n * (n + 1.0) / 2.0 + n * m / 2.0;
    let (mut far, mut splits) = (0u32, 0u32);
    for split in 0..1u32 << all.len() {
        if split.count_ones() as usize == first {
            let chosen = ranks.iter().enumerate().filter(|(i, _)| split >> i & 1 == 1);
            let sum: f64 = chosen.map(|(_, rank)| rank).sum();
            splits += 1;
            far += u32::from((sum - middle).abs() >= away - 1e-9);
        }
    }
    f64::from(far) / f64::from(splits)
}

/// Ties share the mean of their ranks.
fn ranks(all: &[f64]) -> Vec<f64> {
    let below = |value: f64| all.iter().filter(|other| **other < value).count() as f64;
    let same = |value: f64| all.iter().filter(|other| **other == value).count() as f64;
    all.iter().map(|&value| below(value) + f64::midpoint(same(value), 1.0)).collect()
}

fn normal(all: &[f64], first: usize, away: f64) -> f64 {
    let (n, m, total) = (first as f64, (all.len() - first) as f64, all.len() as f64);
    // Each of t equal values adds t² − 1; together they add t³ − t.
    let same = |value: &f64| all.iter().filter(|other| *other == value).count() as f64;
    let ties: f64 = all.iter().map(|value| same(value).powi(2) - 1.0).sum();
    let variance = n * m / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * upper_tail((away - 0.5).max(0.0) / variance.sqrt())).min(1.0)
}

/// Of the standard normal distribution, by Abramowitz and Stegun 26.2.17: wrong by at most 7.5e-8.
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let factors = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = factors.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}
