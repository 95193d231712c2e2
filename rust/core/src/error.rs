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
    /// The work is larger than what is allowed; the message says how large, and what is cheaper.
    TooLarge {
        /// The estimate and the cheaper option.
        message: String,
    },
    /// The machine has no memory for it.
    Memory {
        /// How much, and for which argument.
        message: String,
    },
    /// A temporary file could not be made, written or read; the message says nothing of what is in it.
    Disk {
        /// What failed, in the words of the standard library.
        message: String,
    },
    /// The caller asked for the work to stop.
    Canceled,
    /// The operating system gave no random bits.
    Entropy {
        /// Its own words.
        message: String,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::InvalidArgument`].
    pub fn invalid(argument: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidArgument { argument, message: message.into() }
    }

    /// An [`Error::TooLarge`].
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::TooLarge { message: message.into() }
    }

    /// An [`Error::Memory`].
    pub fn memory(message: impl Into<String>) -> Self {
        Self::Memory { message: message.into() }
    }

    /// An [`Error::Disk`].
    pub fn disk(message: impl Into<String>) -> Self {
        Self::Disk { message: message.into() }
    }

    /// The same error, saying which row of a matrix it is about.
    #[must_use]
    pub fn in_row(self, row: usize) -> Self {
        match self {
            Self::InvalidArgument { argument, message } => {
                Self::InvalidArgument { argument, message: format!("row {row}: {message}") }
            }
            other => other,
        }
    }

    /// True when the work was stopped on request.
    pub fn is_canceled(&self) -> bool {
        matches!(self, Self::Canceled)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArgument { argument, message } => write!(f, "{argument}: {message}"),
            Self::TooLarge { message } | Self::Memory { message } | Self::Disk { message } => {
                write!(f, "{message}")
            }
            Self::Canceled => write!(f, "canceled"),
            Self::Entropy { message } => write!(f, "the operating system gave no random bits: {message}"),
        }
    }
}

impl std::error::Error for Error {}
