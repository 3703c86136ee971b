//! Builds a report from folders and runs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ffuzz_crashes::triage::report::TriagedBug;
use ffuzz_crashes::triage::{self, FOLDER};
use ffuzz_disk::output::instances::InstanceState;
use ffuzz_disk::output::setup::shell_line;
use ffuzz_engine::domain::KeyNames;
use ffuzz_exec::Hooked;
use ffuzz_sys::file;
use ffuzz_sys::remedy::Remedy;

use crate::campaign::{CampaignFolder, Find};
use crate::data::{
    self, Behind, Bug, Comparison, Corpus, Domain, InputPart, Key, Place, Report, Series, Source,
    Stacks, Stage, Stuck, Totals, Warning,
};
use crate::survey::{StuckPlace, Survey, SurveyError};
use crate::texts;

/// Maximum numbers of places, functions, keys of a domain and bugs shown.
const MOST_STUCK: usize = 100;
const MOST_UNENTERED: usize = 500;
const MOST_KEYS: usize = 20;
const MOST_BUGS: usize = 500;
/// Time limit for logging the comparisons of a large queue.
const LOG_TIME: Duration = Duration::from_secs(20);
/// Number of source lines around a place, and of bytes of an input.
const AROUND: u32 = 3;
const MOST_BYTES: usize = 256;
/// The last 1/`LAST` of the runs estimates the chance of a find within the next `RUNS_ASKED` runs.
const LAST: u64 = 10;
const RUNS_ASKED: f64 = 1e6;

/// Report of campaigns with one target, without running their inputs.
#[must_use]
pub fn of_folders(campaigns: &[CampaignFolder], now: SystemTime) -> Report {
    let mut bugs: Vec<Bug> = campaigns.iter().flat_map(bugs).collect();
    let bug_count = bugs.len() as u64;
    bugs.truncate(MOST_BUGS);
    let mut report = Report {
        version: data::VERSION,
        tool: format!("ffuzz {}", env!("CARGO_PKG_VERSION")),
        made: date(now),
        campaigns: campaigns.iter().map(campaign).collect(),
        stages: stages(campaigns),
        corpus: corpus(campaigns),
        bugs,
        ..Report::default()
    };
    let sum = |of: fn(&data::Campaign) -> u64| report.campaigns.iter().map(of).sum::<u64>();
    report.totals = Totals {
        runs: sum(|it| it.runs),
        seconds: sum(|it| it.seconds),
        edges: [
            report.campaigns.iter().map(|it| it.edges).max().unwrap_or(0),
            campaigns.iter().map(|it| it.most("total_edges")).max().unwrap_or(0),
        ],
        bugs: bug_count,
        crashes: sum(|it| it.crashes),
        hangs: sum(|it| it.hangs),
        last_edge: last_edge(campaigns),
        chance: chance(campaigns),
        ..Totals::default()
    };
    for one in campaigns {
        warn_of(one, &mut report.warnings);
    }
    report.verdict = verdict(&report);
    report
}

/// Adds the results of running the queues. `finds` are the survey's inputs, in its order.
pub fn add_survey(
    report: &mut Report,
    survey: &mut Survey,
    target: &mut Hooked,
    campaigns: &[CampaignFolder],
    finds: &[&Find],
) -> Result<(), SurveyError> {
    let logged = survey.log(target, LOG_TIME)?;
    survey.note_attempts(campaigns);
    if target.info().logs_comparisons() && logged < finds.len() {
        let text = format!("the comparisons of {logged} of {} inputs are known", finds.len());
        report.warnings.push(Warning { code: "few-comparisons", text });
    }
    let counters = &survey.counters;
    let hit = counters.iter().filter(|facts| facts.inputs > 0).count() as u64;
    let all = target.info().edges() as u64;
    report.totals.edges = [hit, all.max(hit)];
    report.totals.stuck = survey.frontier.forks().len() as u64;
    let places = survey.stuck(target, MOST_STUCK)?;
    report.stuck = places.iter().map(|one| stuck(one, survey, finds)).collect();
    report.never_entered = survey.never_entered(target.info());
    report.never_entered.truncate(MOST_UNENTERED);
    domains(report, survey, target, campaigns, finds);
    let source = Source::new(&survey.covered(), |_| true);
    for error in survey.skipped() {
        let text = format!("{error} ({})", error.remedy());
        report.warnings.push(Warning { code: "no-lines", text });
    }
    if !source.files.is_empty() {
        use_source(report, source);
    }
    if survey.failed > 0 {
        let text = format!("{} inputs of the queue crash or take too long now", survey.failed);
        report.warnings.push(Warning { code: "failing-inputs", text });
    }
    report.verdict = verdict(report);
    Ok(())
}

/// Uses the source lines of another build of the target.
pub fn use_source(report: &mut Report, source: Source) {
    let data::SourceTotals { lines, reached, functions, entered, .. } = source.totals;
    report.totals.lines = [reached as u64, lines as u64];
    report.totals.functions = [entered as u64, functions as u64];
    report.source = Some(source);
    report.verdict = verdict(report);
}

fn campaign(campaign: &CampaignFolder) -> data::Campaign {
    let course = campaign.course();
    let first = campaign.instances.first();
    let setup = first.and_then(|it| it.setup.as_ref());
    let text = |name: &str| first.map_or(String::new(), |it| it.instance.text(name).to_owned());
    let pair = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        format!("{}={}", name.display(), value.display())
    };
    data::Campaign {
        out: campaign.root.display().to_string(),
        instances: campaign.instances.iter().map(|it| it.instance.name.clone()).collect(),
        is_running: campaign.is_running(),
        fuzzer: text("afl_version"),
        command: setup.map_or_else(|| text("command_line"), |setup| shell_line(&setup.words)),
        target: campaign.command().map_or_else(String::new, |words| shell_line(&words)),
        environment: setup.map_or_else(Vec::new, |it| it.variables.iter().map(pair).collect()),
        runs: campaign.sum("execs_done"),
        seconds: campaign.most("run_time"),
        edges: campaign.most("edges_found"),
        corpus: campaign.sum("corpus_count"),
        crashes: campaign.instances.iter().map(|it| it.crashes.len() as u64).sum(),
        hangs: campaign.instances.iter().map(|it| it.hangs as u64).sum(),
        stability: first.map_or(0.0, |it| it.instance.fraction("stability")),
        series: Series {
            seconds: course.seconds,
            edges: course.edges,
            runs: course.runs,
            corpus: course.corpus,
            speed: course.speed,
            ..Series::default()
        },
    }
}

fn stages(campaigns: &[CampaignFolder]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for (name, finds, runs) in campaigns.iter().flat_map(CampaignFolder::stages) {
        match stages.iter_mut().find(|stage| stage.name == name) {
            Some(stage) => (stage.finds, stage.runs) = (stage.finds + finds, stage.runs + runs),
            None => stages.push(Stage { name, finds, runs }),
        }
    }
    stages
}

fn corpus(campaigns: &[CampaignFolder]) -> Corpus {
    let finds: Vec<&Find> = campaigns.iter().flat_map(CampaignFolder::queue).collect();
    let mut sizes: Vec<u64> = finds.iter().map(|find| find.size).collect();
    sizes.sort_unstable();
    let count = |is_one: fn(&&&Find) -> bool| finds.iter().filter(is_one).count();
    Corpus {
        files: finds.len(),
        bytes: sizes.iter().sum(),
        smallest: sizes.first().copied().unwrap_or(0),
        median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
        largest: sizes.last().copied().unwrap_or(0),
        edges: count(|find| find.name.new_edge),
        waypoints: count(|find| find.name.waypoint),
        imported: count(|find| find.name.peer.is_some()),
    }
}

/// Bugs of a campaign; without triage, each crash.
fn bugs(campaign: &CampaignFolder) -> Vec<Bug> {
    let crashes: Vec<&Find> = campaign.instances.iter().flat_map(|it| &it.crashes).collect();
    let known: HashMap<&str, &Find> =
        crashes.iter().filter_map(|find| Some((find.path.file_name()?.to_str()?, *find))).collect();
    let seen = |names: &mut dyn Iterator<Item = String>| {
        let finds = names.filter_map(|path| known.get(path.rsplit('/').next()?).copied());
        let first = finds.min_by_key(|find| find.name.time)?;
        Some([first.name.time? / 1000, first.name.execs.unwrap_or(0)])
    };
    let Some(triage) = &campaign.triage else {
        let untriaged = crashes.iter().map(|find| Bug {
            id: find.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            title: match find.name.signal {
                Some(signal) if signal > 0 => format!("crash by {}", triage::signal_name(signal)),
                _ => "crash".into(),
            },
            class: "not triaged".into(),
            files: 1,
            seen: find.name.time.map(|time| [time / 1000, find.name.execs.unwrap_or(0)]),
            input: find.path.display().to_string(),
            bytes: part_of(&find.path, &[]),
            ..Bug::default()
        });
        return untriaged.collect();
    };
    let bug = |bug: &TriagedBug| {
        let folder = campaign.root.join(FOLDER).join(&bug.id);
        let minimized = folder.join("minimized");
        let input = match bug.minimized_from.is_some() && minimized.exists() {
            true => minimized,
            false => campaign.root.join(&bug.input),
        };
        let script = folder.join("reproduce.sh");
        Bug {
            id: bug.id.clone(),
            title: bug.title.clone(),
            class: bug.class.clone(),
            place: bug.place.clone(),
            files: bug.files,
            seen: seen(&mut triage.files(&bug.id).into_iter()),
            bytes: part_of(&input, &[]),
            input: input.display().to_string(),
            stacks: stacks(bug),
            reproduce: script.exists().then(|| script.display().to_string()),
        }
    };
    triage.bugs.iter().map(bug).collect()
}

/// Sorts the stacks of a bug. A sanitizer reports the stack of the free before that of the
/// allocation.
fn stacks(bug: &TriagedBug) -> Stacks {
    let mut others = bug.other_stacks.iter().cloned();
    let mut stacks = Stacks { crash: bug.frames.clone(), ..Stacks::default() };
    let title = bug.title.to_ascii_lowercase();
    let is_one_of = |words: &[&str]| words.iter().any(|word| title.contains(word));
    if is_one_of(&["use-after-free", "double-free", "double free"]) {
        stacks.free = others.next().unwrap_or_default();
        stacks.allocation = others.next().unwrap_or_default();
    } else if is_one_of(&["heap-buffer-overflow", "alloc-dealloc", "leak", "heap-use"]) {
        stacks.allocation = others.next().unwrap_or_default();
    }
    stacks.others = others.collect();
    stacks
}

/// Seconds from the last seed with a new edge to the last statistics.
fn last_edge(campaigns: &[CampaignFolder]) -> Option<u64> {
    let of_campaign = |campaign: &CampaignFolder| {
        let finds = campaign.queue().into_iter().filter(|find| find.name.new_edge);
        let last = finds.filter_map(|find| find.name.time).max()?;
        Some(campaign.most("run_time").saturating_sub(last / 1000))
    };
    campaigns.iter().filter_map(of_campaign).min()
}

fn chance(campaigns: &[CampaignFolder]) -> Option<f64> {
    let runs: u64 = campaigns.iter().map(|it| it.sum("execs_done")).sum();
    let last = runs / LAST;
    let instances = || campaigns.iter().flat_map(|it| &it.instances);
    let has_names = instances().any(|it| it.queue.iter().any(|find| find.name.execs.is_some()));
    if last == 0 || !has_names {
        return None;
    }
    let finds = instances().map(|it| {
        let own = it.instance.number("execs_done");
        let since = own - own / LAST;
        let new = it.queue.iter().filter(|find| find.name.new_edge);
        new.filter(|find| find.name.execs.is_some_and(|execs| execs >= since)).count()
    });
    let rate = finds.sum::<usize>() as f64 / last as f64;
    Some(1.0 - (-rate * RUNS_ASKED).exp())
}

fn warn_of(campaign: &CampaignFolder, warnings: &mut Vec<Warning>) {
    let out = campaign.root.display();
    let mut warn = |code, text| warnings.push(Warning { code, text });
    if campaign.is_running() {
        warn("running", format!("{out} is in use: the numbers are those of now"));
    }
    let crashes = campaign.instances.iter().any(|it| !it.crashes.is_empty());
    if campaign.triage.is_none() && crashes {
        let text = format!("the crashes of {out} are not grouped: ffuzz-triage {out} does that");
        warn("not-triaged", text);
    }
    let command = campaign.command();
    let program = command.as_ref().and_then(|command| fs::metadata(&command[0]).ok());
    let changed = program.and_then(|data| data.modified().ok());
    let ended = campaign.instances.iter().filter(|it| it.instance.state == InstanceState::Dead);
    let ended = ended.map(|it| it.instance.number("last_update")).max().unwrap_or(0);
    let since = changed.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    if ended > 0 && since.is_some_and(|since| since.as_secs() > ended) {
        warn("changed", format!("the target of {out} was built again after the campaign"));
    }
}

fn stuck(one: &StuckPlace, survey: &Survey, finds: &[&Find]) -> Stuck {
    let place = &one.place;
    let name = |number: usize| Some(finds.get(number)?.path.file_name()?.to_string_lossy().into());
    let behind = one.fork.map(|fork| survey.frontier.counters_behind(&fork)).unwrap_or_default();
    let counted = one.counter.and_then(|counter| survey.counters.get(counter as usize));
    Stuck {
        id: place.id.clone(),
        at: Place {
            file: place.file.clone(),
            line: place.line,
            column: place.column,
            function: place.function.clone(),
        },
        to: place.to,
        outcome: place.outcome.clone(),
        behind: Behind {
            counters: place.behind.unwrap_or(0),
            functions: place.functions,
            lines: survey.lines_of(&behind) as u64,
        },
        copies: place.copies,
        comparison: (!place.operands.is_empty()).then(|| Comparison {
            kind: place.comparison.clone(),
            closest: place.operands.clone(),
            bytes: place.bytes.clone(),
            attempts: place.attempts,
        }),
        input: one.input.and_then(name),
        bytes: one.input.and_then(|number| part_of(&finds.get(number)?.path, &place.bytes)),
        inputs: counted.map_or(place.seeds, |facts| facts.inputs.into()),
        excerpt: texts::around(&place.file, place.line, AROUND),
    }
}

/// The part of a file around the first of these bytes, or its beginning.
fn part_of(path: &Path, bytes: &[(usize, usize)]) -> Option<InputPart> {
    let content = file::read(path, 1 << 20).ok()?;
    let first = bytes.first().map_or(0, |(first, _)| *first);
    let from = match first + 16 < MOST_BYTES {
        true => 0,
        false => (first - 16) / 16 * 16,
    };
    let shown = content.get(from..)?;
    let shown = &shown[..shown.len().min(MOST_BYTES)];
    let hex = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(InputPart { from, size: content.len(), hex })
}

/// Adds the best values of the domains.
pub(crate) fn domains(
    report: &mut Report,
    survey: &Survey,
    target: &Hooked,
    campaigns: &[CampaignFolder],
    finds: &[&Find],
) {
    let aggregates = &survey.aggregates;
    let known = aggregates.domains();
    if known.is_empty() {
        return;
    }
    let names = KeyNames::new(known, target.info().sites());
    let time = |number: usize| finds.get(number)?.name.time.map(|time| time / 1000);
    for (index, (domain, moves)) in known.iter().zip(&survey.moves).enumerate() {
        let mut keys: Vec<(u32, u32)> = aggregates.changed_in(domain).collect();
        keys.sort_by_key(|(key, value)| (std::cmp::Reverse(domain.reducer.merit(*value)), *key));
        let count = keys.len();
        let shown = keys.into_iter().take(MOST_KEYS).map(|(key, value)| {
            let input = survey.owners.of(key);
            let name = |number: usize| Some(finds.get(number)?.path.file_name()?.to_owned());
            Key {
                key,
                value,
                place: names.place(key).unwrap_or_default(),
                input: input.and_then(name).map(|name| name.to_string_lossy().into_owned()),
                moved: input.and_then(time),
            }
        });
        let label = domain.label(index);
        report.domains.push(Domain {
            name: label.clone(),
            reducer: domain.reducer.name().to_owned(),
            count,
            keys: shown.collect(),
        });
        // Inputs of several campaigns ran one campaign after the other, so times cannot be merged.
        if let ([_], [one]) = (campaigns, &mut report.campaigns[..]) {
            let moves = moves.iter().filter_map(|(number, value)| Some((time(*number)?, *value)));
            one.series.domains.insert(label, moves.collect());
        }
    }
}

/// The most important facts in one sentence.
pub(crate) fn verdict(report: &Report) -> String {
    let Totals { edges, lines, bugs, crashes, last_edge, chance, .. } = report.totals;
    let percent = |[part, whole]: [u64; 2]| 100.0 * part as f64 / whole.max(1) as f64;
    let covered = match (lines[1], edges[1]) {
        (1.., _) => format!("{:.1} % of the lines", percent(lines)),
        (0, 1..) => format!("{:.1} % of the edges", percent(edges)),
        (0, 0) => format!("{} edges", edges[0]),
    };
    let found = match (bugs, crashes) {
        (0, 0) => "no bug".to_owned(),
        (1, _) => "1 bug".to_owned(),
        (bugs, _) => format!("{bugs} bugs"),
    };
    let last = last_edge.map_or_else(String::new, |seconds| {
        format!(", the last new edge {} before the end", crate::forms::time(seconds))
    });
    let grows = match chance {
        Some(chance) if chance > 0.5 => ": still growing",
        Some(_) => ": no longer growing much",
        None => "",
    };
    format!("{covered} reached, {found}{last}{grows}.")
}

/// Formats a UTC time as in RFC 3339. Converts days as Howard Hinnant's `civil_from_days`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * shifted + 2) / 5 + 1, (shifted + 2) % 12 + 1);
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The queues' files in the order in which a survey runs them.
#[must_use]
pub fn order(campaigns: &[CampaignFolder]) -> (Vec<&Find>, Vec<PathBuf>) {
    let finds: Vec<&Find> = campaigns.iter().flat_map(CampaignFolder::queue).collect();
    let paths = finds.iter().map(|find| find.path.clone()).collect();
    (finds, paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_795_938_360), "2026-11-29T07:46:00Z");
    }

    #[test]
    fn an_input_is_shown_around_what_decides() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, (0..=255).cycle().take(1000).collect::<Vec<u8>>()).unwrap();
        let part = part_of(&path, &[]).unwrap();
        assert_eq!((part.from, part.size, &part.hex[..6]), (0, 1000, "000102"));
        let part = part_of(&path, &[(700, 703)]).unwrap();
        assert_eq!((part.from, part.hex.len()), (672, 2 * MOST_BYTES));
        assert_eq!(part_of(&path, &[(5000, 5000)]), None);
    }
}
