//! Work that requests runs and waits for them: a future, polled by the stage. When the stage has no time left, it
//! leaves the next order pending, and the work continues there in a later turn.

use std::cell::{Cell, RefCell};
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Limit;
use crate::fuzzer::door::Host;
use crate::stage::Turn;
use crate::stage::share::Stop;

type Order<H> = Box<dyn FnOnce(&mut Turn<'_, H>, Limit) -> Result<(), <H as Host>::Error>>;

/// State shared by the work and the stage.
struct Desk<H: Host> {
    order: RefCell<Option<Order<H>>>,
    is_over: Cell<bool>,
    input: RefCell<Rc<[u8]>>,
}

/// The work's handle.
pub(in crate::stage) struct Ask<H: Host>(Rc<Desk<H>>);

impl<H: Host> Ask<H> {
    /// Runs `work` on the search as soon as there is time. An order should make only a few runs, because the work
    /// pauses only between orders.
    pub(in crate::stage) async fn order<T: 'static>(
        &self,
        work: impl FnOnce(&mut Turn<'_, H>) -> Result<T, H::Error> + 'static,
    ) -> T {
        self.order_within(|turn, _| work(turn)).await
    }

    /// As [`Ask::order`], for work that needs the limit of the slice in which it runs.
    pub(super) async fn order_within<T: 'static>(
        &self,
        work: impl FnOnce(&mut Turn<'_, H>, Limit) -> Result<T, H::Error> + 'static,
    ) -> T {
        let answer = Rc::new(Cell::new(None));
        let to = answer.clone();
        let order = move |turn: &mut Turn<'_, H>, limit| {
            work(turn, limit).map(|result| to.set(Some(result)))
        };
        *self.0.order.borrow_mut() = Some(Box::new(order));
        future::poll_fn(|_| answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// True if the round ends: begin nothing else.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    /// Sets the input of the next orders.
    pub(super) fn begin(&self, input: Rc<[u8]>) {
        *self.0.input.borrow_mut() = input;
    }
}

/// The stage's handle: work that returns a `T`.
pub(super) struct Work<H: Host, T> {
    desk: Rc<Desk<H>>,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<H: Host, T> Work<H, T> {
    /// Creates the work; it starts with the first call of [`Work::go_on`].
    pub(super) fn new<F: Future<Output = T> + 'static>(work: impl FnOnce(Ask<H>) -> F) -> Self {
        let desk = Rc::new(Desk {
            order: RefCell::default(),
            is_over: Cell::new(false),
            input: RefCell::new(Rc::default()),
        });
        Self { future: Box::pin(work(Ask(desk.clone()))), desk }
    }

    /// The input of the pending order; None if no order is pending.
    pub(super) fn paused_at(&self) -> Option<Rc<[u8]>> {
        self.desk.order.borrow().is_some().then(|| self.desk.input.borrow().clone())
    }

    /// Carries out orders until the work is done. The work must not continue after an error of the search.
    pub(super) fn go_on(
        &mut self,
        turn: &mut Turn<'_, H>,
        limit: Limit,
    ) -> Result<T, Stop<H::Error>> {
        loop {
            let waits = self.desk.order.borrow().is_some();
            if waits {
                limit.check(turn)?;
            }
            let order = self.desk.order.take();
            order.map_or(Ok(()), |order| order(turn, limit))?;
            self.desk.is_over.set(limit.is_reached(turn));
            match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => return Ok(result),
                Poll::Pending => {}
            }
        }
    }
}
