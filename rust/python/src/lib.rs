//! binding
use pyo3::prelude::*;
/// The compiled core.
#[pymodule]
mod _core {}
