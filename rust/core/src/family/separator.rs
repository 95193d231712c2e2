//! Separators: any vector v bounds all pairs of two lists at once, after one pass over each.
//!
//! `(p - E q)+ <= (p - v)+ + (v - E q)+` output by output, so `d(P || Q) <= A(P) + B(Q)` with `A(P) = sum (P - v)+` and
//! `B(Q) = sum (v - E Q)+`: a row P with `A(P) + max B` at or below the floor is in no pair that matters, and so for Q.
//! `max A + max B` is convex in v; a few Polyak steps toward the floor on a sample of rows improve it. Any v is valid,
//! so the sample and the steps cannot make the bound wrong.

use super::{
    brute,
    events::{alternate, strided},
    ordering::ordered,
    problem::Problem,
    work::{CHUNK, Side, Work},
};
use crate::{
    Result,
    simd::rows::{sums_above, sums_above_and_below, sums_below},
};
use rayon::prelude::*;

/// Pairs that register tiles evaluate faster than separators bound them.
const TILE_PAIRS: usize = 1 << 18;

/// Rows of a side that a separator is fitted to.
const SAMPLE: usize = 192;

/// Steps of the fit within the recursion, and at the root.
const STEPS: usize = 6;
const ROOT_STEPS: usize = 40;

/// Rows between two looks whether a separator has failed.
const GLANCE: usize = 8;

/// Rows of the root's sample.
const ROOT_SAMPLE: usize = 3072;

/// Pairs that survive the root filter above which the incumbent is improved before going on.
const MANY_PAIRS: usize = 1 << 22;

/// A product is searched by tiles when its first halvings keep more than this share of their pairs.
const HOPELESS: f64 = 0.6;

/// Rows of each side that are ordered for a first trial, whose blocks are wider than the real ones; and the share that
/// tells beyond doubt.
const FIRST_TRIAL: usize = 2048;
const HOPELESS_SAMPLE: f64 = 0.97;

/// The sums above and below a separator of some rows.
type Sums = (Vec<f64>, Vec<f64>);

/// Searches all pairs of the rows of `work`.
pub(super) fn search(problem: &Problem<'_>, work: &Work<'_>) -> Result<()> {
    let width = work.width;
    let rows = &work.side;
    let start: Vec<f64> =
        work.mean.iter().map(|mean| 0.5 * (1.0 + problem.numerics.multiplier) * mean).collect();
    let sample = strided(rows, width, ROOT_SAMPLE);
    let separator = fitted(problem, &sample, &sample, start, ROOT_STEPS)?;
    let Some((mut x, mut y)) = root_filter(problem, rows, &separator)? else { return Ok(()) };
    if !problem.is_verdict() && x.len() * y.len() > MANY_PAIRS {
        alternate(problem, &x, width, work.outputs, (24, 2048))?;
        alternate(problem, &y, width, work.outputs, (24, 2048))?;
    }
    loop {
        let before = x.len() * y.len();
        if before <= TILE_PAIRS {
            return brute::all_pairs(problem, &x, &y, width);
        }
        if !filter(problem, &mut x, &mut y, width, ROOT_STEPS)? {
            return Ok(());
        }
        if (x.len() * y.len()) as f64 > 0.8 * before as f64 {
            break;
        }
    }
    let small = |side: &Side<'_>| ordered(&strided(side, width, FIRST_TRIAL), width, problem.control);
    if surviving(problem, &small(&x)?, &small(&y)?, width)? > HOPELESS_SAMPLE {
        return brute::all_pairs(problem, &x, &y, width);
    }
    let (x, y) = (ordered(&x, width, problem.control)?, ordered(&y, width, problem.control)?);
    if surviving(problem, &x, &y, width)? > HOPELESS {
        return brute::all_pairs(problem, &x, &y, width);
    }
    recurse(problem, x, y, width)
}

/// `v` moved by subgradient steps of Polyak's length toward the floor; the best on the way.
fn fitted(
    problem: &Problem<'_>,
    x: &Side<'_>,
    y: &Side<'_>,
    start: Vec<f64>,
    steps: usize,
) -> Result<Vec<f64>> {
    let (width, multiplier, goal) = (start.len(), problem.numerics.multiplier, problem.floor());
    let (mut separator, mut best, mut best_bound) = (start.clone(), start, f64::INFINITY);
    let (mut above, mut below) = (Vec::with_capacity(x.len()), Vec::with_capacity(y.len()));
    for _ in 0..steps {
        problem.control.check()?;
        above.clear();
        below.clear();
        sums_above(problem.kernel, &x.rows, &separator, &mut above);
        sums_below(problem.kernel, &y.rows, &separator, multiplier, &mut below);
        let (i, a) = largest(&above);
        let (j, b) = largest(&below);
        if a + b < best_bound {
            best_bound = a + b;
            best.copy_from_slice(&separator);
        }
        // A little above the floor: a bound that is reached there already filters nearly everything.
        if a + b <= goal * 1.0001 {
            break;
        }
        let (p, q) = (&x.rows[i * width..][..width], &y.rows[j * width..][..width]);
        let slope = |output: usize| {
            let level = separator[output];
            f64::from(u8::from(level > multiplier * q[output])) - f64::from(u8::from(p[output] > level))
        };
        let gradient: Vec<f64> = (0..width).map(slope).collect();
        let square: f64 = gradient.iter().map(|slope| slope * slope).sum();
        if square == 0.0 {
            break;
        }
        let step = (a + b - goal) / square;
        for (level, slope) in separator.iter_mut().zip(&gradient) {
            *level -= step * slope;
        }
    }
    Ok(best)
}

fn largest(numbers: &[f64]) -> (usize, f64) {
    numbers
        .iter()
        .enumerate()
        .fold((0, f64::NEG_INFINITY), |best, (at, &number)| if number > best.1 { (at, number) } else { best })
}

/// True when the separator halfway between the means proves that no row of x diverges from a row of y by more than the
/// floor. Gives up at the first rows that are too far apart.
pub(super) fn all_within(
    problem: &Problem<'_>,
    (x, mean_x): (&[f64], &[f64]),
    (y, mean_y): (&[f64], &[f64]),
) -> bool {
    let (width, multiplier) = (mean_x.len(), problem.numerics.multiplier);
    let halfway = |(p, q): (&f64, &f64)| 0.5 * (p + multiplier * q);
    let separator: Vec<f64> = mean_x.iter().zip(mean_y).map(halfway).collect();
    let limit = problem.floor() - problem.numerics.separator_slack(&separator);
    let (mut most_above, mut most_below) = (0.0_f64, 0.0_f64);
    let mut sums = Vec::with_capacity(GLANCE);
    let mut x = x.chunks(GLANCE * width);
    let mut y = y.chunks(GLANCE * width);
    loop {
        let (rows_x, rows_y) = (x.next(), y.next());
        if let Some(rows) = rows_x {
            sums.clear();
            sums_above(problem.kernel, rows, &separator, &mut sums);
            most_above = most_above.max(largest(&sums).1);
        }
        if let Some(rows) = rows_y {
            sums.clear();
            sums_below(problem.kernel, rows, &separator, multiplier, &mut sums);
            most_below = most_below.max(largest(&sums).1);
        }
        if most_above + most_below > limit {
            return false;
        }
        if rows_x.is_none() && rows_y.is_none() {
            return true;
        }
    }
}

/// The rows of either role that may be in a pair that matters; `None` when no pair is left.
fn root_filter<'b>(
    problem: &Problem<'_>,
    rows: &Side<'b>,
    separator: &[f64],
) -> Result<Option<(Side<'b>, Side<'b>)>> {
    let width = separator.len();
    let parts = rows
        .rows
        .par_chunks(CHUNK * width)
        .map(|block| {
            problem.control.check()?;
            let size = block.len() / width;
            let (mut above, mut below) = (Vec::with_capacity(size), Vec::with_capacity(size));
            let multiplier = problem.numerics.multiplier;
            sums_above_and_below(problem.kernel, block, separator, multiplier, &mut above, &mut below);
            Ok((above, below))
        })
        .collect::<Result<Vec<_>>>()?;
    let most = |side: fn(&Sums) -> &Vec<f64>| {
        parts.iter().map(|part| largest(side(part)).1).fold(f64::NEG_INFINITY, f64::max)
    };
    let (most_above, most_below) = (most(|part| &part.0), most(|part| &part.1));
    let limit = problem.floor() - problem.numerics.separator_slack(separator);
    let keep = |side: fn(&Sums) -> &Vec<f64>, other: f64| {
        let places = parts.iter().flat_map(side).enumerate().filter(|&(_, sum)| sum + other > limit);
        gather(rows, places.map(|(place, _)| place).collect(), width)
    };
    let (x, y) = (keep(|part| &part.0, most_below), keep(|part| &part.1, most_above));
    Ok((x.len() > 0 && y.len() > 0).then_some((x, y)))
}

fn gather(rows: &Side<'_>, places: Vec<usize>, width: usize) -> Side<'static> {
    let mut kept = Vec::with_capacity(places.len() * width);
    for &place in &places {
        kept.extend_from_slice(&rows.rows[place * width..][..width]);
    }
    Side {
        ids: places.into_iter().map(|place| rows.ids[place]).collect::<Vec<u32>>().into(),
        rows: kept.into(),
    }
}

/// Drops rows that are in no pair that matters; false when none is left.
fn filter(
    problem: &Problem<'_>,
    x: &mut Side<'_>,
    y: &mut Side<'_>,
    width: usize,
    steps: usize,
) -> Result<bool> {
    problem.control.check()?;
    if problem.stopped() {
        return Ok(false);
    }
    let multiplier = problem.numerics.multiplier;
    let (sample_x, sample_y) = (strided(x, width, SAMPLE), strided(y, width, SAMPLE));
    let mut start = vec![0.0; width];
    for (side, weight) in [(&sample_x, 0.5), (&sample_y, 0.5 * multiplier)] {
        let weight = weight / side.len() as f64;
        for row in side.rows.chunks_exact(width) {
            start.iter_mut().zip(row).for_each(|(level, mass)| *level += weight * mass);
        }
    }
    let separator = fitted(problem, &sample_x, &sample_y, start, steps)?;
    let (mut above, mut below) = (Vec::with_capacity(x.len()), Vec::with_capacity(y.len()));
    sums_above(problem.kernel, &x.rows, &separator, &mut above);
    sums_below(problem.kernel, &y.rows, &separator, multiplier, &mut below);
    let limit = problem.floor() - problem.numerics.separator_slack(&separator);
    let (most_above, most_below) = (largest(&above).1, largest(&below).1);
    if most_above + most_below <= limit {
        return Ok(false);
    }
    retain(x, &above, limit - most_below, width);
    retain(y, &below, limit - most_above, width);
    Ok(x.len() > 0 && y.len() > 0)
}

fn retain(side: &mut Side<'_>, sums: &[f64], limit: f64, width: usize) {
    let kept = sums.iter().filter(|&&sum| sum > limit).count();
    if kept == sums.len() {
        return;
    }
    let mut ids = Vec::with_capacity(kept);
    let mut rows = Vec::with_capacity(kept * width);
    for (place, &sum) in sums.iter().enumerate() {
        if sum > limit {
            ids.push(side.ids[place]);
            rows.extend_from_slice(&side.rows[place * width..][..width]);
        }
    }
    *side = Side { ids: ids.into(), rows: rows.into() };
}

fn part(side: &Side<'_>, range: std::ops::Range<usize>, width: usize) -> Side<'static> {
    Side {
        ids: side.ids[range.clone()].to_vec().into(),
        rows: side.rows[range.start * width..range.end * width].to_vec().into(),
    }
}

/// The share of pairs that separators keep in a few of the products that the recursion would reach.
fn surviving(problem: &Problem<'_>, x: &Side<'_>, y: &Side<'_>, width: usize) -> Result<f64> {
    const TRIALS: usize = 8;
    let rows = (x.len().min(y.len()) / TRIALS).clamp(64, 724);
    let (mut before, mut after) = (0, 0);
    for trial in 0..TRIALS {
        let place = |side: &Side<'_>, share: usize| {
            let size = side.len().min(rows);
            let start = (side.len() - size) * share / (TRIALS - 1);
            part(side, start..start + size, width)
        };
        let (mut a, mut b) = (place(x, trial), place(y, trial * 5 % TRIALS));
        before += a.len() * b.len();
        if filter(problem, &mut a, &mut b, width, STEPS)? {
            after += a.len() * b.len();
        }
    }
    Ok(after as f64 / before as f64)
}

fn recurse(problem: &Problem<'_>, mut x: Side<'_>, mut y: Side<'_>, width: usize) -> Result<()> {
    loop {
        let before = x.len() * y.len();
        if before <= TILE_PAIRS {
            return brute::all_pairs(problem, &x, &y, width);
        }
        if !filter(problem, &mut x, &mut y, width, STEPS)? {
            return Ok(());
        }
        if (x.len() * y.len()) as f64 > 0.5 * before as f64 {
            break;
        }
    }
    let halves = |side: &Side<'_>| {
        let middle = side.len() / 2;
        (part(side, 0..middle, width), part(side, middle..side.len(), width))
    };
    let (first, second) = if x.len() >= y.len() {
        let (a, b) = halves(&x);
        rayon::join(|| recurse(problem, a, y.clone(), width), || recurse(problem, b, y.clone(), width))
    } else {
        let (a, b) = halves(&y);
        rayon::join(|| recurse(problem, x.clone(), a, width), || recurse(problem, x.clone(), b, width))
    };
    first.and(second)
}
