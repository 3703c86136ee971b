//! Function names in a form common to all compilers and symbolizers, and detection of machinery: functions that only
//! show how a program ended, or what called it.

use super::frames;
use super::lines::{Lazy, found, regex, trim};

/// Prefixes of the names of machinery.
const INTERNAL: &[&str] = &[
    "__",
    "_IO_",
    "_Unwind_",
    "_dl_",
    "_int_",
    "<signal handler called>",
    "asan_thread_start",
    "core::",
    // The heap of `--guard-heap` (`runtime/heap/heap.c`).
    "ffuzz_heap_",
    "alloc::",
    "std::",
    "rust_begin_unwind",
    "rust_eh_personality",
    "rust_oom",
    "rust_panic",
    "_rust_",
    "runtime.",
    "runtime/",
    "fuzzer::",
    "LLVMFuzzerRunDriver",
    "afl::fuzz",
    "libfuzzer_sys::",
    "g_assertion_message",
    "operator delete",
    "operator new",
    "cfunction_call",
    "cfunction_vectorcall",
    "faulthandler_",
    "method_vectorcall",
    "panic_abort::",
    "panic_unwind::",
    "pymain_",
    "_PyEval_",
    "_PyFunction_Vectorcall",
    "_PyObject_Call",
    "_PyObject_MakeTpCall",
    "_PyRun_",
    "_PyVectorcall",
    "_Py_FatalError",
    "PyEval_",
    "PyObject_Call",
    "PyObject_Vectorcall",
    "PyRun_",
    "PyVectorcall",
    "Py_BytesMain",
    "Py_FatalError",
    "Py_RunMain",
];
/// Full names of machinery: a program may have its own `free_all` or `stream`.
const WHOLE: &str = " ?? <missing> <null> _exit _start abort abort_message arena_get2 bcmp bcopy bsearch bzero \
    aligned_alloc asprintf atof atoi atol atoll calloc cfree clone clone3 demangling_terminate_handler exit \
    fgets fprintf fputs fread free fscanf fwrite gets gsignal kill longjmp malloc malloc_consolidate \
    malloc_printerr memalign memccpy memchr memcmp memcpy memmem memmove mempcpy memrchr memset munmap_chunk \
    panic posix_memalign printf pthread_kill puts pvalloc qsort qsort_r raise read realloc reallocarray \
    scanf siglongjmp snprintf sprintf sscanf start_thread stpcpy stpncpy strcasecmp strcasestr strcat strchr \
    strchrnul strcmp strcoll strcpy strcspn strdup strerror strlcat strlcpy strlen strncasecmp strncat \
    strncmp strncpy strndup strnlen strpbrk strrchr strsep strspn strstr strtod strtof strtok strtok_r \
    strtol strtold strtoll strtoul strtoull strxfrm sysmalloc tgkill unlink_chunk valloc vasprintf \
    vfprintf vprintf vsnprintf vsprintf vsscanf wcscat wcscmp wcscpy wcslen wcsncpy wmemcpy wmemset write ";

/// True if a name, as it was read, is machinery.
#[must_use]
pub fn is_machinery(name: &str) -> bool {
    let name = plain(name);
    if let Some((of, _)) = qualified(&name) {
        return is_of_rust_library(of);
    }
    let name = canonical(&name);
    INTERNAL.iter().any(|start| name.starts_with(start))
        || name.contains("+0x")
        || WHOLE.contains(&format!(" {name} "))
}

/// True for `<TYPE as TRAIT>::…` if both belong to Rust's library, with any parameters.
fn is_of_rust_library(of: &str) -> bool {
    let (kind, of_trait) = of.split_once(" as ").unwrap_or((of, ""));
    if of_trait.starts_with("core::ops::function::") {
        return true;
    }
    let paths = [kind, of_trait].map(without_brackets);
    let is_break = |letter: char| !(letter.is_alphanumeric() || "_:".contains(letter));
    let words = paths.iter().flat_map(|path| path.split(is_break));
    let roots = words.filter_map(|path| path.split_once("::")).map(|(root, _)| root);
    let mut roots = roots.filter(|root| !root.is_empty()).peekable();
    // A type without a path can belong to any crate: the trait decides.
    roots.peek().is_some() && roots.all(|root| ["core", "alloc", "std"].contains(&root))
}

/// True for the entry function of a program or thread: its callers do not belong to the bug.
pub(super) fn is_entry(canonical: &str) -> bool {
    let last = canonical.rsplit("::").next().unwrap_or_default();
    ["main", "LLVMFuzzerTestOneInput", "rust_fuzzer_test_input", "main.main"].contains(&last)
        || ["start_thread", "clone", "clone3", "_start", "asan_thread_start"].contains(&canonical)
        || canonical.starts_with("__libc_start_")
}

/// Number of innermost frames called by a panic or an uncaught exception: the bug is not in the program's own hook.
pub(super) fn inside_of_hook(backtrace: &[String]) -> usize {
    const CALLERS: [&str; 5] = [
        "std::panicking::rust_panic_with_hook",
        "std::panicking::panic_with_hook",
        "__cxxabiv1::__terminate",
        "std::__terminate",
        "std::terminate",
    ];
    let is_caller = |name: &String| CALLERS.contains(&canonical(name).as_str());
    let inside = backtrace.iter().position(is_caller).map_or(0, |at| at + 1);
    let is_own = |name: &String| is_named(name) && !is_machinery(name);
    if backtrace[inside..].iter().any(is_own) { inside } else { 0 }
}

/// Function in ffuzz's line about a hang, which is all that identifies a hang.
pub(super) fn hang(line: &str) -> Option<&str> {
    line.strip_prefix("[Non-crash bug] hang in ")
}

/// The part of a name that is stable across builds: no parameters, template arguments, return types, anonymous
/// namespaces, numbers of lambdas and clones, and no suffixes of function parts.
#[must_use]
pub fn canonical(name: &str) -> String {
    let name = plain(name);
    if name.starts_with("<signal handler") {
        return name;
    }
    if let Some((_, method)) = qualified(&name) {
        return format!("{{impl}}::{}", last_word(&without_brackets(method)));
    }
    let name = name.strip_prefix('<').map_or(name.as_str(), |rest| match rest.split_once(">>::") {
        // An inherent method of a generic type.
        Some(_) => rest,
        None => match rest.split_once(">::") {
            Some(_) => rest,
            None => name.as_str(),
        },
    });
    match operator(name) {
        Some(at) => {
            let (before, operator) = name.split_at(at);
            let scope =
                if before.trim().is_empty() { String::new() } else { without_brackets(before) };
            let scope = scope.rsplit(' ').next().unwrap_or_default();
            format!("{scope}{}", operator_name(operator))
        }
        None => last_word(&without_brackets(name)),
    }
}

/// Position of the word `operator`.
fn operator(name: &str) -> Option<usize> {
    const WORD: &str = "operator";
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_word = |at: &usize| {
        !name[..*at].ends_with(is_letter) && !name[at + WORD.len()..].starts_with(is_letter)
    };
    name.match_indices(WORD).map(|(at, _)| at).filter(is_word).last()
}

/// Normalizes equivalent spellings.
fn plain(name: &str) -> String {
    static CLONE: Lazy = Lazy::new(|| {
        regex(concat!(
            r"(?: \[clone [^\]]*\]| \(\.[^)]*\)",
            r"|\.(?:part|isra|constprop|cold|lto_priv|llvm|resume|destroy|cleanup|__uniq|localalias",
            r"|specialized|argprom|lto|avx\w*|sse\w*|default|arch_\w+)(?:\.[0-9]+)*|\.[0-9]+)+$"
        ))
    });
    static HIDDEN: Lazy = Lazy::new(|| {
        regex(concat!(
            r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>|`anonymous namespace'",
            r"|_GLOBAL__N_\w*|\(anonymous\))::|\[abi:\w+\]|\b(?:__cxx11|__1|__ndk1)::|\[[0-9a-f]{16}\]"
        ))
    });
    static LAMBDA: Lazy = Lazy::new(|| {
        regex(concat!(
            r"\{lambda\([^{}]*\)(?:#[0-9]+)?\}|'lambda[0-9]*'(?:\([^()]*\))?|\$_[0-9]+|<lambda\([^<>]*\)>",
            r"|<lambda at [^<>]*>|\{\{closure\}\}|\{closure(?:_env)?#[0-9]+\}|\(anonymous class\)"
        ))
    });
    static CALLED: Lazy = Lazy::new(|| regex(r"\{(\w+)#[0-9]+\}"));
    let name = frames::without_hash(trim(name).to_owned());
    let name = if name.contains('$') { of_legacy_rust(&name) } else { name };
    let mut name = frames::without_hash(name);
    // The path of a module depends on the machine.
    if name.contains("+0x") {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for _ in 0..3 {
        name = CLONE.replace(&name, "").into_owned();
        for word in [" const", " volatile", " noexcept", " &&", " &"] {
            name.truncate(name.strip_suffix(word).map_or(name.len(), str::len));
        }
    }
    let name = HIDDEN.replace_all(&name, "");
    let name = LAMBDA.replace_all(&name, "{lambda}");
    // Debug information numbers implementations, symbols name them; then methods of Go's pointers.
    let name = CALLED.replace_all(&name, "{$1}");
    name.replace("(*", "").replace(").", ".")
}

/// Decodes Rust's legacy mangling in the output of a C++ demangler.
fn of_legacy_rust(name: &str) -> String {
    const LETTERS: [(&str, &str); 14] = [
        ("_$", "$"),
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$RF$", "&"),
        ("$BP$", "*"),
        ("$LP$", "("),
        ("$RP$", ")"),
        ("$C$", ","),
        ("$u20$", " "),
        ("$u7b$", "{"),
        ("$u7d$", "}"),
        ("$u5b$", "["),
        ("$u5d$", "]"),
        ("..", "::"),
    ];
    if !name.contains("$LT$") && !name.contains("$u7b$") {
        return name.to_owned();
    }
    LETTERS.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Splits `<TYPE as TRAIT>::METHOD` into the part in brackets and the method.
fn qualified(name: &str) -> Option<(&str, &str)> {
    if let Some(parts) = name.split_once("{impl}::") {
        return Some(parts);
    }
    let inside = name.strip_prefix('<')?;
    let mut depth = 1;
    let end = inside.char_indices().find_map(|(at, letter)| {
        match letter {
            '<' => depth += 1,
            '>' if !inside[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let method = inside[end + 1..].strip_prefix("::")?;
    inside[..end].contains(" as ").then_some((&inside[..end], method))
}

/// Removes the parts in round and angle brackets; a truncated name may have unbalanced ones.
fn without_brackets(name: &str) -> String {
    let mut depth = 0_usize;
    let mut last = ' ';
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '(' | '<' => depth += 1,
            '>' if last == '-' => {}
            ')' | '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
        last = letter;
    }
    // Python's `<module>` and similar names consist only of brackets.
    if text.is_empty() { name.to_owned() } else { text.replace("::::", "::") }
}

/// Removes the return type of a template function.
fn last_word(name: &str) -> String {
    name.trim().rsplit(' ').next().unwrap_or_default().trim_end_matches("::").to_owned()
}

/// Name of an operator up to its parameters.
fn operator_name(text: &str) -> String {
    static SIGN: Lazy = Lazy::new(|| {
        regex(
            r#"^operator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[-+*/%^&|~!=<>,]+|""\s*\w+| [\w:]+(?:\[\])?)"#,
        )
    });
    let sign = SIGN.find(text).ok().flatten();
    sign.map_or_else(|| "operator".to_owned(), |found| found.as_str().to_owned())
}

/// True if the function's name is known.
pub(super) fn is_named(name: &str) -> bool {
    static NONE: Lazy = Lazy::new(|| regex(r"^(?:\?\?|<missing>|<null>|)$|\+0x[0-9a-f]+"));
    !found(&NONE, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_keep_their_sign() {
        let cases = [
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator()", "A::operator()"),
            ("bool a::operator< <int>(A<int> const&)", "a::operator<"),
            ("a::operator<<(std::ostream&, A const&)", "a::operator<<"),
            ("A<int>::operator->() const", "A::operator->"),
            ("A::operator bool() const", "A::operator bool"),
            ("A::operator[](unsigned long)", "A::operator[]"),
            ("operator new(unsigned long)", "operator new"),
            ("my_operator(int)", "my_operator"),
        ];
        for (name, wanted) in cases {
            assert_eq!(canonical(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_function_is_machinery_by_its_whole_name() {
        let all = [
            "free",
            "__asan_memcpy",
            "unlink_chunk.constprop.0",
            "operator new[](unsigned long)",
            "/a/b+0x1",
            "core::panicking::panic_fmt",
            "std::panicking::begin_panic_handler::{{closure}}",
            "<alloc::vec::Vec<T,A> as core::ops::index::Index<I>>::index",
            "<T as core::convert::Into<U>>::into",
            "<<std::sys::backtrace::BacktraceLock>::print::DisplayBacktrace as core::fmt::Display>::fmt",
            "<alloc::vec::Vec<demo::S>>::push",
            "<alloc::vec::Vec<demo::S> as core::ops::index::Index<usize>>::index",
            "core::slice::iter::{impl#171}::fold<u8, u32, demo::add::{closure_env#0}>",
            "<demo::add::{closure#0} as core::ops::function::FnOnce<(u8,)>>::call_once",
            "__rustc::rust_begin_unwind",
            "__gnu_cxx::__verbose_terminate_handler()",
            "runtime.panicIndex",
            "__libc_start_call_main",
            "ffuzz_heap_report",
        ];
        for name in all {
            assert!(is_machinery(name), "{name}");
        }
        let own = [
            "free_again",
            "stream",
            "mem_pool",
            "printf_all",
            "A::operator==(A const&)",
            "rust_eval",
            "k",
            "<demo::S as core::fmt::Display>::fmt",
            "<alloc::vec::Vec<T> as demo::Ext>::go",
            "<demo::Stack<u8>>::push",
            "demo::{impl#0}::go",
            "main",
        ];
        for name in own {
            assert!(!is_machinery(name), "{name}");
        }
    }
}
