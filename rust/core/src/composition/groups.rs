//! Groups: what a release that is known for one record, or one user, loses about several of them together.
//!
//! The largest mass under P of a test with a mass under Q, as a function of the latter, is the power curve of a pair. Along a
//! chain of neighbors tests gain at most one curve a step, so that a group has the iterate: `docs/proofs/exact_composition.md`,
//! section 8. Curves are broken lines with exact corners.

use crate::{
    Error, Result,
    control::Control,
    exact::gcd::{Share, gcd, lcm, reduced},
};
use num_bigint::BigUint;
use num_traits::{One, ToPrimitive, Zero};
use rayon::prelude::*;
use std::cmp::Ordering;

/// The most outcomes of a pair, times the size of the group.
const MOST_LINES: u64 = 1 << 18;
/// Bits of rounded corners, counted from the leading one of a mass or of what it lacks to 1, whichever is smaller: losses
/// change by about 2^-1200 then, at both ends.
const KEPT_BITS: u64 = 1200;
/// The most places before the leading bit. Smaller masses may get an infinite loss, as an upper bound may.
const MOST_PLACES: u64 = 1 << 13;
/// The longest denominators of corners that are not rounded, in bits.
const LONGEST: u64 = 4096;
/// Bits of the masses of a pair over their common denominator, beyond which its corners are rounded.
const MOST_BITS: u64 = 1 << 27;

/// A corner of a curve.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Corner {
    /// The mass under Q.
    alpha: Share,
    /// The largest mass under P.
    power: Share,
}

/// A concave, increasing function on [0, 1] by its corners, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Curve(Vec<Corner>);

/// Two distributions by integer weights.
pub type Weights = (Vec<BigUint>, Vec<BigUint>);

/// The pair whose power curve is that of a pair by integer weights, applied `size` times, exactly or rounded upwards.
///
/// # Errors
/// [`Error::InvalidArgument`] for lists of other lengths, without mass or a size of 0; [`Error::TooLarge`] where the group may
/// have more than 2^18 outcomes; [`Error::Canceled`].
pub fn grouped_pair(p: &[BigUint], q: &[BigUint], size: &BigUint, control: &Control) -> Result<Weights> {
    super::dominance::check_weights(p, q)?;
    let lines = size * p.len();
    let small = size.to_u64().filter(|_| lines <= BigUint::from(MOST_LINES));
    let Some(size) = small else {
        return Err(Error::too_large(format!(
            "a group of {size} has up to {lines} outcomes, where {MOST_LINES} are allowed; merge outputs or give the release by \
             its parameters"
        )));
    };
    if size == 0 {
        return Err(Error::invalid("size", "must be at least 1"));
    }
    Curve::of(p, q).iterated(size, control)?.pair(control)
}

fn share(numerator: u64) -> Share {
    Share::new_raw(BigUint::from(numerator), BigUint::one())
}

/// Cross products: n1 d2 and n2 d1.
fn crossed(x: &Share, y: &Share) -> (BigUint, BigUint) {
    (x.numer() * y.denom(), y.numer() * x.denom())
}

fn compare(x: &Share, y: &Share) -> Ordering {
    if x.denom() == y.denom() {
        return x.numer().cmp(y.numer());
    }
    let (x, y) = crossed(x, y);
    x.cmp(&y)
}

/// The numerator of x - y over the product of denominators, where x >= y.
fn rise(x: &Share, y: &Share) -> BigUint {
    let (x, y) = crossed(x, y);
    x - y
}

fn difference(x: &Share, y: &Share) -> Share {
    reduced(rise(x, y), x.denom() * y.denom())
}

/// The line through two corners: (slope x + start) / scale.
struct Line {
    slope: BigUint,
    start: BigUint,
    scale: BigUint,
}

impl Line {
    fn through(first: &Corner, second: &Corner) -> Self {
        let climb = rise(&second.power, &first.power) * first.alpha.denom() * second.alpha.denom();
        let width = rise(&second.alpha, &first.alpha) * first.power.denom() * second.power.denom();
        let slope = reduced(climb, width);
        // Of a concave function that is at least 0, no line is below 0 at 0.
        let (climb, width) = (slope.numer(), slope.denom());
        let scale = width * first.power.denom() * first.alpha.denom();
        let start = first.power.numer() * width * first.alpha.denom()
            - climb * first.alpha.numer() * first.power.denom();
        let slope = climb * first.power.denom() * first.alpha.denom();
        let common = gcd(&gcd(&start, &scale), &slope);
        if common.is_one() {
            return Self { slope, start, scale };
        }
        Self { slope: slope / &common, start: start / &common, scale: scale / common }
    }

    fn at(&self, x: &Share) -> Share {
        reduced(&self.slope * x.numer() + &self.start * x.denom(), &self.scale * x.denom())
    }

    /// Where the line, which must rise, has a value that it is not below at 0.
    fn inverse(&self, value: &Share) -> Share {
        reduced(&self.scale * value.numer() - &self.start * value.denom(), &self.slope * value.denom())
    }
}

/// Where a corner of one curve applied to another comes from.
enum Place {
    /// A corner of the inner one, and where its value is: behind so many corners of the outer one.
    Inner(usize, usize),
    /// The same, at a corner of the outer one.
    Both(usize, usize),
    /// Where the inner one, behind so many of its corners, has the value of a corner of the outer one.
    Outer(usize, usize),
}

impl Curve {
    /// The power curve of a pair, the likeliest outcomes under P first.
    fn of(p: &[BigUint], q: &[BigUint]) -> Self {
        let (total_p, total_q): (BigUint, BigUint) = (p.iter().sum(), q.iter().sum());
        let mut atoms: Vec<_> = p.iter().zip(q).filter(|(x, y)| !x.is_zero() && !y.is_zero()).collect();
        atoms.sort_by(|(x1, y1), (x2, y2)| (*x2 * *y1).cmp(&(*x1 * *y2)));
        let mut power: BigUint = p.iter().zip(q).filter(|(_, y)| y.is_zero()).map(|(x, _)| x).sum();
        let mut alpha = BigUint::zero();
        let corner = |alpha: &BigUint, power: &BigUint| Corner {
            alpha: reduced(alpha.clone(), total_q.clone()),
            power: reduced(power.clone(), total_p.clone()),
        };
        let mut found = vec![corner(&alpha, &power)];
        for (x, y) in atoms {
            (power, alpha) = (power + x, alpha + y);
            found.push(corner(&alpha, &power));
        }
        Self::above(found)
    }

    /// The least concave function above points that rise in both, and above (1, 1).
    fn above(points: Vec<Corner>) -> Self {
        let mut kept: Vec<Corner> = Vec::with_capacity(points.len() + 1);
        for point in points.into_iter().chain([Corner { alpha: share(1), power: share(1) }]) {
            // The last of these is the highest.
            kept.pop_if(|last| last.alpha == point.alpha);
            while let [.., first, second] = kept.as_slice()
                && !bends(first, second, &point)
            {
                kept.pop();
            }
            kept.push(point);
        }
        Self(kept)
    }

    /// The curve applied so often, by doubling; rounded upwards where its corners would get too long.
    fn iterated(self, size: u64, control: &Control) -> Result<Self> {
        control.set_total(size.ilog2() as usize);
        let mut last = self.clone();
        for digit in (0..size.ilog2()).rev() {
            last = last.after(&last, control)?;
            if size >> digit & 1 == 1 {
                last = self.after(&last, control)?;
            }
            control.advance(1)?;
        }
        Ok(last)
    }

    /// This curve applied to the values of another.
    fn after(&self, inner: &Self, control: &Control) -> Result<Self> {
        let lines = |curve: &Self| -> Result<Vec<Line>> {
            let pairs: Vec<_> = curve.0.windows(2).collect();
            pairs
                .into_par_iter()
                .map(|pair| control.check().map(|()| Line::through(&pair[0], &pair[1])))
                .collect()
        };
        let (inner_lines, outer_lines) = (lines(inner)?, lines(self)?);
        let places = self.places(inner);
        let points: Result<Vec<Corner>> = places
            .into_par_iter()
            .map(|place| {
                control.check()?;
                Ok(match place {
                    Place::Inner(i, j) => {
                        let Corner { alpha, power } = inner.0[i].clone();
                        Corner {
                            alpha,
                            power: outer_lines.get(j - 1).map_or_else(|| share(1), |line| line.at(&power)),
                        }
                    }
                    Place::Both(i, j) => {
                        Corner { alpha: inner.0[i].alpha.clone(), power: self.0[j].power.clone() }
                    }
                    Place::Outer(i, j) => {
                        let Corner { alpha, power } = self.0[j].clone();
                        Corner { alpha: inner_lines[i - 1].inverse(&alpha), power }
                    }
                })
            })
            .collect();
        let curve = Self::above(points?);
        let long = |share: &Share| share.denom().bits() > LONGEST;
        let rounds = curve.0.iter().any(|corner| long(&corner.alpha) || long(&corner.power));
        Ok(if rounds { curve.rounded() } else { curve })
    }

    /// Corners of this curve applied to another, from left to right.
    fn places(&self, inner: &Self) -> Vec<Place> {
        let mut found = Vec::with_capacity(inner.0.len() + self.0.len());
        let start = &inner.0[0].power;
        let mut j = self.0.partition_point(|corner| compare(&corner.alpha, start).is_lt());
        for (i, corner) in inner.0.iter().enumerate() {
            loop {
                let order =
                    self.0.get(j).map_or(Ordering::Less, |outer| compare(&corner.power, &outer.alpha));
                match order {
                    Ordering::Greater => found.push(Place::Outer(i, j)),
                    Ordering::Equal => found.push(Place::Both(i, j)),
                    Ordering::Less => {
                        found.push(Place::Inner(i, j));
                        break;
                    }
                }
                j += 1;
                if order.is_eq() {
                    break;
                }
            }
        }
        found
    }

    /// A concave function above: corners move to the left and up, and then their hull is taken.
    fn rounded(self) -> Self {
        let unit = |mass: BigUint, places: u64| {
            let zeros = mass.trailing_zeros().unwrap_or(places).min(places);
            Share::new_raw(mass >> zeros, BigUint::one() << (places - zeros))
        };
        let places = |mass: &Share| {
            let least = mass.numer().min(&(mass.denom() - mass.numer())).bits();
            KEPT_BITS + (mass.denom().bits() - least).min(MOST_PLACES)
        };
        let moved = self.0.into_iter().map(|Corner { alpha, power }| {
            let up = power.denom() - 1_u32;
            let (left, above) = (places(&alpha), places(&power));
            Corner {
                alpha: unit((alpha.numer() << left) / alpha.denom(), left),
                power: unit(((power.numer() << above) + up) / power.denom(), above),
            }
        });
        Self::above(moved.collect())
    }

    /// The pair with this power curve, or with a rounded one where its masses together would be too long.
    fn pair(self, control: &Control) -> Result<Weights> {
        let most_bits = LONGEST.max(MOST_BITS / self.0.len().max(1) as u64);
        if let Some(found) = self.weights(most_bits, control)? {
            return Ok(found);
        }
        let found = self.rounded().weights(KEPT_BITS + MOST_PLACES, control)?;
        found.ok_or_else(|| Error::too_large("the masses of a group are too long; merge outputs"))
    }

    fn weights(&self, most_bits: u64, control: &Control) -> Result<Option<Weights>> {
        let Some(first) = self.0.first() else { return Ok(Some((Vec::new(), Vec::new()))) };
        let steps = |of: fn(&Corner) -> &Share, first: Share| {
            let rest = self.0.windows(2).map(|pair| difference(of(&pair[1]), of(&pair[0])));
            whole_multiples(&[first].into_iter().chain(rest).collect::<Vec<_>>(), most_bits, control)
        };
        let Some(p) = steps(|corner| &corner.power, first.power.clone())? else { return Ok(None) };
        Ok(steps(|corner| &corner.alpha, share(0))?.map(|q| (p, q)))
    }
}

/// Whether the slope falls at the second of three points.
fn bends(first: &Corner, second: &Corner, third: &Corner) -> bool {
    let before = rise(&second.power, &first.power) * rise(&third.alpha, &second.alpha);
    let behind = rise(&third.power, &second.power) * rise(&second.alpha, &first.alpha);
    // Denominators of the second are in both.
    before * third.power.denom() * first.alpha.denom() > behind * first.power.denom() * third.alpha.denom()
}

/// Fractions times their least common denominator; none where that is longer than so many bits.
fn whole_multiples(shares: &[Share], most_bits: u64, control: &Control) -> Result<Option<Vec<BigUint>>> {
    let Some(scale) = lcm(shares.iter().map(Share::denom), most_bits, control)? else { return Ok(None) };
    let multiple = |share: &Share| {
        control.check()?;
        Ok(share.numer() * (&scale / share.denom()))
    };
    shares.par_iter().map(multiple).collect::<Result<_>>().map(Some)
}

#[cfg(test)]
mod tests;
