//! Valid files, and every kind of error.

use super::*;

fn read(text: &str) -> Result<Vec<Declaration>, DomainError> {
    parse(Path::new("d.toml"), text)
}

/// The error message for a table that ends with `lines`.
fn refused(lines: &str) -> String {
    let mistake = read(&format!("[[domain]]\n{lines}\n")).unwrap_err();
    assert!(!mistake.remedy.is_empty() && !mistake.remedy.contains('\n'), "{mistake:?}");
    mistake.to_string()
}

const CALLS: &str = "name = \"a\"\nwatch = \"calls\"\nnames = \"f\"\noperation = \"max\"\n";

fn with_calls(line: &str) -> String {
    refused(&format!("{CALLS}{line}"))
}

#[test]
fn all_keys_reach_the_pass_and_the_runtime() {
    let file = "[[domain]]\nname = \"bytes\"\nwatch = \"calls\"\nnames = [\"malloc\", \"x*\"]\n\
        in = [\"parse_*\", \"png*.c\"]\nvalue = \"arg0 * 3 * result\"\nkey = \"arg1\"\noperation = \"add\"\n\
        reducer = \"log-bucket\"\nsize = 16\ninitial = 2\n[[domain]]\nname = \"turns\"\nwatch = \"loops\"\noperation = \"add\"\n";
    let both = read(file).unwrap();
    assert_eq!(
        text(&both),
        "domain bytes\nwatch calls\noperation add\nsize 16\ninitial 2\nkey arg 1\nvalue arg 0\nvalue number 3\nvalue result\n\
         name malloc\nname x*\nfunction parse_*\nfile png*.c\n\
         domain turns\nwatch loops\noperation add\nsize 65536\ninitial 0\nkey site\nvalue number 1\n"
    );
    assert_eq!(
        runtime_source(&both[0]),
        "FFUZZ_NEW_DOMAIN(__afl_bytes_dsf, \"bytes\", 16u, FUZZFACTORY_REDUCER_LOG_BUCKET, 2u)\n"
    );
    assert!(runtime_source(&both[1]).contains("\"turns\", 65536u, FUZZFACTORY_REDUCER_MAX, 0u"));
}

#[test]
fn reducers_that_go_down_start_from_the_top() {
    let file = "[[domain]]\nname = \"a\"\nwatch = \"comparisons\"\nvalue = \"difference\"\noperation = \"set\"\nreducer = \"min\"\n";
    assert_eq!(read(file).unwrap()[0].initial, u32::MAX);
    let explicit = read(&format!("{file}initial = -1\n")).unwrap();
    assert_eq!(explicit[0].initial, u32::MAX);
    assert!(
        refused("name = \"a\"\nwatch = \"blocks\"\noperation = \"add\"\nreducer = \"min\"")
            .contains("d.toml:4: operation: the reducers min")
    );
}

#[test]
fn mistakes_of_form_name_line_and_key() {
    assert!(
        refused("name = \"a\"\nwatch = \"call\"")
            .contains("d.toml:3: watch: unknown variant `call`")
    );
    assert!(with_calls("colour = 3").contains("d.toml:6: unknown field `colour`"));
    assert!(with_calls("size = \"big\"").contains("d.toml:6: size: invalid type: string \"big\""));
    assert!(with_calls("value = [1]").contains("d.toml:6: value: invalid type: sequence"));
    assert!(with_calls("in = [\n \"a\",\n 3]").contains("d.toml:8: in: invalid type"));
    assert!(refused("name = \"a\"\nwatch = \"loops\"").contains("missing field `operation`"));
    assert!(with_calls("size = = 3").contains("d.toml:6: size: "));
    assert!(with_calls("size = 3\nsize = 4").contains("d.toml:7: size: duplicate key"));
    let empty = read("domain = []\n").unwrap_err();
    assert_eq!((empty.line, empty.problem.as_str()), (1, "holds no domain"));
    assert!(read("# nothing\n").unwrap_err().to_string().contains("missing field `domain`"));
}

#[test]
fn mistakes_of_meaning_name_line_and_key() {
    let cases = [
        ("value = \"stored\"", "value: 'stored' means nothing when calls are watched"),
        ("value = \"arg0 + arg1\"", "value: 'arg0 + arg1' is no value"),
        ("value = -1", "value: '-1' is no value"),
        ("key = \"result\"", "key: 'result' is no key"),
        ("size = 4\nkey = 4", "key: 4 is not below the size of the map, 4"),
        ("size = 0", "size: 0 is out of range"),
        ("size = 300000000", "size: 300000000 is out of range"),
        ("initial = 4294967296", "initial: 4294967296 is out of range"),
        ("in = []", "in: is empty"),
        ("in = [\"[a\"]", "in: '[a' is no pattern"),
    ];
    for (line, problem) in cases {
        let said = with_calls(line);
        assert!(said.ends_with(problem) && said.starts_with("d.toml:"), "{said}");
    }
    let blocks = "name = \"a\"\nwatch = \"blocks\"\noperation = \"add\"\n";
    let cases = [
        ("value = \"result\"", "d.toml:5: value: 'result' means nothing when blocks are watched"),
        ("key = \"arg0\"", "d.toml:5: key: 'arg0' means nothing when blocks are watched"),
        ("names = \"f\"", "d.toml:5: names: blocks have no names"),
    ];
    for (line, problem) in cases {
        assert_eq!(refused(&format!("{blocks}{line}")), problem);
    }
    assert_eq!(
        refused("name = \"a\"\nwatch = \"stores\"\noperation = \"max\""),
        "d.toml:3: names: missing"
    );
    assert!(
        refused("name = \"a-b\"\nwatch = \"loops\"\noperation = \"add\"")
            .contains("name: 'a-b' is no name")
    );
}
