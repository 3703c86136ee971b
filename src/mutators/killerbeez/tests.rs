//! Pitfalls of real modules, each in a test module (`tests/mutators/modules.c`).

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// A folder with modules, compiled on demand.
struct Modules(tempfile::TempDir);

impl Modules {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn compile(&self, source: &str, name: &str) -> PathBuf {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mutators");
        let path = self.0.path().join(format!("lib{}_mutator.so", name.to_lowercase()));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler.arg(&path).arg(root.join(source)).arg(format!("-D{name}"));
        assert!(compiler.status().unwrap().success(), "{name}");
        path
    }

    fn wanted(&self, name: &str, options: Option<&CStr>) -> KillerbeezModule {
        let path = self.compile("modules.c", name);
        KillerbeezModule { path, name: name.to_lowercase(), options: options.map(CStr::to_owned) }
    }

    fn open_with(&self, name: &str, options: Option<&CStr>, ratio: f64, seed: u64) -> Killerbeez {
        Killerbeez::open(&self.wanted(name, options), &common(ratio, seed), 1).unwrap()
    }

    fn open(&self, name: &str) -> Killerbeez {
        self.open_with(name, None, 2.0, 1)
    }
}

fn common(ratio: f64, seed: u64) -> KillerbeezOptions {
    KillerbeezOptions { ratio, max_len: 1000, fixed_seed: Some(seed), ..Default::default() }
}

const SEED: SeedId = SeedId(3);
const INPUT: &[u8] = b"input";

/// Runs a stage of at most `count` inputs; also returns the complaint that ended it.
fn stage_on(
    module: &mut Killerbeez,
    seed: SeedId,
    input: &[u8],
    count: usize,
) -> (Vec<String>, Option<String>) {
    let mut made = vec![];
    if let Err(failure) = module.stage_begins(seed, input) {
        return (made, Some(failure.0));
    }
    let mut job = Job { input, other: None, max_len: 1000, havoc: &mut |_, _| () };
    for _ in 0..count {
        let mut out = vec![];
        match module.fuzz(&mut job, &mut out) {
            Ok(Made::Input) => made.push(String::from_utf8(out).unwrap()),
            Ok(_) => break,
            Err(failure) => return (made, Some(failure.0)),
        }
    }
    let failure = module.stage_ends().err();
    (made, failure.map(|failure| failure.0))
}

fn stage(module: &mut Killerbeez, count: usize) -> Vec<String> {
    let (made, failure) = stage_on(module, SEED, INPUT, count);
    assert_eq!(failure, None);
    made
}

#[test]
fn a_stage_goes_on_where_the_last_one_ended_and_stops_for_good() {
    let modules = Modules::new();
    let mut counter = modules.open("COUNTER");
    assert_eq!(stage(&mut counter, 2), ["0nput", "1nput"]);
    assert_eq!(stage(&mut counter, 2), ["2nput", "3nput"]);
    let stored = [counter.states().unwrap().stored()];
    let mut again = modules.open("COUNTER");
    again.states_mut().unwrap().restore(&stored);
    assert_eq!(stage(&mut again, 9), ["4nput"]);
    assert_eq!(stage(&mut again, 9), [""; 0]);
    let stored = [again.states().unwrap().stored()];
    let mut later = modules.open("COUNTER");
    later.states_mut().unwrap().restore(&stored);
    assert_eq!(stage(&mut later, 9), [""; 0]);
    // Another seed gets a new object; an exhausted one is not reused.
    let (made, _) = stage_on(&mut later, SeedId(4), b"other", 9);
    assert_eq!(made.len(), 5);
}

#[test]
fn all_modules_export_the_same_names_and_so_may_this_program() {
    let modules = Modules::new();
    let path = modules.compile("global.c", "GLOBAL");
    let global = ffuzz_abi::killerbeez::export_to_all(&path).unwrap();
    let mut grower = modules.open("GROWER");
    let mut twin = modules.open("TWIN");
    assert_eq!(stage(&mut twin, 1), ["0nput"]);
    assert_eq!(stage(&mut grower, 1), ["gggggggggg"]);
    drop(global);
}

#[test]
fn a_buffer_has_the_ratio_of_upstream_and_never_less_than_the_input() {
    let modules = Modules::new();
    let lengths = [0.5, 1.3, 2.0, 4.0, 1000.0].map(|ratio| {
        let mut grower = modules.open_with("GROWER", None, ratio, 1);
        stage(&mut grower, 1)[0].len()
    });
    assert_eq!(lengths, [5, 6, 10, 20, 1000]);
    // A module that fails if the buffer is smaller than its input.
    let mut counter = modules.open_with("COUNTER", None, 0.5, 1);
    assert_eq!(stage(&mut counter, 1), ["0nput"]);
}

#[test]
fn a_length_beyond_the_buffer_is_cut() {
    let mut liar = Modules::new().open("LIAR");
    assert_eq!(stage(&mut liar, 1), ["llllllllll"]);
}

#[test]
fn a_module_that_writes_behind_its_buffer_is_found_out() {
    let mut overruns = Modules::new().open("OVERRUNS");
    let (made, failure) = stage_on(&mut overruns, SEED, INPUT, 3);
    assert_eq!((made.len(), failure.unwrap().contains("past the end of its buffer")), (0, true));
}

#[test]
fn a_buffer_is_zeroed_before_each_call() {
    let mut dirty = Modules::new().open("DIRTY");
    assert_eq!(stage(&mut dirty, 2), ["d\0\0\0\0\0\0\0\0\0", "\0d\0\0\0\0\0\0\0\0"]);
}

#[test]
fn a_module_without_a_state_starts_over_and_warns_once() {
    let mut stateless = Modules::new().open("STATELESS");
    let (made, failure) = stage_on(&mut stateless, SEED, INPUT, 2);
    assert_eq!(made, ["0nput", "1nput"]);
    assert!(failure.unwrap().contains("cannot save its state"));
    assert_eq!(stage(&mut stateless, 2), ["0nput", "1nput"]);
    assert_eq!(stage(&mut Modules::new().open("SPARSE"), 9).len(), 5);
}

#[test]
fn a_state_is_freed_by_the_module_alone() {
    let mut literal = Modules::new().open("LITERAL");
    assert_eq!(stage(&mut literal, 2).len(), 2);
    assert_eq!(literal.states().unwrap().get(SEED), Some(&Reached::State(c"7".into())));
}

#[test]
fn nothing_after_a_restart_means_exhausted() {
    let mut forgetful = Modules::new().open("FORGETFUL");
    assert_eq!(stage(&mut forgetful, 2).len(), 2);
    assert_eq!(stage(&mut forgetful, 2).len(), 0);
    assert!(matches!(forgetful.states().unwrap().get(SEED), Some(Reached::Exhausted(_))));
}

#[test]
fn randomness_of_libc_is_that_of_the_campaign() {
    let modules = Modules::new();
    let letters = |seed| stage(&mut modules.open_with("RANDOM", None, 2.0, seed), 20);
    let (first, second) = (letters(1), letters(2));
    assert_eq!(letters(1), first);
    assert_ne!(second, first);
}

#[test]
fn options_and_states_are_handed_on_as_they_are() {
    let modules = Modules::new();
    let options = c"{\"ratio\":   2,\"x\":\"\\u00e4\"}";
    let mut echo = modules.open_with("ECHO", Some(options), 100.0, 1);
    assert_eq!(stage(&mut echo, 1), [options.to_str().unwrap()]);
    assert_eq!(stage(&mut modules.open("ECHO"), 1), ["none"]);
    let mut state = modules.open("STATE");
    let text = c"{\"random_state0\": -5, \"s\": \"\\u00e4\"}";
    for _ in 0..3 {
        stage(&mut state, 1);
        assert_eq!(state.states().unwrap().get(SEED), Some(&Reached::State(text.into())));
        let stored = serde_json::to_string(&[state.states().unwrap().stored()]).unwrap();
        state = modules.open("STATE");
        state.states_mut().unwrap().restore(&serde_json::from_str::<Vec<_>>(&stored).unwrap());
    }
}

#[test]
fn parts_are_made_one_by_one() {
    let mut parts = Modules::new().open("PARTS");
    let input = br#"["::MEM::61", "::MEM::6162", "::MEM::616263"]"#;
    let (made, failure) = stage_on(&mut parts, SEED, input, 2);
    assert_eq!(failure, None);
    assert_eq!(
        made,
        [
            r#"["::MEM::41", "::MEM::4141", "::MEM::414141"]"#,
            r#"["::MEM::42", "::MEM::4242", "::MEM::424242"]"#,
        ]
    );
    let (made, _) = stage_on(&mut parts, SEED, input, 9);
    assert_eq!(made.len(), 3, "{made:?}");
    assert!(made[0].starts_with(r#"["::MEM::43","#));
}

/// Messages `a`, empty, `bc` and `def`, the last on another connection.
const LIST: &[u8] = b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc\x03\0\0\x01def";

#[test]
fn a_module_of_one_part_changes_one_message_after_the_other() {
    let modules = Modules::new();
    let mut counter = modules.open("COUNTER").by_message(true);
    counter.check(LIST).unwrap();
    let mut all = Vec::new();
    // Turns of two inputs, with restarts between them.
    for _ in 0..20 {
        let (made, failure) = stage_on(&mut counter, SEED, LIST, 2);
        assert_eq!(failure, None);
        all.extend(made);
        let stored = serde_json::to_string(&[counter.states().unwrap().stored()]).unwrap();
        counter = modules.open("COUNTER").by_message(true);
        counter.states_mut().unwrap().restore(&serde_json::from_str::<Vec<_>>(&stored).unwrap());
    }
    all.sort();
    let with = |number: usize, text: String| {
        let mut out = Vec::new();
        replace(LIST, number, text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    };
    let wanted = [(0, ""), (2, "c"), (3, "ef")];
    let wanted =
        wanted.map(|(number, rest)| (0..5).map(move |c| with(number, format!("{c}{rest}"))));
    let mut wanted: Vec<String> = wanted.into_iter().flatten().collect();
    wanted.sort();
    assert_eq!(all, wanted);
}

#[test]
fn a_module_of_several_parts_changes_all_messages() {
    let list = b"\x01\0\0\0a\x02\0\0\x01bc\x03\0\0\0def";
    let mut parts = Modules::new().open("PARTS").by_message(true);
    let (made, failure) = stage_on(&mut parts, SEED, list, 9);
    assert_eq!((made.len(), failure), (5, None));
    assert_eq!(made[0], "\x01\0\0\0A\x02\0\0\x01AA\x03\0\0\0AAA");
}

#[test]
fn an_error_ends_the_work_on_that_seed() {
    let mut fails = Modules::new().open("FAILS");
    let (made, failure) = stage_on(&mut fails, SEED, INPUT, 9);
    assert_eq!((made.len(), failure.unwrap().contains("reports an error")), (2, true));
    assert_eq!(stage(&mut fails, 9), [""; 0]);
    assert_eq!(stage_on(&mut fails, SeedId(4), INPUT, 9).0.len(), 2);
    let stored = fails.states().unwrap().stored();
    assert_eq!(stored, States::new("fails", None).stored(), "a restart tries again");
}

#[test]
fn what_cannot_be_used_is_named() {
    let modules = Modules::new();
    let mut refuses = modules.open_with("REFUSES", Some(c"{\"a\": 1}"), 2.0, 1);
    let HookError(text) = refuses.check(INPUT).unwrap_err();
    assert!(text.contains("refuses its options {\"a\": 1}"), "{text}");
    let error = |wanted| Killerbeez::open(&wanted, &common(2.0, 1), 1).unwrap_err();
    let incomplete = error(modules.wanted("INCOMPLETE", None));
    assert!(matches!(incomplete, ModuleError::Incomplete { function: "mutate_extended", .. }));
    let mut none = modules.wanted("COUNTER", None);
    none.path = modules.compile("global.c", "NONE");
    assert!(matches!(error(none.clone()), ModuleError::NoInit { .. }));
    none.path = "/no/such".into();
    assert!(matches!(error(none), ModuleError::Load { .. }));
}
