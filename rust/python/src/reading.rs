//! Columns of cells, and what they are read as.

use crate::{
    convert::Items,
    run::{run, run_short, to_python},
    table::PyTableIndex,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::{
    PyTypeInfo,
    exceptions::PyValueError,
    ffi::PyTypeObject,
    intern,
    prelude::*,
    types::{PyBool, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyString, PyTuple},
};
use std::sync::Arc;
use userdp_core::{
    Result,
    control::Control,
    reading::{
        Cell, Spelling,
        column::{Column, Joined, Kind, Owners, Values, owners},
        numbers::Marks,
        objects::{Objects, Taken},
        times::{DAY, Format, Unit},
    },
};

/// Fewer rows than this are read before another thread has them.
const SHORT: usize = 1 << 14;

/// Objects between two looks at Ctrl-C.
const CHECK_EVERY: usize = 1 << 16;

/// The days of a date's ordinal at 1970.
const EPOCH: i64 = 719_163;

type Rows<'py, T> = (Bound<'py, PyArray1<T>>, Bound<'py, PyArray1<u8>>);
type Missing<'py> = Option<PyReadonlyArray1<'py, bool>>;

/// A column of cells.
#[pyclass(frozen, name = "Column", module = "userdp._core")]
pub(crate) struct PyColumn(Arc<Column>);

fn made(values: Values, missing: Missing<'_>, marks: Marks) -> PyResult<PyColumn> {
    let missing = missing.map(|missing| missing.as_slice().map(<[bool]>::to_vec)).transpose()?;
    run_short(|| Column::new(values, missing, marks)).map(|column| PyColumn(Arc::new(column)))
}

/// How texts write numbers: one byte, and one byte or nothing.
fn marks_of(decimal: &str, thousands: Option<&str>, point: bool) -> PyResult<Marks> {
    let wrong = || PyValueError::new_err("marks of numbers are single characters");
    let [decimal] = decimal.as_bytes() else { return Err(wrong()) };
    let thousands = match thousands.map(|text| (text.chars().next(), text.chars().count())) {
        Some((Some(mark), 1)) => Some(mark),
        None => None,
        Some(_) => return Err(wrong()),
    };
    Ok(Marks { decimal: *decimal, thousands, point })
}

fn spelling_of(spelling: &str) -> PyResult<Spelling> {
    match spelling {
        "doubles" => Ok(Spelling::Doubles),
        "digits" => Ok(Spelling::Digits),
        "written" => Ok(Spelling::Written),
        _ => Err(PyValueError::new_err("spelling: must be 'doubles', 'digits' or 'written'")),
    }
}

impl PyColumn {
    /// Runs work on all rows where it is fastest.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Column, &Control) -> Result<T> + Send,
    ) -> PyResult<T> {
        let column = &*self.0;
        if column.len() < SHORT {
            run_short(|| work(column, &Control::new()))
        } else {
            run(py, None, |control| work(column, control))
        }
    }
}

fn rows<T: numpy::Element>(py: Python<'_>, (values, status): (Vec<T>, Vec<u8>)) -> Rows<'_, T> {
    (values.into_pyarray(py), status.into_pyarray(py))
}

#[pymethods]
impl PyColumn {
    /// A column of bools.
    #[staticmethod]
    #[pyo3(signature = (values, missing = None))]
    fn bools(values: PyReadonlyArray1<'_, bool>, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Bools(values.as_slice()?.to_vec()), missing, Marks::default())
    }

    /// A column of integers.
    #[staticmethod]
    #[pyo3(signature = (values, missing = None))]
    fn integers(values: PyReadonlyArray1<'_, i64>, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Integers(values.as_slice()?.to_vec()), missing, Marks::default())
    }

    /// A column of integers that are not negative.
    #[staticmethod]
    #[pyo3(signature = (values, missing = None))]
    fn unsigned(values: PyReadonlyArray1<'_, u64>, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Unsigned(values.as_slice()?.to_vec()), missing, Marks::default())
    }

    /// A column of doubles, where NaN is missing.
    #[staticmethod]
    #[pyo3(signature = (values, missing = None))]
    fn floats(values: PyReadonlyArray1<'_, f64>, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Floats(values.as_slice()?.to_vec()), missing, Marks::default())
    }

    /// A column of times, in so many of a unit ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "day of ms").
    #[staticmethod]
    #[pyo3(signature = (values, unit, count = 1, missing = None))]
    fn times(
        values: PyReadonlyArray1<'_, i64>,
        unit: &str,
        count: i64,
        missing: Missing<'_>,
    ) -> PyResult<Self> {
        let of = |nanoseconds: i64| nanoseconds.checked_mul(count).map_or(Unit::Unknown, Unit::Nanoseconds);
        let unit = match unit {
            "Y" => count.checked_mul(12).map_or(Unit::Unknown, Unit::Months),
            "M" => Unit::Months(count),
            "W" => of(7 * DAY * 1000),
            "D" => of(DAY * 1000),
            "h" => of(3_600_000_000_000),
            "m" => of(60_000_000_000),
            "s" => of(1_000_000_000),
            "ms" => of(1_000_000),
            "us" => of(1000),
            "ns" => of(1),
            "day of ms" => Unit::DayOfMilliseconds,
            _ => Unit::Unknown,
        };
        made(Values::Times(values.as_slice()?.to_vec(), unit), missing, Marks::default())
    }

    /// A column of times of day, in so many nanoseconds.
    #[staticmethod]
    #[pyo3(signature = (values, nanoseconds, missing = None))]
    fn clocks(values: PyReadonlyArray1<'_, i64>, nanoseconds: i64, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Clocks(values.as_slice()?.to_vec(), nanoseconds), missing, Marks::default())
    }

    /// A column of decimals: integers of `width` bytes in little-endian order, divided by 10^scale.
    #[staticmethod]
    #[pyo3(signature = (content, width, scale, missing = None))]
    fn decimals(
        content: PyReadonlyArray1<'_, u8>,
        width: usize,
        scale: i32,
        missing: Missing<'_>,
    ) -> PyResult<Self> {
        made(
            Values::Decimals { bytes: content.as_slice()?.to_vec(), width, scale },
            missing,
            Marks::default(),
        )
    }

    /// A column of texts, or of bytes of which nobody has said that they are texts, from one offset to the next.
    #[staticmethod]
    #[pyo3(signature = (content, offsets, *, binary = false, missing = None, decimal = ".", thousands = None))]
    fn texts(
        content: PyReadonlyArray1<'_, u8>,
        offsets: PyReadonlyArray1<'_, i64>,
        binary: bool,
        missing: Missing<'_>,
        decimal: &str,
        thousands: Option<&str>,
    ) -> PyResult<Self> {
        let marks = marks_of(decimal, thousands, decimal == ".")?;
        let values = Values::Texts {
            bytes: content.as_slice()?.to_vec(),
            offsets: offsets.as_slice()?.to_vec(),
            kind: if binary { Kind::Bytes } else { Kind::Text },
        };
        made(values, missing, marks)
    }

    /// A column of Python's objects. Those of other classes than Python's usual ones are taken apart by a function.
    #[staticmethod]
    fn objects(
        py: Python<'_>,
        values: PyReadonlyArray1<'_, Py<PyAny>>,
        taken: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (values, classes) = (values.as_slice()?, Classes::new(py)?);
        let mut objects = Objects::with_room(values.len()).map_err(|error| to_python(&error))?;
        for (number, value) in values.iter().enumerate() {
            if number % CHECK_EVERY == 0 {
                py.check_signals()?;
            }
            hold(&mut objects, value.bind(py), &classes, taken)?;
        }
        made(Values::Objects(objects), None, Marks::default())
    }

    /// A column of places in another one; negative ones are missing.
    #[staticmethod]
    #[pyo3(signature = (codes, of, missing = None))]
    fn coded(codes: PyReadonlyArray1<'_, i64>, of: PyRef<'_, Self>, missing: Missing<'_>) -> PyResult<Self> {
        made(Values::Coded(codes.as_slice()?.to_vec(), of.0.clone()), missing, Marks::default())
    }

    /// Columns one after the other.
    #[staticmethod]
    fn joined(columns: Items<Py<Self>>) -> PyResult<Self> {
        let columns = columns.iter().map(|column| column.get().0.clone()).collect();
        made(Values::Joined(Joined::new(columns)), None, Marks::default())
    }

    /// A column of so many cells that nothing reads.
    #[staticmethod]
    fn unreadable(count: usize) -> PyResult<Self> {
        made(Values::Odd(count), None, Marks::default())
    }

    /// The same texts as exact numbers, which they must be: of types that have no other form.
    fn as_numbers(&self) -> Self {
        Self(Arc::new(self.0.as_numbers()))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The numbers of all rows, and 0, 1 or 2: there is one, there is nothing, there is something else.
    #[pyo3(signature = (decimal = None, thousands = None))]
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        decimal: Option<&str>,
        thousands: Option<&str>,
    ) -> PyResult<Rows<'py, f64>> {
        let marks = decimal.map(|decimal| marks_of(decimal, thousands, true)).transpose()?;
        self.run(py, |column, control| column.numbers(marks, control)).map(|found| rows(py, found))
    }

    /// Whole numbers, saturated at 2**53.
    #[pyo3(signature = (decimal = None, thousands = None))]
    fn wholes<'py>(
        &self,
        py: Python<'py>,
        decimal: Option<&str>,
        thousands: Option<&str>,
    ) -> PyResult<Rows<'py, i64>> {
        let marks = decimal.map(|decimal| marks_of(decimal, thousands, true)).transpose()?;
        self.run(py, |column, control| column.wholes(marks, control)).map(|found| rows(py, found))
    }

    /// Whole numbers from 0 to 2**64 - 1 with all their digits: rounded up, and clamped.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py, u64>> {
        self.run(py, Column::points).map(|found| rows(py, found))
    }

    /// Whether each row says true, and whether it says true or false.
    fn booleans<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py, bool>> {
        self.run(py, Column::booleans).map(|found| rows(py, found))
    }

    /// Microseconds since 1970, by a declared format too.
    #[pyo3(signature = (format = None))]
    fn microseconds<'py>(&self, py: Python<'py>, format: Option<&str>) -> PyResult<Rows<'py, i64>> {
        let format = format.map(format_of).transpose()?;
        self.run(py, |column, control| column.times(format.as_ref(), control)).map(|found| rows(py, found))
    }

    /// The place of each row's text, whether it has one, and the texts.
    #[allow(clippy::type_complexity)]
    #[pyo3(signature = (spelling, decimal = None, thousands = None))]
    fn interned<'py>(
        &self,
        py: Python<'py>,
        spelling: &str,
        decimal: Option<&str>,
        thousands: Option<&str>,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u8>>, Vec<String>)> {
        let spelling = spelling_of(spelling)?;
        let marks = decimal.map(|decimal| marks_of(decimal, thousands, decimal == ".")).transpose()?;
        let found = self.run(py, |column, control| column.texts(spelling, marks, control))?;
        Ok((found.places.into_pyarray(py), found.status.into_pyarray(py), found.texts))
    }
}

fn format_of(format: &str) -> PyResult<Format> {
    Format::new(format).map_err(PyValueError::new_err)
}

/// Refuses a format of times, in words.
#[pyfunction]
pub(crate) fn check_time_format(format: &str) -> PyResult<()> {
    format_of(format).map(|_| ())
}

/// The codes of rows' owners in an index, and whether each row has one.
#[pyfunction]
pub(crate) fn owner_codes<'py>(
    py: Python<'py>,
    index: PyRef<'py, PyTableIndex>,
    columns: Items<Py<PyColumn>>,
    spellings: Items<String>,
) -> PyResult<Rows<'py, u32>> {
    let spellings = spellings.iter().map(|one| spelling_of(one)).collect::<PyResult<Vec<_>>>()?;
    let columns: Vec<Arc<Column>> = columns.iter().map(|column| column.get().0.clone()).collect();
    let len = columns.first().map_or(0, |column| column.len());
    if let ([column], [spelling]) = (&columns[..], &spellings[..])
        && let Some((integers, status)) = column.owned_by_integers(*spelling)
    {
        let codes = index.codes(py, len, |index, control| index.integers(integers, control))?;
        return Ok((codes, status.into_pyarray(py)));
    }
    let read = |control: &Control| -> Result<Owners> {
        let both: Vec<_> = columns.iter().map(Arc::as_ref).zip(spellings.iter().copied()).collect();
        owners(&both, control)
    };
    let found = if len < SHORT { run_short(|| read(&Control::new())) } else { run(py, None, read) }?;
    let codes = index.codes(py, len, |index, control| index.owners(&found, control))?;
    Ok((codes, found.status.into_pyarray(py)))
}

// --- objects, by their exact classes

/// The classes that are read here, by their addresses.
struct Classes {
    text: *mut PyTypeObject,
    float: *mut PyTypeObject,
    whole: *mut PyTypeObject,
    truth: *mut PyTypeObject,
    date: *mut PyTypeObject,
    datetime: *mut PyTypeObject,
    /// The beginning of 1970.
    epoch: Py<PyDateTime>,
}

impl Classes {
    fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            text: PyString::type_object_raw(py),
            float: PyFloat::type_object_raw(py),
            whole: PyInt::type_object_raw(py),
            truth: PyBool::type_object_raw(py),
            date: py.get_type::<PyDate>().as_type_ptr(),
            datetime: py.get_type::<PyDateTime>().as_type_ptr(),
            epoch: PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, None)?.unbind(),
        })
    }
}

/// Adds an object. What is of no class that is known here goes to a function, which takes it apart.
fn hold(
    objects: &mut Objects,
    value: &Bound<'_, PyAny>,
    classes: &Classes,
    taken: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let kind = value.get_type_ptr();
    let cell = if kind == classes.text || (kind != classes.float && value.is_instance_of::<PyString>()) {
        // Classes made from these are read by what Python keeps of them, and not by methods of theirs.
        match value.cast::<PyString>()?.to_str() {
            Ok(text) => Cell::Text(text),
            Err(_) => return held(objects, &taken.call1((value,))?),
        }
    } else if value.is_none() {
        Cell::Missing
    } else if kind == classes.float {
        Cell::Float(value.cast::<PyFloat>()?.value())
    } else if kind == classes.truth {
        Cell::Bool(value.is_truthy()?)
    } else if kind == classes.whole || value.is_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(number) => Cell::Whole(i128::from(number)),
            Err(_) => return held(objects, &taken.call1((value,))?),
        }
    } else if let Ok(number) = value.cast::<PyFloat>() {
        Cell::Float(number.value())
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        Cell::Bytes(bytes.as_bytes())
    } else if kind == classes.date {
        Cell::Time(day_of(value)? * DAY)
    } else if kind == classes.datetime && value.getattr(intern!(value.py(), "tzinfo"))?.is_none() {
        // With a zone Python would ask the zone, which may be of any class.
        Cell::Time(microseconds(&value.sub(classes.epoch.bind(value.py()))?)?)
    } else {
        return held(objects, &taken.call1((value,))?);
    };
    pushed(objects, cell)
}

fn pushed(objects: &mut Objects, cell: Cell<'_>) -> PyResult<()> {
    objects.push(cell).map_err(|error| to_python(&error))
}

/// The days of a date since 1970.
fn day_of(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(value.call_method0(intern!(value.py(), "toordinal"))?.extract::<i64>()? - EPOCH)
}

/// The microseconds of a difference of times.
fn microseconds(since: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = since.py();
    let part = |name: &Bound<'_, PyString>| since.getattr(name)?.extract::<i64>();
    let seconds = part(intern!(py, "days"))? * 86_400 + part(intern!(py, "seconds"))?;
    Ok(seconds * 1_000_000 + part(intern!(py, "microseconds"))?)
}

/// Adds a value by the tuple that it was taken apart to.
fn held(objects: &mut Objects, form: &Bound<'_, PyAny>) -> PyResult<()> {
    objects.push_taken(&taken_of(form)?).map_err(|error| to_python(&error))
}

fn taken_of(form: &Bound<'_, PyAny>) -> PyResult<Taken> {
    let form = form.cast::<PyTuple>()?;
    let kind = form.get_item(0)?;
    let item = |place: usize| form.get_item(place);
    Ok(match kind.cast::<PyString>()?.to_str()? {
        "missing" => Taken::Plain(Cell::Missing),
        "bool" => Taken::Plain(Cell::Bool(item(1)?.extract()?)),
        "whole" => Taken::Plain(Cell::Whole(i128::from(item(1)?.extract::<i64>()?))),
        "float" => Taken::Plain(Cell::Float(item(1)?.extract()?)),
        "time" => Taken::Plain(Cell::Time(item(1)?.extract()?)),
        "clock" => Taken::Plain(Cell::Clock(item(1)?.extract()?)),
        "decimal" => Taken::Decimal(item(1)?.extract()?),
        "text" => Taken::Text(item(1)?.extract()?),
        "broken" => Taken::Broken(item(1)?.extract()?),
        "bytes" => Taken::Bytes(item(1)?.cast::<PyBytes>()?.as_bytes().to_vec()),
        "period" => Taken::Period(item(1)?.extract()?, item(2)?.extract()?),
        "interval" => Taken::Interval(
            Box::new((taken_of(&item(1)?)?, taken_of(&item(2)?)?)),
            item(3)?.extract()?,
            item(4)?.extract()?,
        ),
        "tuple" => {
            let parts = item(1)?;
            let parts = parts.cast::<PyTuple>()?;
            Taken::Tuple(parts.iter().map(|part| taken_of(&part)).collect::<PyResult<_>>()?)
        }
        _ => Taken::Plain(Cell::Odd),
    })
}
