//! Patterns of whole texts.

use crate::{
    convert::Items,
    run::{run, run_short},
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::{
    exceptions::PyValueError,
    intern,
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::{PyBytes, PyString},
};
use userdp_core::{control::Control, table::patterns::Pattern};

/// Fewer bytes and texts than this are looked at before another thread has them.
const SHORT: usize = 1 << 11;

/// A text where Python has it, or a copy of one with lone surrogates, each as three bytes.
enum Text {
    Shared(PyBackedStr),
    Surrogates(PyBackedBytes),
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Shared(text) => text.as_ref(),
            Self::Surrogates(bytes) => bytes.as_ref(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        if let Ok(shared) = PyBackedStr::try_from(text.to_owned()) {
            return Ok(Self::Shared(shared));
        }
        let py = object.py();
        // By the method of `str` itself: classes made from it have their own.
        let encode = py.get_type::<PyString>().getattr(intern!(py, "encode"))?;
        let bytes = encode.call1((text, intern!(py, "utf-8"), intern!(py, "surrogatepass")))?;
        Ok(Self::Surrogates(bytes.cast_into::<PyBytes>()?.into()))
    }
}

/// A public pattern, given by the numbers of its characters.
#[pyclass(frozen, name = "Pattern", module = "userdp._core")]
pub(crate) struct PyPattern(Pattern);

#[pymethods]
impl PyPattern {
    #[new]
    fn new(pattern: Items<u32>) -> PyResult<Self> {
        run_short(|| Ok(Pattern::new(&pattern)))?.map(Self).map_err(PyValueError::new_err)
    }

    /// Whether each text is as the pattern says, as a whole.
    fn matches<'py>(&self, py: Python<'py>, texts: Items<Text>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let work = texts.iter().fold(texts.len(), |work, text| work.saturating_add(text.as_ref().len()));
        let found = if work < SHORT {
            run_short(|| self.0.matches(&texts, &Control::new()))
        } else {
            run(py, None, |control| self.0.matches(&texts, control))
        };
        Ok(found?.into_pyarray(py))
    }
}
