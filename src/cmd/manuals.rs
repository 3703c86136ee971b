//! Manual pages and shell completions, generated from the options of each command. Used by `make install`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::exit::Failure;
use super::{
    COMMANDS, addseeds, cargo, cc, ci, cmin, collector, fuzz, jobs, mcp, merge, oss_build, picker,
    plot, report, showdsf, showmap, tmin, tracer, triage, watch, whatsup,
};

/// Option that writes them to a folder in the layout of `share` below a prefix.
pub(super) const WRITE: &str = "--manuals";

type Describe = fn() -> Command;

/// Commands whose options clap parses.
const DESCRIBED: &[(&str, Describe)] = &[
    ("fuzz", fuzz::args::manual),
    ("cargo", cargo::Args::command),
    ("ci", ci::Args::command),
    ("oss-build", oss_build::Args::command),
    ("showdsf", showdsf::Args::command),
    ("whatsup", whatsup::Args::command),
    ("watch", watch::Args::command),
    ("report", report::Args::command),
    ("mcp", mcp::Args::command),
    ("plot", plot::Args::command),
    ("addseeds", addseeds::Args::command),
    ("cmin", cmin::Args::command),
    ("merge", merge::Args::command),
    ("jobs", jobs::Args::command),
    ("tmin", tmin::Args::command),
    ("collector", collector::Args::command),
    ("triage", triage::Args::command),
    ("showmap", showmap::Args::command),
    ("picker", picker::Args::command),
    ("tracer", tracer::Args::command),
];

/// Completion folders and file name patterns of shells.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

pub(super) fn write(share: &Path) -> Result<ExitCode, Failure> {
    let written = write_all(share).map_err(|(path, error)| {
        Failure::new(
            format!("cannot write {}: {error}", path.display()),
            "check the disk and the path",
        )
    });
    written.map(|()| ExitCode::SUCCESS)
}

fn write_all(share: &Path) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    let manuals = share.join("man/man1");
    fs::create_dir_all(&manuals).map_err(at(&manuals))?;
    for (name, _, line) in COMMANDS {
        let program = program(name);
        let command = described(name, line);
        let path = manuals.join(format!("{program}.1"));
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page).map_err(at(&path))?;
        fs::write(&path, page).map_err(at(&path))?;
        if DESCRIBED.iter().all(|(known, _)| known != name) {
            continue;
        }
        for (shell, folder) in SHELLS {
            let folder = share.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
            let written =
                clap_complete::generate_to(shell, &mut command.clone(), &program, &folder);
            written.map_err(at(&folder))?;
        }
    }
    Ok(())
}

fn program(name: &str) -> String {
    match name {
        "fuzz" => "ffuzz".into(),
        "cargo" => cargo::NAME.replace(' ', "-"),
        name => format!("ffuzz-{name}"),
    }
}

fn described(name: &str, line: &'static str) -> Command {
    let known = DESCRIBED.iter().find(|(known, _)| *known == name);
    let command = known.map_or_else(
        || Command::new(other_name(name)).about(line).after_help(other_help(name)),
        |(_, options)| options(),
    );
    let overview = format!("Commands (ffuzz NAME --help):\n{}", super::overview());
    let command = if name == "fuzz" { command.after_long_help(overview) } else { command };
    command.bin_name(program(name)).version(env!("CARGO_PKG_VERSION"))
}

/// Program name of a command that parses its own words.
fn other_name(name: &str) -> &'static str {
    match name {
        "cc" => "ffuzz-cc",
        "c++" => "ffuzz-c++",
        "libfuzzer" => "ffuzz-libfuzzer",
        "domains" => "ffuzz-domains",
        _ => "ffuzz",
    }
}

fn other_help(name: &str) -> String {
    match name {
        "cc" | "c++" => cc::help_of(name),
        name => format!("See {} --help.", program(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_and_most_have_completions() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path()).unwrap();
        for (name, _, line) in COMMANDS {
            let page = fs::read_to_string(dir.path().join(format!("man/man1/{}.1", program(name))))
                .unwrap();
            assert!(page.starts_with(".ie") && page.contains(".SH NAME"), "{name}: {page}");
            let words: Vec<&str> = line.split(' ').take(2).collect();
            assert!(page.len() > 300, "{name} {words:?}: {page}");
            let title = program(name).replace('-', "\\-");
            assert!(page.contains(&format!(".SH NAME\n{title} ")), "{name}: {page}");
        }
        let report = fs::read_to_string(dir.path().join("man/man1/ffuzz-report.1")).unwrap();
        assert!(report.contains("\\-\\-markdown"), "{report}");
        let compiler = fs::read_to_string(dir.path().join("man/man1/ffuzz-cc.1")).unwrap();
        assert!(compiler.contains("WAYPOINTS"), "{compiler}");
        let bash = dir.path().join("bash-completion/completions/ffuzz-report.bash");
        assert!(fs::read_to_string(bash).unwrap().contains("--markdown"));
        assert!(dir.path().join("zsh/site-functions/_ffuzz").exists());
        assert!(dir.path().join("fish/vendor_completions.d/ffuzz-showmap.fish").exists());
    }
}
