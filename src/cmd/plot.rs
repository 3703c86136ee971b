//! `ffuzz-plot`: the course of a campaign as one page of charts.
//!
//! `afl-plot` calls gnuplot for its pictures; these are drawn here, so that nothing has to be
//! installed and the page is a single file.

mod chart;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use super::exit::Failure;
use super::tool;
use crate::disk::output::{plot, stats};
use crate::sys::file;
use chart::{Chart, ChartLine, escape};

/// Rows come every five seconds: those of years are smaller.
const LARGEST: u64 = 1 << 30;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-plot",
    about = "Draw charts of a campaign",
    after_help = "The folder may be from ffuzz or from afl-fuzz.\n\nExample:\n  \
                  ffuzz-plot out/default charts && xdg-open charts/index.html"
)]
struct Args {
    /// Folder of an instance: OUT/default, or OUT/NAME
    #[arg(value_name = "INSTANCE")]
    instance: PathBuf,
    /// Folder for index.html
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    let source = args.instance.join("plot_data");
    let text = file::read_whole(&source, LARGEST).map_err(|error| {
        let cause = format!("cannot read {}: {error}", source.display());
        Failure::new(cause, "name the folder of an instance, such as out/default")
    })?;
    let rows = plot::parse(&String::from_utf8_lossy(&text));
    if rows.len() < 2 {
        let cause = format!("{} has too few lines for a chart", source.display());
        return Err(Failure::new(cause, "let the fuzzer run longer"));
    }
    let page = page(&args.instance, &rows);
    let file = args.folder.join("index.html");
    fs::create_dir_all(&args.folder).map_err(|error| {
        let cause = format!("cannot write {}: {error}", file.display());
        Failure::new(cause, "name a folder that is writable")
    })?;
    tool::replace(&file, page.as_bytes())?;
    super::print(&format!("{}\n", file.display()))
}

/// Columns of `plot_data`.
const CHARTS: &[Chart] = &[
    Chart {
        title: "Edges",
        lines: &[ChartLine { name: "edges found", column: 12, color: "#0b6e4f" }],
    },
    Chart {
        title: "Corpus",
        lines: &[
            ChartLine { name: "corpus", column: 3, color: "#3b5ba5" },
            ChartLine { name: "pending", column: 4, color: "#e08e0b" },
            ChartLine { name: "pending favored", column: 5, color: "#c0392b" },
            ChartLine { name: "current item", column: 2, color: "#9aa0a6" },
        ],
    },
    Chart {
        title: "Findings",
        lines: &[
            ChartLine { name: "crashes", column: 7, color: "#c0392b" },
            ChartLine { name: "hangs", column: 8, color: "#3b5ba5" },
            ChartLine { name: "levels", column: 9, color: "#9aa0a6" },
        ],
    },
    Chart {
        title: "Executions per second",
        lines: &[ChartLine { name: "execs/sec", column: 10, color: "#0b6e4f" }],
    },
];

fn page(instance: &Path, rows: &[plot::Row]) -> String {
    let stats = stats::read(instance);
    let fact =
        |name: &str, value: &str| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(value));
    let stat = |name: &str| stats.get(name).map_or("", String::as_str);
    let mut facts =
        fact("Banner", stat("afl_banner")) + &fact("Directory", &instance.display().to_string());
    for (name, key) in [
        ("Executions", "execs_done"),
        ("Corpus", "corpus_count"),
        ("Coverage", "bitmap_cvg"),
        ("Crashes", "saved_crashes"),
        ("Hangs", "saved_hangs"),
        ("Command", "command_line"),
    ] {
        facts += &fact(name, stat(key));
    }
    let charts: String = CHARTS.iter().map(|chart| chart.draw(rows)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:14px sans-serif;max-width:1000px;margin:2em auto;color:#222}}\
         th{{text-align:left;padding-right:2em}}svg{{width:100%}}</style></head>\n\
         <body><h1>{title}</h1>\n<table>\n{facts}</table>\n{charts}</body></html>\n",
        title = escape(stat("afl_banner")),
    )
}
