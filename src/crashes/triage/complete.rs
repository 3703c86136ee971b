//! Completes a bug whose files are all examined: minimizes its input, completes its folder, and hands it over for the
//! crash server.

use std::collections::HashSet;
use std::time::Duration;

use super::examine::read;
use super::hang;
use super::minimize::{Small, minimize};
use super::paths::from_text;
use super::report::{FileOutcome, hex};
use super::rerun::Rerun;
use super::state::WorkState;
use super::work::TriageWork;
use super::{TriageError, before, deliver, write};
use ffuzz_disk::find;

impl TriageWork {
    /// Completes the folder of a bug and hands it over.
    pub(super) fn finish(&self, rerun: &mut Rerun, index: usize) -> Result<(), TriageError> {
        let bug = self.inside().report.bugs[index].clone();
        if bug.has_smaller_input() {
            self.complete(rerun, index)?;
            self.improve(index)?;
        }
        if self.delivery.is_some() && !bug.reported { self.report(index) } else { Ok(()) }
    }

    /// Delivers a bug as soon as it is known, with its first input.
    pub(super) fn report(&self, index: usize) -> Result<(), TriageError> {
        let Some(delivery) = &self.delivery else { return Ok(()) };
        let (bug, files) = {
            let inside = self.inside();
            let bug = inside.report.bugs[index].clone();
            let files = inside.report.files(&bug.id);
            (bug, files)
        };
        let path = |file: &String| self.options.root.join(from_text(file));
        if !files.iter().any(|file| delivery.was_delivered_before(&path(file))) {
            match delivery.report(&bug, &self.options.folder.join(&bug.id)) {
                Ok(report) => delivery.take(&report)?,
                Err(error) => {
                    self.inside().withhold(&bug.id, &error);
                    return Ok(());
                }
            }
        }
        let mut inside = self.inside();
        inside.report.bugs[index].reported = true;
        inside.dirty = true;
        Ok(())
    }

    /// Adds the minimized input to a report that was not sent yet.
    fn improve(&self, index: usize) -> Result<(), TriageError> {
        let bug = self.inside().report.bugs[index].clone();
        let Some(delivery) = self.delivery.as_ref().filter(|_| bug.reported) else { return Ok(()) };
        if let Ok(report) = delivery.report(&bug, &self.options.folder.join(&bug.id)) {
            delivery.improve(&report)?;
        }
        Ok(())
    }

    /// Minimizes the input of a bug.
    fn complete(&self, rerun: &mut Rerun, index: usize) -> Result<(), TriageError> {
        let (bug, stacks, build) = {
            let inside = self.inside();
            let bug = inside.report.bugs[index].clone();
            let stacks = &inside.report.stacks;
            let of_bug = stacks.iter().filter(|(_, id)| **id == bug.id).map(|(key, _)| key.clone());
            let stacks: HashSet<String> = of_bug.collect();
            let build = inside.build_of(&bug);
            (bug, stacks, build)
        };
        let folder = self.options.folder.join(&bug.id);
        let path = self.options.root.join(from_text(&bug.input));
        // A removed file cannot be minimized; earlier results stay.
        let small = match read(&path) {
            Ok(data) => {
                let inputs = before::of(&path).map(|(inputs, _)| inputs);
                let inputs = inputs.filter(|_| bug.before > 0);
                write::input(&folder, write::INPUT, &data)?;
                before::keep(&folder, inputs.as_deref())?;
                let is_same = |key| stacks.contains(&hex(key));
                let small = match self.options.minimize {
                    Duration::ZERO => Small { data, done: true },
                    // Each try would take the full timeout.
                    _ if bug.class == hang::CLASS => Small { data, done: true },
                    time => self.run_after(rerun, inputs.as_deref(), |rerun| {
                        minimize(rerun, build, &data, time, is_same, || self.goes_on())
                    })?,
                };
                write::input(&folder, write::MINIMIZED, &small.data)?;
                Some(small)
            }
            Err(_) => None,
        };
        let mut inside = self.inside();
        // Updated only after writing: a full disk may have room again.
        let mut known = inside.report.bugs[index].clone();
        // Another triage continues an interrupted minimization.
        let is_done = small.as_ref().is_none_or(|small| small.done);
        known.minimized_from = is_done.then_some(bug.input_hash);
        known.minimized_before = bug.before;
        known.minimized_size = small.map(|small| small.data.len() as u64);
        write::facts(&folder, &known)?;
        inside.report.bugs[index] = known;
        inside.dirty = true;
        Ok(())
    }

    /// Marks crashes that other tools need not deliver.
    pub(super) fn mark(&self, inside: &mut WorkState) {
        if self.delivery.is_none() {
            return;
        }
        let bugs = inside.report.bugs.iter().filter(|bug| bug.reported).map(|bug| &bug.id);
        let reported: HashSet<&String> = bugs.collect();
        let marked = &mut inside.marked;
        for crash in &inside.report.crashes {
            let good = match (&crash.bug, crash.state) {
                (Some(bug), _) if reported.contains(bug) => true,
                (_, FileOutcome::NoCrash) => false,
                // While others use the cores a timeout proves little.
                (_, FileOutcome::TimesOut) if !self.options.beside => false,
                _ => continue,
            };
            let path = from_text(&crash.path);
            if !find::is_hang(&path) && marked.insert((crash.path.clone(), good)) {
                deliver::mark(&self.options.root.join(path), good);
            }
        }
    }
}
