//! The one error type of the crate.

use std::fmt;

/// Why a request could not be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside what is accepted; the message says what is.
    InvalidArgument {
        /// The argument's public name.
        argument: &'static str,
        /// What is wrong with it and what is accepted.
        message: String,
    },
    /// The caller asked for the work to stop.
    Cancelled,
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::InvalidArgument`].
    pub fn invalid(argument: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidArgument { argument, message: message.into() }
    }

    /// True when the work was stopped on request.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArgument { argument, message } => write!(f, "{argument}: {message}"),
            Self::Cancelled => write!(f, "cancelled"),
        }
    }
}

impl std::error::Error for Error {}
