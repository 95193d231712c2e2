//! Canceling a long computation and watching its progress.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between the thread that works and the one that waits for it.
#[derive(Debug, Default)]
pub struct Control {
    canceled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Control {
    /// A control of work that nobody has canceled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to stop at its next check.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::Relaxed);
    }

    /// Announces how many steps the work has.
    pub fn set_total(&self, steps: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(steps as u64, Ordering::Relaxed);
    }

    /// Counts `steps` as done, and fails when the work was canceled.
    ///
    /// # Errors
    /// [`Error::Canceled`] after [`Control::cancel`].
    pub fn advance(&self, steps: usize) -> Result<()> {
        self.done.fetch_add(steps as u64, Ordering::Relaxed);
        self.check()
    }

    /// Fails when the work was canceled.
    ///
    /// # Errors
    /// [`Error::Canceled`] after [`Control::cancel`].
    pub fn check(&self) -> Result<()> {
        if self.canceled.load(Ordering::Relaxed) { Err(Error::Canceled) } else { Ok(()) }
    }

    /// (steps done, steps in all).
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}
