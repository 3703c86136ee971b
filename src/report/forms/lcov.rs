//! lcov's tracefile, as `geninfo`'s manual describes it.

use std::fmt::Write as _;

use crate::data::Source;

/// Functions, lines and their sums by file. A count is a number of inputs.
#[must_use]
pub fn lcov(source: &Source) -> String {
    let mut text = String::new();
    for file in &source.files {
        let _ = writeln!(text, "TN:\nSF:{}", file.path.escape_debug());
        for function in &file.functions {
            let _ = writeln!(text, "FN:{},{}", function.line, function.symbol.escape_debug());
        }
        for function in &file.functions {
            let _ = writeln!(text, "FNDA:{},{}", function.inputs, function.symbol.escape_debug());
        }
        let totals = &file.totals;
        let _ = writeln!(text, "FNF:{}\nFNH:{}", totals.functions, totals.entered);
        for (line, run) in file.each_line() {
            let _ = writeln!(text, "DA:{line},{}", run.inputs);
        }
        let _ = writeln!(text, "LF:{}\nLH:{}\nend_of_record", totals.lines, totals.reached);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::forms::tests::example;
    use ffuzz_crashes::collector::coverage::SourceCoverage;

    #[test]
    fn lines_and_functions_are_written_and_read_again() {
        let text = lcov(&example());
        assert_eq!(
            text,
            "TN:\nSF:/src/lib/a.c\nFN:1,f\nFN:5,g<int>\nFNDA:5,f\nFNDA:0,g<int>\nFNF:2\nFNH:1\n\
             DA:2,5\nDA:3,4\nDA:5,0\nLF:3\nLH:2\nend_of_record\n\
             TN:\nSF:/src/main.c\nFNF:0\nFNH:0\nDA:9,0\nLF:1\nLH:0\nend_of_record\n"
        );
        let read = SourceCoverage::parse(&text, Path::new("/src")).unwrap();
        assert_eq!(read.files["lib/a.c"], [None, Some(5), Some(4), None, Some(0)]);
        assert_eq!(read.lines(), (2, 4));
    }
}
