//! What others ask of a recording, by signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// Signals that came.
#[derive(Debug, Default)]
pub struct Asked {
    dump: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
}

impl Asked {
    /// From now on no signal of them ends this command.
    pub fn listen() -> Result<Self> {
        let asked = Self::default();
        signal_hook::flag::register(SIGUSR1, Arc::clone(&asked.dump))?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&asked.end))?;
        }
        signal_hook::flag::register(SIGTERM, Arc::clone(&asked.terminate))?;
        Ok(asked)
    }

    /// Whether a dump was asked for since the last call.
    pub fn to_dump(&self) -> bool {
        self.dump.swap(false, Ordering::Relaxed)
    }

    /// Whether the recording is to end.
    pub fn to_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether SIGTERM came since the last call.
    pub fn to_terminate(&self) -> bool {
        self.terminate.swap(false, Ordering::Relaxed)
    }
}
