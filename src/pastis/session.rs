//! One target being fuzzed: an ordinary `ffuzz -j N --control SOCKET`, kept running, fed and heard.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::door::{Door, Said};
use super::error::Refusal;
use super::feed::{Count, Feed, Input};
use super::finds::{Finds, Known};
use super::order::Order;
use super::package;
use crate::event::{Snapshot, StopReason};
use crate::fleet::strategy;
use crate::fleet::worker::{End, Message, Plan, Worker};
use crate::output;

/// From a Stop to the end, whatever the fuzzer does: a broker may expect it within 5 s.
const FAREWELL: Duration = Duration::from_secs(4);
/// Messages of the fuzzer's pipes under way.
const INBOX: usize = 4096;
/// Inputs that are written into the folder of seeds. The others are fed to the fuzzer that runs.
const MOST_SEEDS: usize = 10;
/// For a broker without any. It may crash the target: then the next start has what came meanwhile.
const DEFAULT_SEED: &[u8] = b"0";

/// How the session is doing.
#[derive(Debug)]
pub(super) enum State {
    Goes,
    /// Its fuzzer died and is started again.
    Died(String),
    Ended(StopReason),
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) order: Order,
    pub(super) feed: Arc<Feed>,
    pub(super) known: Known,
    pub(super) finds: Finds,
    worker: Worker,
    /// What its pipes say.
    sender: SyncSender<Message>,
    inbox: Receiver<Message>,
    /// A folder of its own, because a path in the output folder may be too long for a socket.
    place: PathBuf,
    door: Option<Door>,
    stopping: Option<Instant>,
    /// Inputs of the broker that were run when that was last told.
    told_run: u64,
}

impl Session {
    /// Nothing is started yet. `plan` knows the way from the order, the folder of seeds and the socket
    /// to a command line.
    pub(super) fn new(
        order: Order,
        plan: impl FnOnce(&Order, &Path, &Path) -> Result<Plan, String>,
    ) -> Result<Self, Refusal> {
        let place =
            std::env::temp_dir().join(format!("ffuzz-{}-{}", std::process::id(), order.name));
        let seeds = order.folder.join("seeds");
        let plan = plan(&order, &seeds, &place.join("control")).map_err(Refusal::Arguments)?;
        let (sender, inbox) = sync_channel(INBOX);
        Ok(Self {
            feed: Arc::default(),
            known: Known::default(),
            finds: Finds::new(order.output()),
            worker: Worker::new(plan),
            sender,
            inbox,
            place,
            door: None,
            stopping: None,
            told_run: 0,
            order,
        })
    }

    /// Starts the fuzzer if it is time, and hears it. Has to be called by a thread that lives as long
    /// as the process. A new connection to the fuzzer gets the number `door`.
    pub(super) fn look_after(
        &mut self,
        door: &mut u32,
        said: &Sender<impl From<(u32, Said)> + Send + 'static>,
    ) -> State {
        if self.worker.is_due()
            && self.stopping.is_none()
            && let Err(cause) = self.start()
        {
            return State::Died(self.again(&cause));
        }
        while let Ok(message) = self.inbox.try_recv() {
            if let Message::Worker(_, process, heard) = message {
                self.worker.note(process, &heard);
            }
        }
        if self.door.is_none() && self.worker.is_running() {
            // Until the fuzzer has opened it, there is none.
            if let Ok(open) = Door::open(&self.socket(), *door + 1, &self.feed, said.clone()) {
                *door += 1;
                self.door = Some(open);
            }
        }
        if self.stopping.is_some_and(|since| since.elapsed() > FAREWELL) {
            self.worker.signal(libc::SIGKILL);
        }
        self.end()
    }

    fn start(&mut self) -> Result<(), String> {
        // A session of the same name may have just gone, and that folder with it.
        package::make(&self.place).map_err(|refusal| refusal.to_string())?;
        self.write_seeds().map_err(|refusal| refusal.to_string())?;
        // Files that lie beside the target are found by their names.
        std::env::set_current_dir(self.order.folder.join("package")).map_err(|e| e.to_string())?;
        self.worker.start(0, &self.sender).map_err(|error| format!("{error} ({})", error.remedy()))
    }

    /// It is started later.
    fn again(&mut self, cause: &str) -> String {
        format!("{cause}; it starts again in {} s", self.worker.start_later().as_secs())
    }

    /// What came so far, unless the fuzzer goes on with work of its own.
    fn write_seeds(&self) -> Result<(), Refusal> {
        let folder = self.order.folder.join("seeds");
        package::make(&folder)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|source| Refusal::Write { path, source })
        };
        write("default", DEFAULT_SEED)?;
        if output::holds_work(&self.order.output(), &strategy::name(0)) {
            return Ok(());
        }
        for (number, Input { bytes, .. }) in self.feed.take_seeds(MOST_SEEDS).iter().enumerate() {
            write(&format!("broker-{number}"), bytes)?;
        }
        Ok(())
    }

    fn socket(&self) -> PathBuf {
        self.place.join("control")
    }

    fn end(&mut self) -> State {
        let stopped = self.stopping.is_some();
        let how = match self.worker.end() {
            None if stopped && !self.worker.is_running() => {
                return State::Ended(StopReason::User);
            }
            None => return State::Goes,
            Some(End::Stopped(reason)) => return State::Ended(reason),
            Some(End::Died(_)) if stopped => return State::Ended(StopReason::User),
            Some(End::Died(how)) => how,
        };
        self.door = None;
        let words = self.worker.last_words().map(|(cause, remedy)| format!("{cause} ({remedy})"));
        State::Died(self.again(&words.unwrap_or(how)))
    }

    /// Asks the fuzzer to end.
    pub(super) fn stop(&mut self) {
        self.stopping.get_or_insert_with(Instant::now);
        self.worker.signal(libc::SIGINT);
    }

    /// Whether this connection to the fuzzer is the one of now.
    #[must_use]
    pub(super) fn has_door(&self, number: u32) -> bool {
        self.door.as_ref().is_some_and(|door| door.number() == number)
    }

    /// The connection is gone.
    pub(super) fn close_door(&mut self) {
        self.door = None;
    }

    /// Once all that the broker has sent was run: how much that is.
    pub(super) fn all_run(&mut self) -> Option<Count> {
        let count = self.feed.count();
        let news = count.open == 0 && count.run > self.told_run;
        news.then(|| {
            self.told_run = count.run;
            count
        })
    }

    /// Its last numbers.
    #[must_use]
    pub(super) fn numbers(&self) -> Option<&Snapshot> {
        self.worker.snapshot()
    }

    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}
