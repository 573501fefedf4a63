//! Futures, tasks and services in epochs.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tower_layer::Layer;
use tower_service::Service;
use tslab::{Epoch, EpochLayer, FutureExt, TemporalSlab, current, task};

#[global_allocator]
static ALLOCATOR: TemporalSlab = TemporalSlab;

fn here() -> u64 {
    // SAFETY: it asks no more.
    unsafe { tslab_sys::tslab_epoch_current() }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn open(label: &str) -> Arc<Epoch> {
    Arc::new(Epoch::open(label).unwrap())
}

#[test]
fn futures_that_take_turns_on_a_thread_keep_their_epochs() {
    let (first, second) = (open("first"), open("second"));
    let work = |epoch: Arc<Epoch>| {
        let id = epoch.id();
        let turns = async move {
            for _ in 0..100 {
                assert_eq!((here(), current().map(|epoch| epoch.id())), (id, Some(id)));
                tokio::task::yield_now().await;
            }
        };
        turns.in_epoch(epoch)
    };
    let single = Builder::new_current_thread().build().unwrap();
    single.block_on(async {
        let tasks = [first, second].map(|epoch| tokio::spawn(work(epoch)));
        for task in tasks {
            tokio::task::yield_now().await;
            assert_eq!((here(), current().is_none()), (0, true));
            task.await.unwrap();
        }
    });
}

#[test]
fn tasks_keep_their_epoch_from_thread_to_thread() {
    let tasks = (0..50).map(|_| {
        let epoch = open("wandering");
        let id = epoch.id();
        let work = async move {
            for _ in 0..100 {
                assert_eq!(here(), id);
                tokio::task::yield_now().await;
            }
        };
        work.in_epoch(epoch)
    });
    let runtime = runtime();
    let tasks: Vec<_> = tasks.map(|task| runtime.spawn(task)).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn what_a_task_spawns_goes_on_in_its_epoch() {
    let epoch = open("parent");
    let id = epoch.id();
    let work = async {
        let (send, receive) = oneshot::channel();
        let child = task::spawn(async {
            receive.await.unwrap();
            here()
        });
        let blocking = task::spawn_blocking(here).await.unwrap();
        send.send(()).unwrap();
        (child.await.unwrap(), blocking)
    };
    let seen = runtime().block_on(work.in_epoch(epoch));
    assert_eq!(seen, (id, id));
    let outside = runtime().block_on(async { task::spawn(async { here() }).await.unwrap() });
    assert_eq!(outside, 0);
}

#[test]
fn a_future_that_panics_leaves_its_epoch() {
    let future = async { panic!("on purpose") }.in_epoch(open("panic"));
    let single = Builder::new_current_thread().build().unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        single.block_on(future);
    }));
    assert!(caught.is_err());
    assert_eq!((here(), current().is_none()), (0, true));
}

/// Of an epoch that is over once other tests' threads, which give its dead pages back, let it go.
fn refusal(epoch: u64) -> Option<i32> {
    for _ in 0..1000 {
        if let Err(error) = tslab::epoch_stats(epoch) {
            return Some(error.raw_os_error());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Answers with the epoch in which it is called, and that in which its future is polled.
#[derive(Clone)]
struct Told;

struct Twice(u64);

impl Future for Twice {
    type Output = Result<(u64, u64, Vec<u8>), Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok((self.0, here(), vec![1; 500])))
    }
}

impl Service<String> for Told {
    type Response = (u64, u64, Vec<u8>);
    type Error = Infallible;
    type Future = Twice;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: String) -> Twice {
        Twice(here())
    }
}

#[test]
fn each_request_has_an_epoch_that_its_response_may_outlive() {
    let layer = EpochLayer::new(|request: &String| Cow::from(format!("GET {request}")));
    let mut service = layer.layer(Told);
    let single = Builder::new_current_thread().build().unwrap();
    let mut answer = |path: &str| single.block_on(service.call(path.to_owned())).unwrap();
    let (called, polled, body) = answer("/upload");
    let (other, ..) = answer("/");
    assert!(called != 0 && called == polled && called != other);
    let stats = tslab::epoch_stats(called).unwrap();
    assert_eq!((stats.label.as_str(), stats.state), ("GET /upload", tslab::State::Closed));
    assert_eq!((stats.live_objects, body.len()), (1, 500));
    drop(body);
    assert_eq!(refusal(called), Some(116));
}

/// Keeps the label of the epoch in which it is called.
struct Label(Arc<Mutex<String>>);
impl Service<()> for Label {
    type Response = ();
    type Error = Infallible;
    type Future = Ready<Result<(), Infallible>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, (): ()) -> Self::Future {
        *self.0.lock().unwrap() = tslab::epoch_stats(here()).unwrap().label;
        ready(Ok(()))
    }
}

#[test]
fn long_labels_are_cut_where_a_letter_ends() {
    let long = "\u{e4}".repeat(40);
    let label = EpochLayer::new(move |(): &()| Cow::from(long.clone()));
    let seen = Arc::new(Mutex::new(String::new()));
    drop(label.layer(Label(Arc::clone(&seen))).call(()));
    assert_eq!(*seen.lock().unwrap(), "\u{e4}".repeat(31));
}
