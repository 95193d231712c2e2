//! What users send when nobody is given their data.

pub mod local;
