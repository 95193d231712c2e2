//! The matrix that a search works on: distinct rows, outputs that matter, padded for the vector units.

use super::{matrix::PmfMatrix, numerics::Numerics};
use crate::{
    Result,
    control::Control,
    simd::{
        Kernel,
        rows::{LANES, envelope},
    },
};
use rayon::prelude::*;
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

/// Rows per unit of parallel work.
pub(super) const CHUNK: usize = 4096;

/// Rows looked at to guess whether many are equal.
const SAMPLE: usize = 2048;

/// Some rows with their indices in the matrix.
#[derive(Debug, Clone, Default)]
pub(super) struct Side<'a> {
    /// Index of each row in the matrix.
    pub(super) ids: Cow<'a, [u32]>,
    /// The rows, `width` numbers each.
    pub(super) rows: Cow<'a, [f64]>,
}

impl Side<'_> {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Distinct rows restricted to the outputs that contribute to some pair.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) side: Side<'a>,
    /// Numbers per row, a multiple of [`LANES`]; zeros from `outputs` on.
    pub(super) width: usize,
    /// Outputs that matter.
    pub(super) outputs: usize,
    /// Mean of the rows.
    pub(super) mean: Vec<f64>,
    /// `sum (U - E L)+` of the envelopes, rounded up: no pair exceeds it.
    pub(super) envelope_bound: f64,
}

/// Column-wise minima, maxima and sums of the floats.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    total: Vec<f64>,
}

impl Envelope {
    pub(super) fn of(matrix: &PmfMatrix<'_>, control: &Control) -> Result<Self> {
        let outputs = matrix.outputs();
        let nothing = || Self {
            lower: vec![f64::INFINITY; outputs],
            upper: vec![f64::NEG_INFINITY; outputs],
            total: vec![0.0; outputs],
        };
        matrix
            .masses()
            .par_chunks(CHUNK * outputs)
            .map(|rows| {
                control.check()?;
                let mut found = nothing();
                envelope(Kernel::detect(), rows, &mut found.lower, &mut found.upper, &mut found.total);
                Ok(found)
            })
            .try_reduce(nothing, |mut a, b| {
                for output in 0..outputs {
                    a.lower[output] = a.lower[output].min(b.lower[output]);
                    a.upper[output] = a.upper[output].max(b.upper[output]);
                    a.total[output] += b.total[output];
                }
                Ok(a)
            })
    }
}

impl<'a> Work<'a> {
    /// The rows with the given indices.
    pub(super) fn new(
        matrix: &'a PmfMatrix<'_>,
        ids: Vec<u32>,
        found: &Envelope,
        numerics: &Numerics,
        control: &Control,
    ) -> Result<Self> {
        let active: Vec<usize> = (0..matrix.outputs())
            .filter(|&output| !numerics.never_contributes(found.lower[output], found.upper[output]))
            .collect();
        let outputs = active.len();
        let width = outputs.max(1).next_multiple_of(LANES);
        let mut mean = vec![0.0; width];
        let (mut envelope_bound, mut size) = (0.0, 0.0);
        for (mean, &output) in mean.iter_mut().zip(&active) {
            *mean = found.total[output] / matrix.rows() as f64;
            let scaled = numerics.multiplier * found.lower[output];
            envelope_bound += (found.upper[output] - scaled).max(0.0);
            size += found.upper[output] + scaled;
        }
        let envelope_bound = envelope_bound + numerics.sum_slack(size);
        let everything = ids.len() == matrix.rows() && width == matrix.outputs();
        let rows = if everything {
            Cow::Borrowed(matrix.masses())
        } else {
            let mut rows = vec![0.0; ids.len() * width];
            rows.par_chunks_mut(width * CHUNK).zip(ids.par_chunks(CHUNK)).try_for_each(|(rows, ids)| {
                for (row, &id) in rows.chunks_exact_mut(width).zip(ids) {
                    let masses = matrix.row(id as usize);
                    for (mass, &output) in row.iter_mut().zip(&active) {
                        *mass = masses[output];
                    }
                }
                control.check()
            })?;
            Cow::Owned(rows)
        };
        Ok(Self { side: Side { ids: ids.into(), rows }, width, outputs, mean, envelope_bound })
    }
}

pub(super) fn number_of_rows(matrix: &PmfMatrix<'_>) -> Result<u32> {
    u32::try_from(matrix.rows())
        .map_err(|_| crate::Error::too_large("more than 2^32 pmfs; search them in blocks"))
}

/// The first row of every group of equal rows, in order.
///
/// Rows are equal when their exact pmfs are: floats that stand for other exact masses are left as they are.
pub(super) fn distinct_rows(matrix: &PmfMatrix<'_>, control: &Control) -> Result<Vec<u32>> {
    let rows = number_of_rows(matrix)?;
    let all = || (0..rows).collect::<Vec<u32>>();
    if !matrix.is_float() || rows == 0 {
        return Ok(all());
    }
    let step = (rows as usize).div_ceil(SAMPLE);
    let sampled = first_of_equals(matrix, (0..rows).step_by(step), control)?.len();
    if sampled + 2 > (rows as usize).div_ceil(step) {
        return Ok(all());
    }
    first_of_equals(matrix, 0..rows, control)
}

fn first_of_equals(
    matrix: &PmfMatrix<'_>,
    rows: impl Iterator<Item = u32>,
    control: &Control,
) -> Result<Vec<u32>> {
    let same = |a: u32, b: u32| {
        let bits = |row: u32| matrix.row(row as usize).iter().map(|mass| mass.to_bits());
        bits(a).eq(bits(b))
    };
    // Rows with one fingerprint are compared: a chance agreement must not drop a row.
    let mut groups: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut distinct = Vec::new();
    for (count, row) in rows.enumerate() {
        if count % 1024 == 0 {
            control.check()?;
        }
        match groups.entry(fingerprint(matrix.row(row as usize))) {
            Entry::Vacant(entry) => {
                entry.insert(vec![row]);
                distinct.push(row);
            }
            Entry::Occupied(mut entry) => {
                if !entry.get().iter().any(|&known| same(known, row)) {
                    entry.get_mut().push(row);
                    distinct.push(row);
                }
            }
        }
    }
    Ok(distinct)
}

fn fingerprint(row: &[f64]) -> u64 {
    row.iter().fold(0x9E37_79B9_7F4A_7C15, |hash: u64, mass| {
        (hash ^ mass.to_bits()).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29)
    })
}
