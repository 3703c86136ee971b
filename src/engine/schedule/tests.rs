//! Tests of favoured set, energy and choice.

use std::collections::HashSet;

use proptest::prelude::*;
use rand_core::SeedableRng as _;

use super::*;
use crate::domain::Reducer;
use crate::mutate::Rng;

/// A corpus and its scheduler, and what they were given.
struct Bench {
    corpus: Corpus,
    scheduler: Scheduler,
    rng: Rng,
    traces: Vec<Vec<u32>>,
}

/// Keys 0 to 15 and 16 to 31.
fn domains() -> [Domain; 2] {
    [0, 16].map(|start| Domain {
        name: String::new(),
        start,
        size: 16,
        reducer: Reducer::Max,
        initial: 0,
    })
}

impl Bench {
    fn new(options: ScheduleOptions) -> Self {
        let scheduler = Scheduler::new(options, 64, &domains());
        Self { corpus: Corpus::default(), scheduler, rng: Rng::seed_from_u64(1), traces: vec![] }
    }

    fn guided() -> Self {
        Self::new(ScheduleOptions { guided: true, ..ScheduleOptions::default() })
    }

    /// Creates a rig with domains of this name.
    fn guided_by(name: &str) -> Self {
        let mut bench = Self::guided();
        let domains = domains().map(|domain| Domain { name: name.into(), ..domain });
        bench.scheduler = Scheduler::new(bench.scheduler.options, 64, &domains);
        bench
    }

    fn add(&mut self, len: usize, trace: &[u32]) -> SeedId {
        let id = self.corpus.next_id();
        self.corpus.add(Seed {
            id,
            data: vec![0; len].into(),
            exec_us: 100,
            quickest_us: 100,
            edges: trace.len() as u32,
            trace: trace.into(),
            ..Seed::default()
        });
        self.traces.push(trace.to_vec());
        self.scheduler.added(&mut self.corpus, id);
        id
    }

    /// Adds this number of seeds, each with its own edge.
    fn add_many(&mut self, count: u32) {
        for edge in 0..count {
            self.add(10, &[edge]);
        }
    }

    /// One turn without a find.
    fn turn(&mut self) -> Option<SeedId> {
        self.scheduler.cull(&mut self.corpus);
        let id = self.scheduler.pick(&self.corpus, &mut self.rng)?;
        self.scheduler.picked(&mut self.corpus, id, 100.0);
        Some(id)
    }

    fn favored(&mut self) -> Vec<u32> {
        self.scheduler.cull(&mut self.corpus);
        self.corpus.iter().filter(|seed| seed.favored).map(|seed| seed.id.0).collect()
    }
}

#[test]
fn each_other_turn_is_one_of_preferred_seeds_in_their_order() {
    let mut bench = Bench::new(ScheduleOptions::default());
    bench.add_many(4);
    bench.corpus[SeedId(2)].disabled = true;
    bench.scheduler.prefer(vec![SeedId(3), SeedId(2), SeedId(1)]);
    let picked: Vec<u32> = (0..8).filter_map(|_| Some(bench.turn()?.0)).collect();
    let theirs: Vec<u32> = picked.iter().copied().step_by(2).collect();
    assert_eq!(theirs, [3, 1, 3, 1], "{picked:?}");
    bench.scheduler.prefer(Vec::new());
    let picked: HashSet<u32> = (0..100).filter_map(|_| Some(bench.turn()?.0)).collect();
    assert!(picked.contains(&0), "{picked:?}");
}

#[test]
fn the_cheaper_seed_wins_an_edge_and_the_loser_gives_up_its_trace() {
    let mut bench = Bench::new(ScheduleOptions::default());
    let large = bench.add(100, &[1, 2]);
    let small = bench.add(10, &[1, 2]);
    let useless = bench.add(50, &[2]);
    assert!(bench.corpus[large].trace.is_empty());
    assert!(bench.corpus[useless].trace.is_empty());
    assert_eq!(&*bench.corpus[small].trace, &[1, 2]);
    assert_eq!(bench.favored(), [1]);
}

#[test]
fn a_trace_beyond_the_map_makes_the_map_grow() {
    let mut bench = Bench::new(ScheduleOptions::default());
    bench.add(10, &[5000]);
    assert_eq!(bench.favored(), [0]);
}

#[test]
fn a_key_has_one_owner_and_a_bit_has_one_of_its_own() {
    let mut bench = Bench::guided();
    let [a, b, c] = [bench.add(1, &[]), bench.add(1, &[]), bench.add(1, &[])];
    bench.scheduler.owns(&bench.corpus, a, 7, 0);
    bench.scheduler.owns(&bench.corpus, b, 7, 0);
    assert!(!bench.scheduler.is_owner(a) && bench.scheduler.is_owner(b));
    bench.scheduler.owns(&bench.corpus, a, 8, 0b0110);
    bench.scheduler.owns(&bench.corpus, c, 8, 0b0100);
    assert!(bench.scheduler.is_owner(a) && bench.scheduler.is_owner(c));
    bench.scheduler.owns(&bench.corpus, c, 8, 0b0010);
    assert!(!bench.scheduler.is_owner(a));
}

#[test]
fn owners_are_favoured_beside_the_edge_cover_and_only_when_guided() {
    for guided in [false, true] {
        let mut bench = Bench::new(ScheduleOptions { guided, ..ScheduleOptions::default() });
        bench.add(10, &[1, 2]);
        let owner = bench.add(100, &[1]);
        bench.add(5, &[3]);
        bench.scheduler.owns(&bench.corpus, owner, 0, 0);
        assert_eq!(bench.favored(), if guided { vec![0, 1, 2] } else { vec![0, 2] });
    }
}

#[test]
fn an_owner_does_not_replace_a_cheaper_seed_with_its_edges() {
    let mut bench = Bench::guided();
    bench.add(10, &[1, 2]);
    let owner = bench.add(100, &[1, 2, 3]);
    bench.scheduler.owns(&bench.corpus, owner, 0, 0);
    assert_eq!(bench.favored(), [0, 1]);
}

#[test]
fn only_a_domain_that_may_look_for_slow_inputs_pays_for_a_slow_owner() {
    for (name, pays) in [("mine", true), ("cmp", false)] {
        let mut bench = Bench::guided_by(name);
        bench.add_many(19);
        let owner = bench.corpus.next_id();
        bench.corpus.add(Seed { id: owner, exec_us: 100_000, ..Seed::default() });
        bench.scheduler.added(&mut bench.corpus, owner);
        bench.scheduler.owns(&bench.corpus, owner, 0, 0);
        while bench.turn() != Some(owner) || !bench.scheduler.climbs(owner) {}
        let energy = bench.scheduler.energy(&bench.corpus, owner);
        assert_eq!(energy >= 20, pays, "{name}: {energy}");
    }
}

/// In a domain that leads to edges the quickest owner comes first, in others the newest.
#[test]
fn a_slow_owner_comes_first_only_if_its_value_is_what_counts() {
    for (name, newest_first) in [("mine", true), ("cmp", false)] {
        let mut bench = Bench::guided_by(name);
        let owners = [100, 130, 10_000].map(|exec_us| {
            let id = bench.corpus.next_id();
            bench.corpus.add(Seed { id, exec_us, ..Seed::default() });
            bench.scheduler.added(&mut bench.corpus, id);
            bench.scheduler.owns(&bench.corpus, id, id.0, 0);
            id
        });
        let mut order = Vec::new();
        while order.len() < owners.len() {
            let id = bench.turn().unwrap();
            if bench.scheduler.climbs(id) {
                order.push(id);
            }
        }
        let [quick, newer, slow] = owners;
        let expected = if newest_first { [slow, newer, quick] } else { [quick, newer, slow] };
        assert_eq!(order, expected, "{name}");
    }
}

#[test]
fn of_several_owners_of_a_key_the_one_with_most_keys_is_enough() {
    let mut bench = Bench::guided();
    let [a, b, c] = [bench.add(9, &[]), bench.add(9, &[]), bench.add(1, &[])];
    bench.scheduler.owns(&bench.corpus, a, 1, 0b1);
    bench.scheduler.owns(&bench.corpus, b, 1, 0b10);
    bench.scheduler.owns(&bench.corpus, b, 2, 0b1);
    bench.scheduler.owns(&bench.corpus, c, 2, 0b10);
    assert_eq!(bench.favored(), [1]);
    assert!(bench.scheduler.is_owner(a) && bench.scheduler.is_owner(c));
}

#[test]
fn pending_favourites_are_taken_from_both_ends_and_each_once() {
    let mut bench = Bench::new(ScheduleOptions { fixed_seed: true, ..ScheduleOptions::default() });
    bench.add_many(100);
    let (mut oldest, mut newest) = (0, 100);
    // One turn in a hundred goes to the lottery.
    for _ in 0..90 {
        match bench.turn().unwrap().0 {
            id if id == oldest => oldest += 1,
            id if id + 1 == newest => newest -= 1,
            _ => {}
        }
    }
    assert!(oldest > 25 && 100 - newest > 25, "{oldest} {newest}");
    while bench.corpus.iter().any(Seed::is_pending) {
        bench.turn().unwrap();
    }
}

#[test]
fn what_lies_ahead_of_a_pending_favourite_decides_when_it_is_taken() {
    let mut bench = Bench::new(ScheduleOptions { fixed_seed: true, ..ScheduleOptions::default() });
    bench.add_many(60);
    // The more the nearer to the middle, and nothing at the ends.
    bench.scheduler.cull(&mut bench.corpus);
    let ahead =
        |id: u32| if (10..50).contains(&id) { 30.0 - (id as f32 - 30.0).abs() } else { 0.0 };
    bench.scheduler.note_ahead((0..60).map(ahead).collect());
    let first: Vec<u32> = (0..20).map(|_| bench.turn().unwrap().0).collect();
    let middle = first.iter().filter(|id| (20..40).contains(*id)).count();
    assert!((12..20).contains(&middle), "{first:?}");
    while bench.corpus.iter().any(Seed::is_pending) {
        bench.turn().unwrap();
    }
}

/// Numbers of 1000 turns that these seeds get; the third is for all others.
fn shares(bench: &mut Bench, seeds: [SeedId; 2]) -> [u32; 3] {
    let mut shares = [0; 3];
    for _ in 0..1000 {
        let id = bench.turn().unwrap();
        shares[seeds.iter().position(|seed| *seed == id).unwrap_or(2)] += 1;
    }
    shares
}

#[test]
fn edges_and_domains_without_finds_get_equal_shares() {
    let mut bench = Bench::guided();
    bench.add_many(4);
    let owners = [0, 16].map(|key| {
        let owner = bench.add(10, &[]);
        bench.scheduler.owns(&bench.corpus, owner, key, 0);
        owner
    });
    let pending = |bench: &Bench, favored: bool| {
        bench.corpus.iter().filter(|seed| seed.is_pending() && (seed.favored || !favored)).count()
    };
    assert_eq!(pending(&bench, true), 0);
    bench.scheduler.cull(&mut bench.corpus);
    assert_eq!(pending(&bench, true), 6);
    for share in shares(&mut bench, owners) {
        assert!((200..500).contains(&share), "{share}");
    }
    assert_eq!(pending(&bench, false), 0);
}

#[test]
fn the_domain_that_moves_gets_most_turns_and_its_newest_owner_them() {
    let mut bench = Bench::guided();
    bench.add_many(4);
    let still = bench.add(10, &[]);
    bench.scheduler.owns(&bench.corpus, still, 16, 0);
    let mut newest = bench.add(10, &[]);
    bench.scheduler.owns(&bench.corpus, newest, 0, 0);
    let (mut turns, mut on_newest) = (0, 0);
    for _ in 0..1000 {
        bench.scheduler.cull(&mut bench.corpus);
        let picked = bench.scheduler.pick(&bench.corpus, &mut bench.rng).unwrap();
        on_newest += u32::from(picked == newest);
        turns += u32::from(picked == still);
        if picked == newest {
            newest = bench.add(10, &[]);
            bench.scheduler.owns(&bench.corpus, newest, 0, 0);
        }
        bench.scheduler.picked(&mut bench.corpus, picked, 100.0);
    }
    assert!(on_newest > 700 && turns > 30, "{on_newest} {turns}");
}

#[test]
fn of_two_seeds_that_reach_a_value_the_cheaper_one_owns_it() {
    let mut bench = Bench::guided();
    let [long, short, longest] = [bench.add(9, &[]), bench.add(3, &[]), bench.add(20, &[])];
    bench.scheduler.owns(&bench.corpus, long, 1, 0);
    bench.scheduler.reaches(&bench.corpus, longest, 1, 0);
    assert!(bench.scheduler.is_owner(long));
    bench.scheduler.reaches(&bench.corpus, short, 1, 0);
    assert!(bench.scheduler.is_owner(short) && !bench.scheduler.is_owner(long));
    // Nobody owns key 2 because nobody improved it.
    bench.scheduler.reaches(&bench.corpus, long, 2, 0);
    assert!(!bench.scheduler.is_owner(long));
}

#[test]
fn a_waypoint_takes_the_place_of_its_equals_unless_it_is_much_dearer() {
    let mut bench = Bench::guided();
    let [old, new, twice, costly] = [10, 15, 20, 21].map(|len| bench.add(len, &[]));
    bench.scheduler.owns(&bench.corpus, old, 1, 0);
    bench.scheduler.reaches(&bench.corpus, new, 1, 0);
    assert!(bench.scheduler.is_owner(old), "an equal that is not ahead anywhere");
    for id in [new, twice, costly] {
        bench.corpus[id].waypoint = true;
    }
    bench.scheduler.reaches(&bench.corpus, new, 1, 0);
    assert!(bench.scheduler.is_owner(new) && !bench.scheduler.is_owner(old));
    // The reference is the cheapest seed that reached the value, not the current owner.
    bench.scheduler.reaches(&bench.corpus, twice, 1, 0);
    bench.scheduler.reaches(&bench.corpus, costly, 1, 0);
    assert!(bench.scheduler.is_owner(twice));
}

#[test]
fn a_waypoint_that_owns_nothing_any_more_is_retired() {
    let mut bench = Bench::guided();
    bench.add_many(2);
    let old = bench.add(10, &[]);
    bench.corpus[old].waypoint = true;
    bench.scheduler.owns(&bench.corpus, old, 0, 0);
    assert!(shares(&mut bench, [old, old])[0] > 200);
    let new = bench.add(10, &[]);
    bench.scheduler.owns(&bench.corpus, new, 0, 0);
    assert_eq!(shares(&mut bench, [old, old])[0], 0);
}

#[test]
fn a_cycle_has_as_many_picks_as_there_are_seeds() {
    let mut bench = Bench::new(ScheduleOptions::default());
    bench.add_many(20);
    assert!((0..60).all(|_| bench.turn().is_some()));
    assert_eq!(bench.scheduler.cycles(), 2, "the third is not over before the next pick");
    assert!(bench.turn().is_some());
    assert_eq!(bench.scheduler.cycles(), 3);
}

#[test]
fn sequential_mode_keeps_the_order_and_counts_passes() {
    let options = ScheduleOptions { sequential: true, ..ScheduleOptions::default() };
    let mut bench = Bench::new(options);
    bench.add_many(3);
    let order: Vec<_> = (0..7).filter_map(|_| bench.turn()).map(|id| id.0).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(bench.scheduler.cycles(), 2);
}

#[test]
fn seeds_that_are_not_favoured_are_mostly_skipped_but_not_for_ever() {
    let mut bench = Bench::new(ScheduleOptions::default());
    bench.add(1, &[0, 1, 2]);
    for _ in 0..20 {
        bench.add(10, &[0]);
    }
    let picks: Vec<_> = (0..2000).filter_map(|_| bench.turn()).collect();
    let favoured = picks.iter().filter(|id| id.0 == 0).count();
    let others: HashSet<_> = picks.iter().filter(|id| id.0 != 0).collect();
    assert!((500..1500).contains(&favoured), "{favoured}");
    assert_eq!(others.len(), 20);
}

#[test]
fn path_counts_are_kept_only_where_they_are_used() {
    let mut explore = Scheduler::new(ScheduleOptions::default(), 8, &[]);
    assert!(!explore.needs_path_counts());
    explore.count_path(7);
    let schedule = Schedule::Fast;
    let mut bench = Bench::new(ScheduleOptions { schedule, ..ScheduleOptions::default() });
    assert!(bench.scheduler.needs_path_counts());
    let id = bench.add(10, &[1]);
    bench.corpus[id].fuzzed = 1;
    let rare = bench.scheduler.energy(&bench.corpus, id);
    let hash = bench.corpus[id].path_hash;
    (0..1000).for_each(|_| bench.scheduler.count_path(hash));
    assert!(bench.scheduler.energy(&bench.corpus, id) < rare);
}

#[test]
fn without_an_enabled_seed_nothing_is_picked() {
    for sequential in [false, true] {
        let mut bench = Bench::new(ScheduleOptions { sequential, ..ScheduleOptions::default() });
        assert_eq!(bench.turn(), None);
        let id = bench.add(10, &[1]);
        bench.corpus[id].disabled = true;
        assert_eq!(bench.turn(), None);
    }
}

#[derive(Clone, Debug)]
struct Given {
    len: usize,
    trace: Vec<u32>,
    key: Option<(u32, u32)>,
    disabled: bool,
}

fn given() -> impl Strategy<Value = Given> {
    let trace = proptest::collection::btree_set(0u32..100, 0..12);
    let key = proptest::option::of((0u32..10, prop_oneof![Just(0u32), 1u32..16]));
    (1usize..40, trace, key, proptest::bool::weighted(0.2)).prop_map(
        |(len, trace, key, disabled)| Given {
            len,
            trace: trace.into_iter().collect(),
            key,
            disabled,
        },
    )
}

proptest! {
    #[test]
    fn favourites_cover_every_edge_and_every_key(
        seeds in proptest::collection::vec(given(), 1..30),
    ) {
        let mut bench = Bench::guided();
        let mut owners = std::collections::BTreeMap::new();
        for seed in &seeds {
            let id = bench.add(seed.len, &seed.trace);
            if let Some((key, bits)) = seed.key {
                bench.scheduler.owns(&bench.corpus, id, key, bits);
                owners.entry(key).or_insert_with(Vec::new).push(id.0);
            }
            if seed.disabled {
                bench.scheduler.cull(&mut bench.corpus);
            }
        }
        let favored = bench.favored();
        let covered: HashSet<u32> =
            favored.iter().flat_map(|&id| bench.traces[id as usize].clone()).collect();
        for edge in bench.traces.iter().flatten() {
            prop_assert!(covered.contains(edge));
        }
        for holders in owners.values() {
            prop_assert!(holders.iter().any(|id| favored.contains(id)));
        }
    }

    #[test]
    fn a_disabled_seed_is_never_picked(
        seeds in proptest::collection::vec(given(), 1..30),
        schedule in proptest::sample::select(&Schedule::ALL),
        (sequential, guided, late) in any::<(bool, bool, bool)>(),
    ) {
        let options = ScheduleOptions { schedule, sequential, guided, fixed_seed: false };
        let mut bench = Bench::new(options);
        for seed in &seeds {
            let id = bench.corpus.next_id();
            let (data, trace) = (vec![0; seed.len].into(), seed.trace.clone().into());
            let disabled = seed.disabled && !late;
            bench.corpus.add(Seed { id, data, trace, disabled, ..Seed::default() });
            bench.scheduler.added(&mut bench.corpus, id);
            if let Some((key, bits)) = seed.key {
                bench.scheduler.owns(&bench.corpus, id, key, bits);
            }
        }
        bench.scheduler.cull(&mut bench.corpus);
        for (seed, given) in bench.corpus.iter_mut().zip(&seeds) {
            seed.disabled = given.disabled;
        }
        for _ in 0..100 {
            match bench.turn() {
                Some(id) => {
                    prop_assert!(!bench.corpus[id].disabled);
                    prop_assert!(bench.scheduler.energy(&bench.corpus, id) <= 6400);
                }
                None => prop_assert!(seeds.iter().all(|seed| seed.disabled)),
            }
        }
    }
}

/// Number of 1000 turns given to a domain that improves each time while edges bring nothing.
fn turns_of_moving(name: &str) -> u32 {
    let mut bench = Bench::guided();
    let domains = domains().map(|domain| Domain { name: name.into(), ..domain });
    bench.scheduler = Scheduler::new(bench.scheduler.options, 64, &domains[..1]);
    bench.add_many(4);
    let (mut turns, mut newest) = (0, SeedId(u32::MAX));
    for _ in 0..1000 {
        bench.scheduler.cull(&mut bench.corpus);
        let picked = bench.scheduler.pick(&bench.corpus, &mut bench.rng).unwrap();
        let serves = bench.scheduler.climbs(picked);
        turns += u32::from(serves);
        if serves || newest.0 == u32::MAX {
            newest = bench.add(10, &[]);
            bench.scheduler.owns(&bench.corpus, newest, 0, 0);
        }
        bench.scheduler.picked(&mut bench.corpus, picked, 100.0);
    }
    turns
}

#[test]
fn a_domain_that_leads_to_edges_has_to_bring_some() {
    let (own, leading) = (turns_of_moving("mine"), turns_of_moving("cmp"));
    assert!(own > 750 && (350..650).contains(&leading), "{own} {leading}");
}

#[test]
fn an_owner_is_one_in_turns_of_its_domain_only() {
    let mut bench = Bench::guided();
    bench.add_many(4);
    let owner = bench.add(10, &[9]);
    bench.scheduler.owns(&bench.corpus, owner, 0, 0);
    let mut seen = [0; 2];
    for _ in 0..200 {
        if bench.turn() == Some(owner) {
            seen[usize::from(bench.scheduler.climbs(owner))] += 1;
        }
    }
    assert!(seen[0] > 5 && seen[1] > 50, "{seen:?}");
}
