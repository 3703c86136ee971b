//! The closing lines of a campaign.

use std::fmt::Write as _;

use super::format::{count, crashes, fit, long_time};
use ffuzz_event::{DomainStatus, Pointer, Snapshot, StopReason, Undelivered, WorkerStatus};

/// Maximum length of a path or command line; text from the target may be longer.
const LONGEST: usize = 4096;

/// AFL's closing lines, which scripts wait for, with the results between them.
#[must_use]
pub fn summary(reason: StopReason, next: &[Pointer], s: &Snapshot) -> String {
    let mut text = String::new();
    match reason {
        StopReason::TimeLimit => text.push_str("[!] Time limit was reached\n"),
        StopReason::ExecLimit => text.push_str("[!] Execution limit was reached\n"),
        StopReason::User | StopReason::Done | StopReason::Failed => {}
    }
    let who = match reason {
        StopReason::User => "by user",
        StopReason::Failed => "by an error",
        _ => "programmatically",
    };
    let _ = writeln!(text, "\n+++ Testing aborted {who} +++");
    let _ = writeln!(text, "  run time   : {}", long_time(s.times.run_time_ms / 1000));
    let _ = writeln!(text, "  executions : {} ({:.2}/sec)", s.runs.execs, s.runs.execs_per_sec);
    let _ = writeln!(
        text,
        "  coverage   : {} of {} edges ({:.2}%)",
        s.coverage.edges_found,
        s.coverage.map_size,
        s.coverage.map_percent()
    );
    let _ = writeln!(
        text,
        "  corpus     : {} inputs, {} of them found, {} cycles done",
        count(s.corpus.corpus_count),
        count(s.corpus.corpus_found),
        s.cycles.cycles_done
    );
    let _ = writeln!(text, "  findings   : {}, {} hangs", crashes(&s.finds), s.finds.saved_hangs);
    if let Some(Undelivered { reports, command }) = &s.finds.undelivered {
        let _ = writeln!(text, "  reports    : {reports} not delivered yet: {command}");
    }
    for worker in &s.workers {
        let _ = writeln!(text, "  worker     : {}", worker_line(worker));
    }
    for (index, domain) in s.domains.iter().enumerate() {
        let _ = writeln!(text, "  domain     : {}", domain_line(index, domain));
    }
    for mutator in &s.mutators {
        let _ = writeln!(
            text,
            "  mutator    : {}: {} calls, {} finds, {:.1}% of the time, {} failures",
            mutator.name,
            count(mutator.calls),
            mutator.finds,
            mutator.time_percent,
            mutator.failures
        );
    }
    for pointer in next {
        let _ = writeln!(text, "  {:<11}: {}", pointer.what, fit(&pointer.text, LONGEST));
    }
    if reason != StopReason::Failed {
        text.push_str("\nWe're done here. Have a nice day!\n\n");
    }
    text
}

fn worker_line(w: &WorkerStatus) -> String {
    let restarts = match w.restarts {
        0 => String::new(),
        1 => ", started again once".to_owned(),
        n => format!(", started again {n} times"),
    };
    format!(
        "{}: {} executions ({:.2}/sec), {} seeds, {} edges, {} crashes{restarts}",
        w.name,
        w.execs,
        w.execs_per_sec,
        count(w.corpus_count),
        w.edges_found,
        w.saved_crashes
    )
}

/// Name of a domain, or its number: targets of the original FuzzFactory send no names.
pub(super) fn domain_name(index: usize, domain: &DomainStatus) -> String {
    if domain.name.is_empty() { format!("#{index}") } else { domain.name.clone() }
}

fn domain_line(index: usize, d: &DomainStatus) -> String {
    let name = domain_name(index, d);
    match d.best {
        Some((key, value)) => {
            let place = match d.best_place.as_str() {
                "" => String::new(),
                place => format!(" ({place})"),
            };
            format!(
                "{name}: best {value} at key 0x{key:06x}{place}; {} keys, {} waypoints",
                d.keys, d.waypoints
            )
        }
        None => format!("{name}: no key has moved"),
    }
}
