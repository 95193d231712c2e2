//! Rows grouped by user.
