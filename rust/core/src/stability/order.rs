//! All deletion vectors, in an order whose blocks are tight boxes.

use crate::{Result, control::Control};

/// Below this many vectors a block is no longer split.
const LEAF: usize = 4;
/// Blocks above this length are split in parallel, and look at the control.
const PARALLEL: usize = 1 << 12;

/// Deletion vectors by axis, in lexicographic order, and the order that makes blocks tight.
#[derive(Debug)]
pub(super) struct Vectors {
    axes: usize,
    /// Row after row, lexicographically.
    pub(super) coordinates: Vec<u16>,
    /// Lexicographic rank of each row of the arranged order.
    pub(super) order: Vec<u32>,
}

impl Vectors {
    /// All t <= counts of sum `deletions`.
    pub(super) fn new(counts: &[usize], deletions: usize, control: &Control) -> Result<Self> {
        let mut coordinates = Vec::new();
        append(counts, deletions, &mut vec![0; counts.len()], 0, &mut coordinates, control)?;
        let axes = counts.len();
        let mut order: Vec<u32> = (0_u32..).take(coordinates.len() / axes).collect();
        split(&coordinates, axes, &mut order, control)?;
        Ok(Self { axes, coordinates, order })
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The vectors in the arranged order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u16]> {
        self.order.iter().map(|&rank| row(&self.coordinates, self.axes, rank))
    }

    /// Brings values from lexicographic to arranged order.
    pub(super) fn arrange<T: Clone>(&self, lexicographic: &[T]) -> Vec<T> {
        self.order.iter().map(|&rank| lexicographic[rank as usize].clone()).collect()
    }
}

fn row(coordinates: &[u16], axes: usize, rank: u32) -> &[u16] {
    &coordinates[rank as usize * axes..][..axes]
}

fn append(
    counts: &[usize],
    remaining: usize,
    vector: &mut Vec<u16>,
    axis: usize,
    coordinates: &mut Vec<u16>,
    control: &Control,
) -> Result<()> {
    let capacity: usize = counts[axis + 1..].iter().sum();
    for taken in remaining.saturating_sub(capacity)..=counts[axis].min(remaining) {
        // Deletions fit 16 bits, or the family is refused.
        #[allow(clippy::cast_possible_truncation)]
        {
            vector[axis] = taken as u16;
        }
        if axis + 1 == counts.len() {
            coordinates.extend_from_slice(vector);
        } else {
            append(counts, remaining - taken, vector, axis + 1, coordinates, control)?;
        }
    }
    if axis + 2 == counts.len() { control.check() } else { Ok(()) }
}

/// Halves a block at the median of the axis of largest variance, and so on.
fn split(coordinates: &[u16], axes: usize, block: &mut [u32], control: &Control) -> Result<()> {
    if block.len() <= LEAF {
        block.sort_unstable();
        return Ok(());
    }
    let mut sums = vec![(0_u64, 0_u64); axes];
    for &rank in &*block {
        for (sum, &x) in sums.iter_mut().zip(row(coordinates, axes, rank)) {
            sum.0 += u64::from(x);
            sum.1 += u64::from(x) * u64::from(x);
        }
    }
    let count = block.len() as u128;
    let variance =
        |&(sum, squares): &(u64, u64)| count * u128::from(squares) - u128::from(sum) * u128::from(sum);
    let axis = (0..axes).max_by_key(|&axis| variance(&sums[axis])).unwrap_or(0);
    let half = block.len() / 2;
    block.select_nth_unstable_by_key(half, |&rank| (row(coordinates, axes, rank)[axis], rank));
    let (low, high) = block.split_at_mut(half);
    if low.len() < PARALLEL {
        split(coordinates, axes, low, control)?;
        return split(coordinates, axes, high, control);
    }
    control.check()?;
    let (low, high) =
        rayon::join(|| split(coordinates, axes, low, control), || split(coordinates, axes, high, control));
    low.and(high)
}
