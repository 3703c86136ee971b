//! Converts a campaign's events to libFuzzer's lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::eprint_line;
use super::files::Sizes;
use super::options::Order;
use crate::event::Snapshot;

/// Maximum number of words in the recommended dictionary.
const MOST_RECOMMENDED: usize = 64;

/// State of the campaign.
#[derive(Default)]
pub(super) struct StatusLines {
    verbosity: i64,
    /// True with `-fork`, which has a different format.
    forks: bool,
    /// Limit of `-runs`.
    most_runs: u64,
    last: Snapshot,
    /// Total size of the corpus in bytes.
    bytes: u64,
    /// Length of the longest input.
    longest: u64,
    inputs: u64,
    /// True after the seeds were run, until the first numbers.
    is_new: bool,
    has_begun: bool,
    /// Number of runs at the next pulse.
    pulse: u64,
    /// The program's words, each with the number of new inputs that contain it.
    words: Vec<(Box<[u8]>, u64)>,
    /// Number of failed inputs by kind.
    pub(super) failed: BTreeMap<&'static str, u64>,
    pub(super) last_failed: Option<&'static str>,
    pub(super) new_inputs: u64,
    /// Features since the last numbers.
    features_since: u64,
}

impl StatusLines {
    pub(super) fn new(order: &Order) -> Self {
        Self {
            verbosity: order.number("verbosity"),
            forks: order.number("fork") > 0,
            most_runs: u64::try_from(order.number("runs")).unwrap_or(u64::MAX),
            pulse: 1,
            ..Self::default()
        }
    }

    /// Sets the program's words for the recommended dictionary.
    pub(super) fn know_words(&mut self, words: impl Iterator<Item = Box<[u8]>>) {
        self.words = words.filter(|word| word.len() > 1).map(|word| (word, 0)).collect();
    }

    /// Prints the words that new inputs contain. libFuzzer counts its own uses of a word instead.
    fn recommend(&self) {
        let mut used: Vec<_> = self.words.iter().filter(|(_, uses)| *uses > 0).collect();
        used.sort_by_key(|(_, uses)| std::cmp::Reverse(*uses));
        if used.is_empty() {
            return;
        }
        self.say("###### Recommended dictionary. ######");
        for (word, uses) in used.into_iter().take(MOST_RECOMMENDED) {
            let text: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            self.say(&format!("\"{text}\" # Uses: {uses}"));
        }
        self.say("###### End of recommended dictionary. ######");
    }

    fn say(&self, line: &str) {
        if self.verbosity > 0 {
            eprint_line(line);
        }
    }

    /// Prints the lines before the campaign.
    pub(super) fn begin(&mut self, order: &Order, seed: u64, sizes: Sizes, counts: &[usize]) {
        self.say(&format!("INFO: Seed: {seed}"));
        if self.forks {
            let processes = order.number("fork");
            self.say(&format!("INFO: -fork={processes}: fuzzing in separate process(s)"));
        }
        for (folder, files) in order.folders.iter().zip(counts) {
            self.say(&format!("INFO: {files:8} files found in {}", folder.display()));
        }
        if !order.is_given("max_len") {
            let most = sizes.most.clamp(4096, 1 << 20);
            self.say(&format!(
                "INFO: -max_len is not provided; libFuzzer will not generate inputs larger than {most} bytes"
            ));
        }
        match sizes.files {
            0 => self.say("INFO: A corpus is not provided, starting from an empty corpus"),
            files => self.say(&format!(
                "INFO: seed corpus: files: {files} min: {}b max: {}b total: {}b rss: {}Mb",
                sizes.least,
                sizes.most,
                sizes.total,
                self.rss()
            )),
        }
        (self.inputs, self.bytes, self.longest) =
            (sizes.files.max(1) as u64, sizes.total.max(1), sizes.most.max(1));
    }

    fn rss(&self) -> u64 {
        self.last.resources.peak_rss_mb
    }

    /// Notes that the seeds were run. The next snapshot has their numbers.
    pub(super) fn started(&mut self) {
        self.is_new = true;
    }

    fn first(&mut self) {
        (self.is_new, self.has_begun) = (false, true);
        let counters = self.last.coverage.map_size;
        // Addresses differ in each process of the harness, so the first and last counter are shown as offsets.
        self.say(&format!(
            "INFO: Loaded 1 modules   ({counters} inline 8-bit counters): {counters} [0x0, {counters:#x}), "
        ));
        self.say(&format!(
            "INFO: Loaded 1 PC tables ({counters} PCs): {counters} [0x0,{:#x}), ",
            16 * counters
        ));
        self.status("INITED", "");
    }

    pub(super) fn tick(&mut self, mut snapshot: Snapshot) {
        // Seeds run several times, even beyond the limit; tools expect the limit itself.
        snapshot.runs.execs = snapshot.runs.execs.min(self.most_runs);
        self.last = snapshot;
        self.features_since = 0;
        if self.is_new {
            self.first();
        }
        let execs = self.last.runs.execs;
        if !self.has_begun || execs < self.pulse {
            return;
        }
        self.pulse = (execs + 1).next_power_of_two();
        if self.forks { self.fork_status() } else { self.status("pulse", "") }
    }

    /// Prints a saved input. `operations` made it in run number `execs` (0: unknown). It adds at least one feature to
    /// the last numbers, and an edge if `has_edge`.
    pub(super) fn new_input(
        &mut self,
        content: &[u8],
        operations: &str,
        execs: u64,
        has_edge: bool,
    ) {
        self.last.coverage.edges_found += u64::from(has_edge);
        self.features_since += 1;
        // With several campaigns, the numbers are per campaign.
        if !self.forks {
            self.last.runs.execs = self.last.runs.execs.max(execs.min(self.most_runs));
        }
        let size = content.len() as u64;
        (self.inputs, self.bytes) = (self.inputs + 1, self.bytes + size);
        self.longest = self.longest.max(size);
        self.new_inputs += 1;
        for (word, uses) in &mut self.words {
            *uses += u64::from(memchr::memmem::find(content, word).is_some());
        }
        if !self.forks {
            let made =
                if operations.is_empty() { String::new() } else { format!(" MS: 1 {operations}-") };
            self.status("NEW", &format!(" L: {size}/{}{made}", self.longest));
        }
    }

    /// Prints a status line; omits zeros, as libFuzzer does.
    fn status(&self, what: &str, more: &str) {
        let Snapshot { coverage, runs, .. } = &self.last;
        let features = (coverage.edges_found as f64 * coverage.bits_per_edge.max(1.0)) as u64
            + self.features_since;
        let mut line = format!("#{}\t{what:<6}", runs.execs);
        if coverage.edges_found > 0 {
            line.push_str(&format!(" cov: {} ft: {features}", coverage.edges_found));
        }
        line.push_str(&format!(" corp: {}/{}", self.inputs, amount(self.bytes)));
        line.push_str(&format!(" exec/s: {} rss: {}Mb", runs.execs_per_sec as u64, self.rss()));
        self.say(&(line + more));
    }

    fn fork_status(&self) {
        let Snapshot { coverage, runs, times, .. } = &self.last;
        let features = (coverage.edges_found as f64 * coverage.bits_per_edge.max(1.0)) as u64;
        let failed = |kind| self.failed.get(kind).copied().unwrap_or(0);
        self.say(&format!(
            "#{}: cov: {} ft: {features} corp: {} exec/s: {} oom/timeout/crash: {}/{}/{} time: {}s job: {} dft_time: 0",
            runs.execs,
            coverage.edges_found,
            self.inputs,
            runs.execs_per_sec as u64,
            failed("oom"),
            failed("timeout"),
            failed("crash"),
            times.run_time_ms / 1000,
            self.last.workers.len().max(1),
        ));
    }

    pub(super) fn end(&self, order: &Order, spent: Duration) {
        let execs = self.last.runs.execs;
        if self.forks {
            self.fork_status();
        } else {
            self.status("DONE", "");
            self.recommend();
            eprint_line(&format!("Done {execs} runs in {} second(s)", spent.as_secs()));
        }
        if order.flag("print_final_stats") {
            let average = (execs as f64 / spent.as_secs_f64().max(1.0)) as u64;
            eprint_line(&format!("stat::number_of_executed_units: {execs}"));
            eprint_line(&format!("stat::average_exec_per_sec:     {average}"));
            eprint_line(&format!("stat::new_units_added:          {}", self.new_inputs));
            let slowest = self.last.resources.slowest_exec_ms / 1000;
            eprint_line(&format!("stat::slowest_unit_time_sec:    {slowest}"));
            eprint_line(&format!("stat::peak_rss_mb:              {}", self.rss()));
        }
    }
}

/// Prints the lines after the target's own report of a failing input.
pub(super) fn artifact(order: &Order, content: &[u8], path: &Path) {
    eprint_line(&format!("MS: 0 ; base unit: {}", super::files::hash(content)));
    let is_short = content.len() <= 256;
    if is_short {
        let hex: String = content.iter().map(|byte| format!("{byte:#x},")).collect();
        eprint_line(&hex);
        eprint_line(&content.escape_ascii().to_string());
    }
    let prefix = order.text("artifact_prefix");
    eprint_line(&format!("artifact_prefix='{prefix}'; Test unit written to {}", path.display()));
    if is_short {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(content);
        eprint_line(&format!("Base64: {text}"));
    }
}

/// Formats a size as libFuzzer does.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}b"),
        1024..1_048_576 => format!("{}Kb", bytes / 1024),
        _ => format!("{}Mb", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_have_units() {
        assert_eq!([5, 2048, 3 << 20].map(super::amount), ["5b", "2Kb", "3Mb"]);
    }
}
