//! The deterministic steps: each small change of a seed, once, in a fixed order.
//!
//! Flips of bits and bytes, arithmetic, interesting values, dictionary tokens. Values that an earlier step has
//! written are skipped. Flips of whole bytes show which bytes matter; later steps skip the others (`set_effective`,
//! `report`).

mod changes;
mod families;

use self::changes::{
    TOKENS_PER_POSITION, arith, at, copy, interesting, overwrite, overwrite_token, token,
};
use self::families::{
    APPENDED, ARITH_VARIANTS, FAMILIES, Family, Kind, PROBE_FIRST, orders, reach,
};
use super::dictionary::Dictionary;
use super::{MAX_INPUT, values};
use crate::origin::Step;

/// In a shorter input, bytes, every byte counts as effective: the map would save too little (AFL).
const MIN_EFFECTOR_LEN: usize = 128;

/// Inputs up to this length are changed at every byte, longer ones at this number of effective bytes at most, evenly
/// spread. A byte costs 170 to 350 runs, and half a percent of the bytes account for four fifths of the finds of this
/// stage (`MendelFuzz`, FSE 2025), so more hardly pays.
pub const WALK_LIMIT: usize = 1024;

/// Maximum number of bytes of a longer input that are flipped to test whether they matter (the budget of
/// `MendelFuzz`'s quick probe).
pub const PROBE_LIMIT: usize = 32 * 1024;

/// The deterministic steps of one seed.
#[derive(Clone, Debug)]
pub struct Deterministic {
    /// Length of the seed in bytes.
    len: usize,
    /// Longest candidate in bytes.
    max_len: usize,
    skip_arith: bool,
    /// Byte at which every family begins; the bytes before it come last.
    first: usize,
    user_tokens: usize,
    auto_tokens: usize,
    /// For each byte: true if later steps change it.
    effective: Vec<bool>,
    effective_count: usize,
    /// Index into the order, then position within the family, then variant at the position.
    stage: usize,
    pos: usize,
    variant: usize,
    /// Byte of the last `flip8`, until it is reported.
    probed: Option<usize>,
    done: u64,
}

impl Deterministic {
    /// Creates the steps of a seed of `len` bytes. Tokens added to the dictionary later are not used.
    #[must_use]
    pub fn new(len: usize, dictionary: &Dictionary, skip_arith: bool) -> Self {
        let stride = if len > WALK_LIMIT { len.div_ceil(PROBE_LIMIT) } else { 1 };
        let effective: Vec<bool> = (0..len).map(|pos| pos % stride == 0).collect();
        Self {
            len,
            max_len: MAX_INPUT,
            skip_arith,
            first: 0,
            user_tokens: dictionary.fixed().map(<[_]>::len).iter().sum(),
            auto_tokens: dictionary.auto.len(),
            effective_count: effective.iter().filter(|&&effective| effective).count(),
            effective,
            stage: 0,
            pos: 0,
            variant: 0,
            probed: None,
            done: 0,
        }
    }

    /// Inserts no token that would make a candidate longer than `max_len` bytes (`-G`).
    #[must_use]
    pub fn limit(mut self, max_len: usize) -> Self {
        self.max_len = max_len;
        self
    }

    /// Begins at byte `first`, where the last find was made. Steps that begin at the front after every find would
    /// repeat all earlier failures.
    #[must_use]
    pub fn starting_at(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// Writes the next candidate to `out` and returns its step; None at the end. `seed` must have the length given to
    /// [`Deterministic::new`].
    pub fn next(
        &mut self,
        seed: &[u8],
        dictionary: &Dictionary,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        assert_eq!(seed.len(), self.len, "the seed changed during its deterministic steps");
        self.probed = None;
        loop {
            let family = self.family()?;
            if self.pos >= self.positions(family.kind) {
                self.next_stage(family.kind);
            } else if self.variant >= self.variants(family.kind)
                || (self.variant == 0 && !self.includes(family.kind))
            {
                self.pos += 1;
                self.variant = 0;
            } else {
                self.variant += 1;
                if let Some(step) = self.write(family, self.variant - 1, seed, dictionary, out) {
                    self.done += 1;
                    self.probed =
                        (family.kind == Kind::Bytes(1)).then_some(self.place(family.kind));
                    return Some(step);
                }
            }
        }
    }

    /// True if the last candidate was a probe whose outcome should be reported.
    #[must_use]
    pub fn wants_report(&self) -> bool {
        self.probed.is_some() && self.len >= MIN_EFFECTOR_LEN
    }

    /// Reports whether the behaviour (edges, domains) of the last candidate differed from the seed's. Only used after
    /// a `flip8`; without a report a byte counts as effective.
    pub fn report(&mut self, changed: bool) {
        if let Some(pos) = self.probed.take()
            && self.len >= MIN_EFFECTOR_LEN
        {
            self.set_effective(pos, changed);
        }
    }

    /// Sets whether later steps change the byte at `pos`.
    pub fn set_effective(&mut self, pos: usize, effective: bool) {
        let before = std::mem::replace(&mut self.effective[pos], effective);
        self.effective_count = self.effective_count + usize::from(effective) - usize::from(before);
    }

    /// Candidates so far, and an upper bound of those still to come.
    #[must_use]
    pub fn planned(&self) -> u64 {
        let left = self.stage..FAMILIES.len();
        let left: u64 = left
            .map(|stage| {
                let kind = self.family_at(stage).kind;
                let passed = if stage == self.stage { self.pos } else { 0 };
                let positions = self.positions(kind).saturating_sub(passed);
                let walked = self.walked_bytes(kind).saturating_mul(reach(kind));
                let tried = if stage == self.stage { self.variant } else { 0 };
                let all = positions.min(walked) as u64 * self.variants(kind) as u64;
                all.saturating_sub(tried as u64)
            })
            .sum();
        self.done + left
    }

    /// Candidates given so far.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Name of the current family, as on AFL's screen.
    #[must_use]
    pub fn stage_name(&self) -> &'static str {
        self.family().map_or("done", |family| family.title)
    }

    fn family(&self) -> Option<&'static Family> {
        (self.stage < FAMILIES.len()).then(|| self.family_at(self.stage))
    }

    fn family_at(&self, stage: usize) -> &'static Family {
        &FAMILIES[if self.is_long() { PROBE_FIRST[stage] } else { stage }]
    }

    fn is_long(&self) -> bool {
        self.len > WALK_LIMIT
    }

    fn next_stage(&mut self, finished: Kind) {
        self.stage += 1;
        self.pos = 0;
        self.variant = 0;
        if finished == Kind::Bytes(1) && self.is_long() {
            self.thin_out();
        }
    }

    /// Keeps [`WALK_LIMIT`] of the effective bytes, evenly spread.
    fn thin_out(&mut self) {
        let count = self.effective_count;
        if count <= WALK_LIMIT {
            return;
        }
        let effective = self.effective.iter_mut().filter(|effective| **effective);
        for (place, effective) in effective.enumerate() {
            *effective = (place + 1) * WALK_LIMIT / count > place * WALK_LIMIT / count;
        }
        self.effective_count = WALK_LIMIT;
    }

    /// Number of effective bytes for this family, as far as known.
    fn walked_bytes(&self, kind: Kind) -> usize {
        if self.is_long() && kind != Kind::Bytes(1) {
            self.effective_count.min(WALK_LIMIT)
        } else {
            self.effective_count.max(usize::from(self.len == 0))
        }
    }

    fn positions(&self, kind: Kind) -> usize {
        match kind {
            Kind::Bits(count) => (8 * self.len + 1).saturating_sub(count),
            Kind::Bytes(width) | Kind::Arith(width) | Kind::Interesting(width) => {
                (self.len + 1).saturating_sub(width)
            }
            Kind::UserOverwrite | Kind::AutoOverwrite => self.len,
            Kind::UserInsert => self.len + 1,
            Kind::Append => 8 * APPENDED.min(self.max_len.saturating_sub(self.len)),
        }
    }

    /// The current position in the seed, in bits or bytes.
    fn place(&self, kind: Kind) -> usize {
        let first = match kind {
            Kind::Append => return self.pos,
            Kind::Bits(_) => 8 * self.first,
            _ => self.first,
        };
        (first + self.pos) % self.positions(kind)
    }

    fn variants(&self, kind: Kind) -> usize {
        match kind {
            Kind::Bits(_) | Kind::Bytes(_) | Kind::Append => 1,
            Kind::Arith(_) if self.skip_arith => 0,
            Kind::Arith(width) => ARITH_VARIANTS * orders(width),
            Kind::Interesting(width) => values::interesting(width).len() * orders(width),
            Kind::UserOverwrite | Kind::UserInsert => self.user_tokens.min(TOKENS_PER_POSITION),
            Kind::AutoOverwrite => self.auto_tokens.min(TOKENS_PER_POSITION),
        }
    }

    /// True if the current position touches an effective byte.
    fn includes(&self, kind: Kind) -> bool {
        let place = self.place(kind);
        let (pos, width) = match kind {
            Kind::Append => return true,
            Kind::Bits(_) => (place / 8, 1),
            Kind::Bytes(width) | Kind::Arith(width) | Kind::Interesting(width) => (place, width),
            Kind::UserOverwrite | Kind::AutoOverwrite => (place, 1),
            Kind::UserInsert => (place.min(self.len.saturating_sub(1)), 1),
        };
        let window = self.effective.iter().skip(pos).take(width);
        self.len == 0 || window.into_iter().any(|&effective| effective)
    }

    /// Writes the candidate; None if another step makes the same one, or if it does not fit.
    fn write(
        &self,
        family: &'static Family,
        variant: usize,
        seed: &[u8],
        dictionary: &Dictionary,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        let pos = self.place(family.kind);
        match family.kind {
            Kind::Bits(count) => {
                copy(seed, out);
                for bit in pos..pos + count {
                    out[bit / 8] ^= 0x80 >> (bit % 8);
                }
                Some(at(family, pos / 8))
            }
            Kind::Append => {
                copy(seed, out);
                out.resize(seed.len() + pos / 8 + 1, 0);
                out[seed.len() + pos / 8] = 0x80 >> (pos % 8);
                Some(at(family, seed.len() + pos / 8))
            }
            Kind::Bytes(width) => {
                copy(seed, out);
                out[pos..pos + width].iter_mut().for_each(|byte| *byte ^= 0xff);
                Some(at(family, pos))
            }
            Kind::Arith(width) => {
                let (delta, window) = arith(variant, &seed[pos..pos + width])?;
                Some(overwrite(family, pos, &window, delta, seed, out))
            }
            Kind::Interesting(width) => {
                let old = &seed[pos..pos + width];
                let (value, window) = interesting(variant, old, self.skip_arith)?;
                Some(overwrite(family, pos, &window, value, seed, out))
            }
            Kind::UserOverwrite => {
                overwrite_token(family, pos, token(dictionary.fixed(), pos, variant)?, seed, out)
            }
            Kind::AutoOverwrite => overwrite_token(
                family,
                pos,
                token([&dictionary.auto, &[]], pos, variant)?,
                seed,
                out,
            ),
            Kind::UserInsert => {
                let token = token(dictionary.fixed(), pos, variant)?;
                if seed.len() + token.len() > self.max_len {
                    return None;
                }
                out.clear();
                out.extend_from_slice(&seed[..pos]);
                out.extend_from_slice(token);
                out.extend_from_slice(&seed[pos..]);
                Some(at(family, pos))
            }
        }
    }
}

#[cfg(test)]
mod tests;
