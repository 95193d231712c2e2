//! Protocols of many parties: the noise of every user, and what all of it together protects.

pub mod shuffle;
