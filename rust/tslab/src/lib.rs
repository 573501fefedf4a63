//! A memory allocator that knows when objects live.
//!
//! [`TemporalSlab`] is the program's allocator. An [`Epoch`] is a lifetime that the program
//! declares, such as a request: what threads allocate [inside](Epoch::enter) shares memory with no
//! other epoch's objects. It is *closed*, which never invalidates anything. An [`Arena`] is a
//! lifetime whose objects borrow it; it is *released*, and the borrow checker sees that nobody
//! looks at them afterwards. Futures enter an epoch at every poll ([`InEpoch`]), a tower layer
//! opens one for each request (`EpochLayer`).
//!
//! There is no guard that a program could hold on to: [`Epoch::enter`] takes a closure, so that
//! scopes are left in their order, on their thread, and never across an `await`:
//!
//! ```compile_fail,E0728
//! # async fn read() {}
//! # async fn serve(request: &tslab::Epoch) {
//! request.enter(|| read().await);
//! # }
//! ```
//!
//! [`pprof`] is the process's own heap profile, in pprof's format; `tslab profile PID` and
//! `tslab serve` write profiles of other processes, with names and ages.
//!
//! | feature | has |
//! |---|---|
//! | `allocator-api2` | `&Epoch` and `&Arena` as allocators of containers |
//! | `tower` | `EpochLayer` |
//! | `tokio` | `task::spawn`, which goes on in the current epoch |
//! | `override` | C's malloc is replaced, too: epochs hold what C and C++ allocate |
//! | `secure` | the hardened build |
//! | `system` | the installed `libtslab-preload`, found by pkg-config; replaces C's malloc |

#[cfg(feature = "allocator-api2")]
mod allocator;
mod arena;
mod block;
mod epoch;
mod error;
mod future;
mod global;
#[cfg(feature = "tower")]
mod layer;
mod message;
mod owner;
mod process;
mod profile;
mod scope;
mod segment;
mod stats;
#[cfg(feature = "tokio")]
pub mod task;

pub use arena::Arena;
pub use epoch::{Epoch, Survivors, outside};
pub use error::{Error, Result};
pub use future::{FutureExt, InEpoch, current};
pub use global::{TemporalSlab, captures};
#[cfg(feature = "tower")]
pub use layer::{EpochLayer, EpochService};
pub use owner::{Options, Place, Purge};
pub use process::{option, set_option, trim, version};
pub use profile::pprof;
pub use stats::{EpochStats, State, Stats, epoch_stats, epochs, stats, stats_json};

// The documents' code is compiled and run with that of this crate.
#[cfg(all(doctest, feature = "allocator-api2", feature = "tokio", feature = "tower"))]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../README.md")]
struct Documents;
