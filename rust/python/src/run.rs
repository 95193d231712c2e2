//! The chokepoint: releases the interpreter, polls for Ctrl-C, reports progress, maps errors, picks the thread pool.

use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError},
    prelude::*,
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, OnceLock, TryLockError, mpsc},
    thread,
    time::Duration,
};
use userdp_core::{Error, control::Control};

/// How often a waiting call looks for Ctrl-C and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// How often a call looks whether another one is done with an object.
const LOCK_POLL: Duration = Duration::from_millis(1);

/// A thread pool and the process that built it. Threads do not survive a fork, so a child that finds its parent's
/// pool builds its own behind it; the chain is as long as the nesting of forks.
struct Pool {
    process: u32,
    threads: ThreadPool,
    child: OnceLock<Box<Pool>>,
}

fn pool() -> PyResult<&'static ThreadPool> {
    static ROOT: OnceLock<Box<Pool>> = OnceLock::new();
    let process = std::process::id();
    let mut slot = &ROOT;
    loop {
        if slot.get().is_none() {
            let threads = ThreadPoolBuilder::new()
                .thread_name(|index| format!("userdp-{index}"))
                .build()
                .map_err(|error| PyRuntimeError::new_err(format!("cannot start worker threads: {error}")))?;
            // A racing thread may have filled the slot: its pool serves, this one is dropped.
            let _ = slot.set(Box::new(Pool { process, threads, child: OnceLock::new() }));
        }
        match slot.get() {
            Some(found) if found.process == process => return Ok(&found.threads),
            Some(found) => slot = &found.child,
            None => {}
        }
    }
}

pub(crate) fn to_python(error: &Error) -> PyErr {
    match error {
        Error::Canceled => PyKeyboardInterrupt::new_err("interrupted"),
        Error::TooLarge { message } => budget_error(message),
        Error::Memory { message } => PyMemoryError::new_err(message.clone()),
        Error::Entropy { .. } | Error::Disk { .. } => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// `userdp.BudgetError`, from the Python side of the package.
fn budget_error(message: &str) -> PyErr {
    Python::attach(|py| {
        let kind = py.import("userdp.exceptions").and_then(|module| module.getattr("BudgetError"));
        match kind.and_then(|kind| kind.call1((message,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

fn internal_error() -> PyErr {
    PyRuntimeError::new_err(
        "internal error in userdp's core (a bug: please report it with the call that caused it)",
    )
}

/// What is behind a lock, once no other call works on it: without the interpreter lock while waiting, and until Ctrl-C.
///
/// A panic elsewhere does not close it: what it guards must be whole after every step, or say that it is not.
pub(crate) fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => py.detach(|| thread::sleep(LOCK_POLL)),
        }
        py.check_signals()?;
    }
}

/// Runs short work on the calling thread, keeping panics and errors out of Python's way.
pub(crate) fn run_short<T>(work: impl FnOnce() -> userdp_core::Result<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| to_python(&error)),
        Err(_) => Err(internal_error()),
    }
}

/// Runs work of any length on the pool while this thread waits for it, without the interpreter lock.
///
/// Every 50 ms it handles pending signals (in the main thread; Python delivers them nowhere else) and calls
/// `progress(done, total)`; an exception in either stops the work and is raised.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Control) -> userdp_core::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool()?;
    let control = Control::new();
    py.detach(|| {
        pool.in_place_scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let shared = &control;
            scope.spawn(move |_| {
                let outcome = catch_unwind(AssertUnwindSafe(|| work(shared)));
                // The receiver lives until this scope ends.
                let _ = sender.send(outcome);
            });
            let mut interruption = None;
            let outcome = loop {
                match receiver.recv_timeout(POLL) {
                    Ok(outcome) => break outcome,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(internal_error()),
                    Err(mpsc::RecvTimeoutError::Timeout) if interruption.is_none() => {
                        interruption = poll(shared, progress.as_ref()).err();
                        if interruption.is_some() {
                            shared.cancel();
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
            };
            match (interruption, outcome) {
                (Some(error), _) => Err(error),
                (None, Ok(result)) => result.map_err(|error| to_python(&error)),
                (None, Err(_)) => Err(internal_error()),
            }
        })
    })
}

fn poll(control: &Control, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(callback) = progress {
            callback.call1(py, control.progress())?;
        }
        Ok(())
    })
}
