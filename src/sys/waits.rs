//! Waits that may take long: a line reports one that does.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::stdio;

/// Time after which the user gets a line, and time between two checks.
const LONG: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(250);

/// A wait, from its begin to its end. Not for every run: it costs a lock, and the first one starts a thread.
#[derive(Debug)]
pub struct Wait(u64);

#[derive(Debug)]
struct Waits {
    all: Vec<WaitEntry>,
    last: u64,
    is_watched: bool,
}

#[derive(Debug)]
struct WaitEntry {
    number: u64,
    since: Instant,
    what: &'static str,
    reported: bool,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { all: Vec::new(), last: 0, is_watched: false });

static BEGAN: Condvar = Condvar::new();

fn waits() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wait {
    /// `what`: the event that is late, as the beginning of a sentence.
    #[must_use]
    pub fn begin(what: &'static str) -> Self {
        let mut waits = waits();
        waits.last += 1;
        let number = waits.last;
        waits.all.push(WaitEntry { number, since: Instant::now(), what, reported: false });
        if !waits.is_watched {
            let thread = thread::Builder::new().name("waits".into());
            waits.is_watched = thread.spawn(watch).is_ok();
        }
        BEGAN.notify_one();
        Self(number)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        waits().all.retain(|wait| wait.number != self.0);
    }
}

/// Looks at the waits as long as the process lives: where memory is short, a new thread may not come to life.
fn watch() {
    loop {
        thread::park_timeout(LOOK);
        let mut waits = waits();
        while waits.all.is_empty() {
            waits = BEGAN.wait(waits).unwrap_or_else(PoisonError::into_inner);
        }
        for wait in
            waits.all.iter_mut().filter(|wait| wait.since.elapsed() >= LONG && !wait.reported)
        {
            wait.reported = true;
            let text = ["ffuzz: warning: ", wait.what, " for 2 seconds; still waiting\n"];
            stdio::write_error(&text);
        }
    }
}
