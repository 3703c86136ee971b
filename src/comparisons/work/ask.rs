//! Work that requests runs and waits for them: a future, polled by its owner. The owner carries out one order at a
//! time, whenever there is time; in between the work rests.

use std::cell::{Cell, RefCell, RefMut};
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ffuzz_mutate::length::Length;

use crate::InputRules;
use crate::blockers::Blockers;
use crate::checksums::Repairs;
use crate::input_to_state::Edit;
use crate::log::OwnLog;
use crate::results::Results;

/// A request of the work.
#[derive(Debug)]
pub enum Order {
    /// Run an input with its log, with its known fields corrected. If the run ends badly, run the input again without
    /// the log, which shows its edges.
    Log { input: Vec<u8>, op: &'static str, to: Reply<Ran> },
    /// Run an input as a usual mutant. Answer: true if it became a seed.
    TryOut { input: Vec<u8>, op: &'static str, to: Reply<bool> },
    /// Run the edits of an input as usual mutants.
    Edit { edits: Edits, to: Reply<()> },
    /// Find the length fields of an input made from the seed.
    Lengths { input: Vec<u8>, to: Reply<Vec<Length>> },
    /// Find the bytes of such an input that are known to decide comparisons.
    Deciding { input: Vec<u8>, to: Reply<Box<[u32]>> },
    /// Record those of the seed with these bytes.
    NoteDeciding { input: Vec<u8>, at: Box<[u32]>, to: Reply<()> },
}

/// Where to send the answer to an order.
#[derive(Debug)]
pub struct Reply<T>(Rc<RefCell<Option<T>>>);

impl<T> Reply<T> {
    /// Answers. The work continues when it is polled next.
    pub fn send(self, answer: T) {
        *self.0.borrow_mut() = Some(answer);
    }
}

/// An input that ran with its log.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The input with its fields corrected.
    pub bytes: Vec<u8>,
    pub log: OwnLog,
    pub ends_well: bool,
}

/// Edits of one input, in the order in which they run.
#[derive(Debug)]
pub struct Edits {
    pub input: Vec<u8>,
    pub edits: Vec<Edit>,
    /// Number of edits that have run, and the time of the target that they have taken.
    pub done: usize,
    pub spent: Duration,
}

impl Edits {
    #[must_use]
    pub fn new(input: &[u8], edits: Vec<Edit>) -> Self {
        Self { input: input.into(), edits, done: 0, spent: Duration::ZERO }
    }
}

/// What the search lends to the work while it is polled.
#[derive(Debug, Default)]
pub struct Lent {
    pub results: Results,
    pub repairs: Repairs,
    pub blockers: Blockers,
}

/// The seed that the work is on.
#[derive(Clone, Debug)]
pub struct SeedInput {
    pub number: usize,
    pub bytes: Vec<u8>,
}

/// State shared by the work and its owner.
#[derive(Debug)]
struct Desk {
    order: RefCell<Option<Order>>,
    lent: RefCell<Lent>,
    seed: RefCell<SeedInput>,
    is_over: Cell<bool>,
    /// The input that the work is on, see [`Work::paused_at`].
    input: RefCell<Vec<u8>>,
}

/// The work's handle.
pub(super) struct Ask {
    desk: Rc<Desk>,
    pub(super) rules: InputRules,
}

impl Ask {
    async fn order<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> T {
        let answer = Rc::new(RefCell::new(None));
        *self.desk.order.borrow_mut() = Some(order(Reply(answer.clone())));
        future::poll_fn(|_| answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// See [`Order::Log`].
    pub(super) async fn logged(&self, input: Vec<u8>, op: &'static str) -> Ran {
        self.order(|to| Order::Log { input, op, to }).await
    }

    /// Log of the second of two runs: the first run of a process may initialize tables and take another path.
    pub(super) async fn settled(&self, input: &[u8]) -> OwnLog {
        self.logged(input.to_vec(), "copy").await;
        self.logged(input.to_vec(), "copy").await.log
    }

    /// See [`Order::TryOut`].
    pub(super) async fn try_out(&self, input: Vec<u8>, op: &'static str) -> bool {
        self.order(|to| Order::TryOut { input, op, to }).await
    }

    /// See [`Order::Edit`].
    pub(super) async fn run_edits(&self, input: &[u8], edits: Vec<Edit>) {
        self.order(|to| Order::Edit { edits: Edits::new(input, edits), to }).await;
    }

    /// See [`Order::Lengths`].
    pub(super) async fn lengths(&self, input: &[u8]) -> Vec<Length> {
        self.order(|to| Order::Lengths { input: input.into(), to }).await
    }

    /// See [`Order::Deciding`].
    pub(super) async fn deciding(&self, input: &[u8]) -> Box<[u32]> {
        self.order(|to| Order::Deciding { input: input.into(), to }).await
    }

    /// See [`Order::NoteDeciding`].
    pub(super) async fn note_deciding(&self, input: &[u8], at: Box<[u32]>) {
        self.order(|to| Order::NoteDeciding { input: input.into(), at, to }).await;
    }

    /// What the search knows. Not to be held while the work waits.
    pub(super) fn lent(&self) -> RefMut<'_, Lent> {
        self.desk.lent.borrow_mut()
    }

    /// The number of the seed, if these are its bytes.
    pub(super) fn number_of(&self, input: &[u8]) -> Option<usize> {
        let seed = self.desk.seed.borrow();
        (seed.bytes == input).then_some(seed.number)
    }

    /// True if the round ends: begin nothing else.
    pub(super) fn is_over(&self) -> bool {
        self.desk.is_over.get()
    }

    /// Sets the input of the next orders.
    pub(super) fn begin(&self, input: &[u8]) {
        *self.desk.input.borrow_mut() = input.into();
    }
}

/// The owner's handle: work that returns a `T`.
pub struct Work<T> {
    desk: Rc<Desk>,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<T> Work<T> {
    /// Creates work on a seed; it starts with the first call of [`Work::go_on`].
    pub(super) fn new<F: Future<Output = T> + 'static>(
        seed: SeedInput,
        rules: InputRules,
        work: impl FnOnce(Ask) -> F,
    ) -> Self {
        let desk = Rc::new(Desk {
            order: RefCell::default(),
            lent: RefCell::default(),
            seed: RefCell::new(seed),
            is_over: Cell::new(false),
            input: RefCell::default(),
        });
        Self { future: Box::pin(work(Ask { desk: desk.clone(), rules })), desk }
    }

    /// The input of the pending order; None if no order is pending.
    #[must_use]
    pub fn paused_at(&self) -> Option<Vec<u8>> {
        self.is_waiting().then(|| self.desk.input.borrow().clone())
    }

    /// Replaces the bytes of the seed, which other stages may have changed.
    pub fn set_seed(&self, bytes: &[u8]) {
        self.desk.seed.borrow_mut().bytes = bytes.into();
    }

    /// True if the work waits for the answer to an order.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.desk.order.borrow().is_some()
    }

    /// Takes the pending order out. Its reply must be sent, or the order put back, before the work goes on.
    pub fn take_order(&self) -> Option<Order> {
        self.desk.order.take()
    }

    /// Makes an order pending again.
    pub fn put_back(&self, order: Order) {
        *self.desk.order.borrow_mut() = Some(order);
    }

    /// Lets the work go on until it is done or orders something. `is_over`: it is to end soon.
    pub fn go_on(&mut self, lent: &mut Lent, is_over: bool) -> Option<T> {
        self.desk.is_over.set(is_over);
        std::mem::swap(lent, &mut *self.desk.lent.borrow_mut());
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        std::mem::swap(lent, &mut *self.desk.lent.borrow_mut());
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}
