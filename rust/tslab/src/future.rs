//! future: work that is polled in an epoch.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::epoch::Epoch;

pin_project! {
    /// A future that enters its epoch whenever it is polled, on whichever thread. Other futures of
    /// the thread are not in it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InEpoch<F> {
        #[pin]
        future: F,
        epoch: Option<Arc<Epoch>>,
    }
}

impl<F> InEpoch<F> {
    /// With no epoch it is polled where the thread is.
    pub(crate) fn new(future: F, epoch: Option<Arc<Epoch>>) -> Self {
        Self { future, epoch }
    }
}

impl<F: Future> Future for InEpoch<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(epoch) = this.epoch else { return this.future.poll(context) };
        let _polled = Polled::begin(epoch);
        epoch.enter(|| this.future.poll(context))
    }
}

/// What every future can.
pub trait FutureExt: Future + Sized {
    /// The future, polled in an epoch.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tslab::FutureExt;
    ///
    /// # fn main() -> tslab::Result<()> {
    /// let batch = Arc::new(tslab::Epoch::open("batch")?);
    /// let work = async { vec![0; 100] }.in_epoch(batch);
    /// # drop(work);
    /// # Ok(())
    /// # }
    /// ```
    fn in_epoch(self, epoch: Arc<Epoch>) -> InEpoch<Self> {
        InEpoch::new(self, Some(epoch))
    }
}

impl<F: Future> FutureExt for F {}

thread_local! {
    static POLLED: Cell<*const Arc<Epoch>> = const { Cell::new(ptr::null()) };
}

/// Names the epoch of the future that the thread polls, until it is dropped.
struct Polled(*const Arc<Epoch>);

impl Polled {
    fn begin(epoch: &Arc<Epoch>) -> Self {
        Self(POLLED.replace(epoch))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// The epoch of the innermost [`InEpoch`] that the thread polls at this moment.
pub fn current() -> Option<Arc<Epoch>> {
    let epoch = POLLED.get();
    // SAFETY: `poll` lends it, and takes the name back before it returns or unwinds.
    unsafe { epoch.as_ref() }.map(Arc::clone)
}
