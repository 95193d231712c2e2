//! What users send when nobody is given their data, and what that protects.

pub mod local;
pub mod shuffle;
