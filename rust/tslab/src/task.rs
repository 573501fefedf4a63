//! task: tokio's tasks go on in the epoch of who spawns them.

use std::future::Future;

use tokio::task::JoinHandle;

use crate::future::{InEpoch, current};

/// `tokio::spawn` in the [current](crate::current()) epoch: the task enters it whenever it is
/// polled, and it is closed after the task at the earliest.
///
/// # Panics
/// Outside of a runtime, as `tokio::spawn`.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(InEpoch::new(future, current()))
}

/// `tokio::task::spawn_blocking` in the [current](crate::current()) epoch.
///
/// # Panics
/// Outside of a runtime, as `tokio::task::spawn_blocking`.
pub fn spawn_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let epoch = current();
    tokio::task::spawn_blocking(move || match epoch {
        Some(epoch) => epoch.enter(work),
        None => work(),
    })
}
