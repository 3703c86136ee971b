//! Work that asks for runs and stands still until they are made: a future, polled by the stage. Where the stage has no
//! time left, it does not carry out the next order, and the work goes on there in a later turn.

use std::cell::{Cell, RefCell};
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Limit;
use crate::fuzzer::door::Door;
use crate::stage::Turn;
use crate::stage::share::Stop;

type Order<D> = Box<dyn FnOnce(&mut Turn<'_, D>, Limit) -> Result<(), <D as Door>::Error>>;

/// What the work and the stage hand to each other.
struct Desk<D: Door> {
    order: RefCell<Option<Order<D>>>,
    is_over: Cell<bool>,
    input: RefCell<Rc<[u8]>>,
}

/// The side of the work.
pub(in crate::stage) struct Ask<D: Door>(Rc<Desk<D>>);

impl<D: Door> Ask<D> {
    /// Does something with the search as soon as there is time for it. An order is a few runs at most: the work pauses
    /// between two of them only.
    pub(in crate::stage) async fn order<T: 'static>(
        &self,
        work: impl FnOnce(&mut Turn<'_, D>) -> Result<T, D::Error> + 'static,
    ) -> T {
        self.order_within(|turn, _| work(turn)).await
    }

    /// The same for work that needs the limit of the slice in which it is done.
    pub(super) async fn order_within<T: 'static>(
        &self,
        work: impl FnOnce(&mut Turn<'_, D>, Limit) -> Result<T, D::Error> + 'static,
    ) -> T {
        let answer = Rc::new(Cell::new(None));
        let to = answer.clone();
        let order = move |turn: &mut Turn<'_, D>, limit| {
            work(turn, limit).map(|result| to.set(Some(result)))
        };
        *self.0.order.borrow_mut() = Some(Box::new(order));
        future::poll_fn(|_| answer.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// The round ends: nothing else is to be begun.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    /// The next orders are about this input.
    pub(super) fn begin(&self, input: Rc<[u8]>) {
        *self.0.input.borrow_mut() = input;
    }
}

/// The side of the stage: work that ends with a `T`.
pub(super) struct Work<D: Door, T> {
    desk: Rc<Desk<D>>,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<D: Door, T> Work<D, T> {
    /// Begins with the first call of [`Work::go_on`].
    pub(super) fn new<F: Future<Output = T> + 'static>(work: impl FnOnce(Ask<D>) -> F) -> Self {
        let desk = Rc::new(Desk {
            order: RefCell::default(),
            is_over: Cell::new(false),
            input: RefCell::new(Rc::default()),
        });
        Self { future: Box::pin(work(Ask(desk.clone()))), desk }
    }

    /// The input that the order which waits is about. None if none waits.
    pub(super) fn paused_at(&self) -> Option<Rc<[u8]>> {
        self.desk.order.borrow().is_some().then(|| self.desk.input.borrow().clone())
    }

    /// Carries out orders until the work is done. With an error of the search it is not to go on.
    pub(super) fn go_on(
        &mut self,
        turn: &mut Turn<'_, D>,
        limit: Limit,
    ) -> Result<T, Stop<D::Error>> {
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
