//! Tails of binomial distributions, and the count at which two of them are told apart best.
//!
//! Floats: these numbers choose public parameters and forecast utility; no privacy rests on them.
//!
//! Source: Loader, "Fast and accurate computation of binomial probabilities" (2000), for the probabilities.
//!
//! Paper: [LWY24, Lemma 4.1].

use crate::{Error, Result};
use std::f64::consts::TAU;

/// Tails take about sqrt(m) steps.
const MOST_TRIALS: u64 = 1 << 40;

/// Crossings closer than this to an integer, relatively, are that integer: several times their rounding error.
const SNAP: f64 = 1e-12;

/// Below this many standard deviations between the two means the gap is integrated.
const CLOSE: f64 = 0.1;

/// Positive nodes and their weights of Gauss-Legendre quadrature with 16 points on [-1, 1].
const QUADRATURE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];

/// Where two binomial distributions of m trials are told apart best, by counting more than `threshold` successes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Separation {
    /// The smallest t in 0..m that maximizes the gap.
    pub threshold: u64,
    /// Pr[Bin(m, q) > t] - Pr[Bin(m, p) > t]: the total variation distance of the two distributions.
    pub gap: f64,
    /// Pr[Bin(m, p) > t]
    pub tail_p: f64,
}

/// The best threshold between Bin(m, p) and Bin(m, q).
///
/// The ratio of their probabilities at k increases with k and crosses 1 at k* = m A / (A + ln(q / p)) with
/// A = ln((1 - p) / (1 - q)); all k above k* count for q, so that t = ceil(k*) - 1, within 0..m. Where k* is an integer,
/// t = k* does as well.
///
/// The gap is the difference of two tails, or, for p and q too close for that, the integral over x from p to q of
/// d Pr[Bin(m, x) > t] / dx = m Pr[Bin(m - 1, x) = t]. Absolute errors are below 1e-12 for m <= 10^6.
///
/// # Errors
/// [`Error::InvalidArgument`] unless 1 <= m <= 2^40 and 0 <= p < q <= 1.
pub fn separating_threshold(m: u64, p: f64, q: f64) -> Result<Separation> {
    check(m, "p", p)?;
    check(m, "q", q)?;
    if p >= q {
        return Err(Error::invalid(
            "q",
            format!("is {q}, p is {p}; p < q is needed, else nothing separates them"),
        ));
    }
    let threshold = threshold(m, p, q);
    let tail_p = upper_tail(m, p, threshold);
    let deviation = (m as f64 * p * (1.0 - p)).sqrt();
    let gap = if m as f64 * (q - p) < CLOSE * deviation {
        gap_of_close(m, p, q, threshold)
    } else {
        upper_tail(m, q, threshold) - tail_p
    };
    Ok(Separation { threshold, gap, tail_p })
}

/// Pr[Bin(m, p) > t]
///
/// # Errors
/// [`Error::InvalidArgument`] unless 1 <= m <= 2^40 and 0 <= p <= 1.
pub fn binomial_tail(m: u64, p: f64, t: u64) -> Result<f64> {
    check(m, "p", p)?;
    Ok(upper_tail(m, p, t))
}

fn check(m: u64, name: &'static str, probability: f64) -> Result<()> {
    if !(1..=MOST_TRIALS).contains(&m) {
        return Err(Error::invalid("m", format!("is {m}; it must be at least 1 and at most 2^40")));
    }
    if !(0.0..=1.0).contains(&probability) {
        return Err(Error::invalid(name, format!("is {probability}; it must be in [0, 1]")));
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn threshold(m: u64, p: f64, q: f64) -> u64 {
    if p == 0.0 {
        return 0;
    }
    if q == 1.0 {
        return m - 1;
    }
    // Each from the difference where p and q are close; q / p itself may overflow, (q - p) / (1 - q) cannot.
    let failures = ((q - p) / (1.0 - q)).ln_1p();
    let successes = if q < 2.0 * p { ((q - p) / p).ln_1p() } else { q.ln() - p.ln() };
    let crossing = m as f64 * (failures / (failures + successes));
    let nearest = crossing.round();
    let above =
        if (crossing - nearest).abs() <= SNAP * crossing.max(1.0) { nearest } else { crossing.ceil() };
    ((above - 1.0).max(0.0) as u64).min(m - 1)
}

/// The integral of m Pr[Bin(m - 1, x) = t] over x from p to q.
fn gap_of_close(m: u64, p: f64, q: f64, t: u64) -> f64 {
    // Floats resolve small probabilities: near 1 those of failures, which are exact.
    let (low, high, count) = if p < 0.5 { (p, q, t) } else { (1.0 - q, 1.0 - p, m - 1 - t) };
    let (middle, half) = (low.midpoint(high), (high - low) / 2.0);
    let sides = |node: f64| {
        probability(m - 1, middle - half * node, count) + probability(m - 1, middle + half * node, count)
    };
    m as f64 * half * QUADRATURE.iter().map(|&(node, weight)| weight * sides(node)).sum::<f64>()
}

/// Pr[Bin(m, p) > t], from whichever tail excludes the mean.
fn upper_tail(m: u64, p: f64, t: u64) -> f64 {
    if t >= m {
        return 0.0;
    }
    if p == 0.0 || p == 1.0 {
        return p;
    }
    let odds = p / (1.0 - p);
    if (t + 1) as f64 >= m as f64 * p {
        let step = |k: u64| ((m - k) as f64 / (k + 1) as f64) * odds;
        decreasing_sum(probability(m, p, t + 1), (t + 1..m).map(step))
    } else {
        let step = |k: u64| k as f64 / ((m - k + 1) as f64 * odds);
        1.0 - decreasing_sum(probability(m, p, t), (1..=t).rev().map(step))
    }
}

/// The sum of terms of which each is the one before times the next ratio, up to what no longer matters.
fn decreasing_sum(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut term, mut sum) = (first, first);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term < f64::EPSILON / 256.0 * sum || term == 0.0 {
            break;
        }
    }
    sum
}

/// Pr[Bin(m, p) = k] for 0 < p < 1 and k <= m, by Loader's saddle point expansion.
fn probability(m: u64, p: f64, k: u64) -> f64 {
    let n = m as f64;
    if k == 0 {
        return (n * (-p).ln_1p()).exp();
    }
    if k == m {
        return (n * p.ln()).exp();
    }
    let (hits, misses) = (k as f64, (m - k) as f64);
    let exponent = stirling_remainder(m)
        - stirling_remainder(k)
        - stirling_remainder(m - k)
        - deviance(hits, n * p)
        - deviance(misses, n * (1.0 - p));
    exponent.exp() * (n / (TAU * hits * misses)).sqrt()
}

/// x ln(x / mean) + mean - x, without cancellation where the two are close.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x.ln() - mean.ln()) + mean - x;
    }
    // With v = (x - mean) / (x + mean): ln(x / mean) = 2 (v + v^3 / 3 + v^5 / 5 + ...).
    let v = difference / (x + mean);
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    for odd in (3_u32..).step_by(2) {
        power *= v * v;
        let next = sum + power / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// ln(k!) - ln(sqrt(2 pi k) (k / e)^k)
fn stirling_remainder(k: u64) -> f64 {
    if let Some(&small) = usize::try_from(k).ok().and_then(|k| SMALL_REMAINDERS.get(k)) {
        return small;
    }
    let k = k as f64;
    let square = k * k;
    let coefficients = [1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0];
    let tail = coefficients.iter().fold(0.0, |tail, coefficient| (coefficient - tail) / square);
    (1.0 / 12.0 - tail) / k
}

/// Stirling's remainder of 0, ..., 15; that of 0 is never used.
const SMALL_REMAINDERS: [f64; 16] = [
    0.0,
    0.081_061_466_795_327_26,
    0.041_340_695_955_409_3,
    0.027_677_925_684_998_34,
    0.020_790_672_103_765_093,
    0.016_644_691_189_821_193,
    0.013_876_128_823_070_748,
    0.011_896_709_945_891_77,
    0.010_411_265_261_972_096,
    0.009_255_462_182_712_733,
    0.008_330_563_433_362_87,
    0.007_573_675_487_951_841,
    0.006_942_840_107_209_53,
    0.006_408_994_188_004_207,
    0.005_951_370_112_758_847_5,
    0.005_554_733_551_962_801,
];
