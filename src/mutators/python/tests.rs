//! Results of all kinds, and exceptions. Tests that need another process are in `tests/fuzzing/python.rs`.

use std::os::unix::fs::symlink;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::*;

/// Opens a module with this source under a unique name.
fn open(source: &str) -> (PythonMutator, Vec<String>) {
    try_open(source).unwrap()
}

fn try_open(source: &str) -> Result<(PythonMutator, Vec<String>), PythonError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let module = format!("module_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    std::fs::write(environment().join(format!("{module}.py")), source).unwrap();
    PythonMutator::open(&options(&module), 7)
}

fn options(module: &str) -> PythonOptions {
    PythonOptions { module: module.to_owned(), virtual_env: Some(environment().to_owned()) }
}

/// A virtual environment for every Python. It has all module names from the start: the interpreter lists a folder only
/// once.
fn environment() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MOST {
            std::fs::write(dir.path().join(format!("module_{number}.py")), "").unwrap();
        }
        for minor in find::OLDEST..=find::NEWEST {
            let python = dir.path().join(format!("lib/python3.{minor}"));
            std::fs::create_dir_all(&python).unwrap();
            symlink(dir.path(), python.join("site-packages")).unwrap();
        }
        dir
    });
    FOLDER.path()
}

/// More than all tests need.
const MOST: u32 = 100;

fn fuzz(module: &mut PythonMutator, input: &[u8]) -> Result<(Made, Vec<u8>), String> {
    let mut out = Vec::new();
    let mut job = Job { input, other: Some(b"other"), max_len: 100, havoc: &mut |_, _| () };
    let made = module.fuzz(&mut job, &mut out).map_err(|failure| failure.0)?;
    Ok((made, out))
}

/// The result of a module whose `fuzz` returns `expression`.
fn returns(expression: &str) -> Result<(Made, Vec<u8>), String> {
    let source = format!("import array\ndef fuzz(buf, add_buf, max_size): return {expression}");
    fuzz(&mut open(&source).0, b"input")
}

#[test]
fn whatever_holds_bytes_is_a_result() {
    for expression in [
        "buf",
        "bytes(buf)",
        "memoryview(buf)",
        "memoryview(b'abiabnabpabuabt')[2::3]",
        "array.array('b', b'input')",
        "add_buf and buf",
    ] {
        assert_eq!(returns(expression), Ok((Made::Input, b"input".into())), "{expression}");
    }
    let words = returns("array.array('I', [1, 2])");
    assert_eq!(words, Ok((Made::Input, vec![1, 0, 0, 0, 2, 0, 0, 0])));
    let long = returns("bytes(range(256)) * 100").unwrap();
    assert_eq!((long.0, long.1.len()), (Made::Input, 25600));
    let given = returns("b'%d %s' % (max_size, add_buf)").unwrap();
    assert_eq!(given.1, b"100 other");
}

#[test]
fn nothing_is_no_input() {
    for expression in ["None", "b''", "bytearray()", "memoryview(b'')"] {
        assert_eq!(returns(expression), Ok((Made::Nothing, vec![])), "{expression}");
    }
}

#[test]
fn what_holds_no_bytes_is_a_failure_that_says_so() {
    for expression in ["'text'", "17", "[1, 2]"] {
        let failure = returns(expression).unwrap_err();
        assert!(failure.contains("TypeError: memoryview: a bytes-like object is required"));
    }
}

#[test]
fn the_arguments_are_those_of_afl() {
    let (mut module, notes) = open(
        "seen = []\n\
         def note(*args): seen.append(','.join(type(a).__name__ for a in args))\n\
         def init(seed): note(seed)\n\
         def fuzz_count(buf): note(buf); return 5\n\
         def fuzz(buf, add_buf, max_size): note(buf, add_buf, max_size); return buf\n\
         def describe(max_len): note(max_len); return b'bytes'\n\
         def post_process(buf): note(buf); return buf\n\
         def init_trim(buf): note(buf); return 3\n\
         def trim(): note(); return bytearray(b't')\n\
         def post_trim(success): note(success); return 4\n\
         def havoc_mutation(buf, max_size): note(buf, max_size); return buf + b'!'\n\
         def havoc_mutation_probability(): note(); return 9\n\
         def queue_get(filename): note(filename); return 1\n\
         def queue_new_entry(new, orig): note(new, orig); return False\n\
         def fuzz_send(buf): note(buf)\n\
         def post_run(): note()\n\
         def introspection(): return ' '.join(seen)\n\
         def deinit(): pass\n\
         splice_optout = True\n",
    );
    assert_eq!(notes, [""; 0]);
    let hooks = [
        Hook::FuzzCount,
        Hook::Fuzz,
        Hook::SpliceOptout,
        Hook::Describe,
        Hook::PostProcess,
        Hook::Trim,
        Hook::Havoc,
        Hook::QueueGet,
        Hook::QueueNewEntry,
        Hook::FuzzSend,
        Hook::PostRun,
        Hook::Introspection,
    ];
    assert_eq!(module.hooks(), hooks.into_iter().collect());
    let (mut out, path) = (Vec::new(), Path::new("/q/id:0"));
    assert_eq!(module.fuzz_count(b"x"), Ok(5));
    assert_eq!(fuzz(&mut module, b"x"), Ok((Made::Input, b"x".into())));
    assert_eq!(module.describe(204), Ok(Some("bytes".into())));
    assert_eq!(module.post_process(b"x", &mut out), Ok(Made::Input));
    assert_eq!(module.init_trim(b"x"), Ok(3));
    assert_eq!(module.trim(&mut out), Ok(Made::Input));
    assert_eq!(module.post_trim(true), Ok(4));
    let mut input = b"x".to_vec();
    assert_eq!(module.havoc_mutation(&mut input, 100), Ok(Made::Input));
    assert_eq!(input, b"x!");
    assert_eq!(module.havoc_probability(), Ok(9));
    assert_eq!(module.queue_get(path), Ok(true));
    assert_eq!(module.queue_new_entry(path, None), Ok(false));
    assert_eq!(module.queue_new_entry(path, Some(path)), Ok(false));
    assert_eq!(module.fuzz_send(b"x"), Ok(()));
    assert_eq!(module.post_run(), Ok(()));
    let seen = module.introspection().unwrap().unwrap();
    assert_eq!(
        seen,
        "int bytearray bytearray,bytearray,int int bytearray bytearray  bool bytearray,int  str \
         str,NoneType str,str bytearray "
    );
}

#[test]
fn a_failed_havoc_leaves_the_input_as_it_was() {
    let source = "def havoc_mutation(buf, max_size):\n  buf[0] = 0\n  return None";
    let mut input = b"x".to_vec();
    assert_eq!(open(source).0.havoc_mutation(&mut input, 100), Ok(Made::Nothing));
    assert_eq!(input, b"x");
}

#[test]
fn a_text_is_a_description_too() {
    let describe = |expression: &str| {
        let (mut module, _) = open(&format!("def describe(max_len): return {expression}"));
        module.describe(9).unwrap()
    };
    assert_eq!(describe("'grün'").as_deref(), Some("grün"));
    assert_eq!(describe("b'\\xff'").as_deref(), Some("\u{fffd}"));
    assert_eq!(describe("None"), None);
}

#[test]
fn an_exception_comes_with_its_traceback_once_per_kind() {
    let (mut module, _) = open(
        "count = 0\n\
         def inner():\n  raise ValueError('number %d' % count)\n\
         def fuzz(buf, add_buf, max_size):\n\
        \x20 global count\n  count += 1\n  if count == 3: return buf\n  inner()\n",
    );
    let first = fuzz(&mut module, b"x").unwrap_err();
    assert!(first.starts_with("ValueError: number 1\nTraceback"), "{first}");
    assert!(first.contains("line 3, in inner"), "{first}");
    assert_eq!(fuzz(&mut module, b"x").unwrap_err(), first, "the same kind");
    assert_eq!(fuzz(&mut module, b"x"), Ok((Made::Input, b"x".into())));
}

#[test]
fn negative_numbers_are_failures() {
    let (mut module, _) = open("def fuzz_count(buf): return -1");
    assert!(module.fuzz_count(b"x").unwrap_err().0.starts_with("OverflowError"));
}

#[test]
fn a_module_without_use_is_refused() {
    let error = PythonMutator::open(&options("no_such_module"), 0).unwrap_err();
    assert!(error.to_string().contains("No module named 'no_such_module'"), "{error}");
    let error = try_open("def init(seed): raise RuntimeError('no licence')").unwrap_err();
    assert!(matches!(error, PythonError::NoHook { .. }), "{error}");
    let error =
        try_open("def fuzz(a, b, c): pass\ndef init(seed): raise RuntimeError('no licence')");
    assert!(error.unwrap_err().to_string().contains("init: RuntimeError: no licence"));
    assert!(try_open("syntax error").unwrap_err().to_string().contains("SyntaxError"));
}

#[test]
fn old_names_work_and_lonely_trim_hooks_do_not() {
    let (module, notes) = open("def mutate(a, b, c): return a\ndef trim(): return b''");
    assert!(module.hooks().has(Hook::Fuzz) && !module.hooks().has(Hook::Trim));
    assert!(notes.len() == 1 && notes[0].contains("post_trim"), "{notes:?}");
}
