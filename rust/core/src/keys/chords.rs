//! Gaussian noise in steps of loss, and what a second round makes of each step.

use super::{
    curve::{At, level_over},
    one, quotient,
    rounds::{BITS, Round},
    smaller, zero,
};
use crate::{
    Result,
    composition::SHALLOW,
    control::Control,
    exact::{
        Integer, Rational,
        dyadic::Dyadic,
        rounding::{Direction, rational_to_f64},
    },
};
use num_traits::{One, Signed};
use std::cmp::Ordering;

const STEPS_PER_WIDTH: f64 = 4.0;
/// Of the first round's loss; only where one round's noise is more than fifty times as wide are there so many.
const MOST_STEPS: f64 = 2048.0;
/// Steps of loss for such widths are taken from a finer grid.
const NARROW: f64 = 1.0 / 1024.0;
/// The losses of a first round are listed up to so many of its standard deviations.
const WIDTHS: f64 = 8.0;
/// Losses with such a part of the delta as their probability count as infinite.
const NEGLIGIBLE: u32 = 10_000_000;
/// Of masses, rounded up.
const FINE: i64 = 192;

/// A first round's Gaussian noise in steps of loss, and what the second round makes of each.
pub(super) struct Chords<'a> {
    second: &'a Round,
    level: Dyadic,
    /// Masses of at most this, times `NEGLIGIBLE`, are counted as if the second round told all.
    floor: Dyadic,
    /// Levels at which the curve is looked at: up to rounding the powers of a number, from 1 on.
    powers: Vec<At>,
    ratios: Vec<Dyadic>,
    /// What the second round makes of the ratios 1 / E, by their places, and of E.
    after: [Vec<Option<Dyadic>>; 2],
}

/// A point of a curve as (x, y) over a common denominator.
struct Corner {
    x: Dyadic,
    y: Dyadic,
    whole: Dyadic,
    /// Whether its level is an inverse of a power, and which.
    place: (usize, usize),
}

/// A slope between two corners, as a quotient whose denominator is positive.
struct Slope {
    rise: Dyadic,
    run: Dyadic,
}

impl Slope {
    fn between(a: &Corner, b: &Corner) -> Self {
        let difference = |x: &Dyadic, y: &Dyadic| x.times(&a.whole).plus(&y.times(&b.whole).negated());
        Self { rise: difference(&b.y, &a.y), run: difference(&b.x, &a.x) }
    }

    fn at_most(&self, other: &Self) -> bool {
        self.rise.times(&other.run).compare(&other.rise.times(&self.run)) != Ordering::Greater
    }
}

impl<'a> Chords<'a> {
    /// By mu^2 of both rounds; `floor` is the probability that a new key is shown in one of them.
    pub(super) fn new(
        first: &Rational,
        other: &Rational,
        second: &'a Round,
        level: Dyadic,
        floor: &Dyadic,
    ) -> Self {
        let width = |mu2: &Rational| rational_to_f64(mu2, Direction::Nearest).sqrt();
        let (wide, next) = (width(first), width(other));
        // Coarser steps are worse and as true.
        let reach = WIDTHS * wide + wide * wide;
        let fine = (wide.min(next) / STEPS_PER_WIDTH).max(reach / MOST_STEPS);
        let places = if fine > NARROW / STEPS_PER_WIDTH { 20 } else { 52 };
        let unit = 2.0_f64.powi(places);
        #[allow(clippy::cast_possible_truncation)] // widths are at most 2^7
        let more = (fine * unit).round_ties_even().max(1.0) as i64;
        let step = Dyadic {
            mantissa: (Integer::one() << places.unsigned_abs() as usize) + more,
            exponent: -i64::from(places),
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 2^11 or so
        let count = (reach / (more as f64 / unit).ln_1p()).ceil().clamp(1.0, 4.0 * MOST_STEPS) as usize;
        let mut ratios = vec![one()];
        for place in 0..count {
            ratios.push(ratios[place].times(&step).rounded(BITS, false));
        }
        Self {
            second,
            level,
            floor: floor.clone(),
            powers: ratios.iter().cloned().map(At::new).collect(),
            after: [vec![None; ratios.len()], vec![None; ratios.len()]],
            ratios,
        }
    }

    /// At or above the curve of both, for Gaussian noise whose squared distance of means is mu2.
    pub(super) fn kept(&mut self, mu2: &Rational, control: &Control) -> Result<Dyadic> {
        if !mu2.is_positive() {
            return self.after((1, 0), control);
        }
        let hull = self.hull(mu2, control)?;
        let mut total = match hull.last() {
            Some((corner, _)) => corner.y.clone(), // the mass at infinity: the last level is a power
            None => return Ok(one()),
        };
        for (place, (corner, before)) in hull.iter().enumerate().skip(1) {
            // E_i times the change of slope there; after the last there is none.
            let rise = |slope: &Slope| quotient(&slope.rise, &slope.run, FINE, true);
            let after = hull.get(place + 1).map_or_else(zero, |(_, next)| rise(next));
            let fallen = quotient(&before.rise.negated(), &before.run, FINE, true);
            let change = after.plus(&fallen);
            if change.sign() != Ordering::Greater {
                continue;
            }
            let mass = quotient(&change.times(&corner.x), &corner.whole, FINE, true);
            let small = mass.times(&Dyadic::integer(Integer::from(NEGLIGIBLE))).compare(&self.floor);
            // What is left of the level, given how much likelier this loss is with the user.
            let part = if small == Ordering::Greater {
                mass.times(&self.after(corner.place, control)?)
            } else {
                mass
            };
            total = total.plus(&part).rounded(FINE, true);
        }
        Ok(smaller(total, one()))
    }

    /// The second round's curve at the level over a ratio: 1 / E of a place for (0, place), and E for (1, place).
    fn after(&mut self, (side, place): (usize, usize), control: &Control) -> Result<Dyadic> {
        if let Some(known) = &self.after[side][place] {
            return Ok(known.clone());
        }
        let ratio = &self.ratios[place];
        let left = if side == 0 {
            self.level.times(ratio).rounded(BITS, false)
        } else {
            level_over(&self.level, ratio, BITS)
        };
        let found = self.second.curve(&left, control)?.rounded(FINE, true);
        self.after[side][place] = Some(found.clone());
        Ok(found)
    }

    /// Corners of a convex curve above that of Gaussian noise, each with the slope to it, from (0, 1) on.
    ///
    /// A convex curve is below its chords. Of values that are a little above the curve the convex hull is above it, too.
    fn hull(&self, mu2: &Rational, control: &Control) -> Result<Vec<(Corner, Slope)>> {
        let mut values = Vec::with_capacity(self.powers.len());
        for at in &self.powers {
            control.check()?;
            values.push(at.curve(mu2, SHALLOW));
        }
        let mut corners = vec![Corner { x: zero(), y: one(), whole: one(), place: (0, 0) }];
        // The curve at 1 / E is 1 - 1 / E and 1 / E of that at E.
        for place in (1..self.ratios.len()).rev() {
            let power = &self.ratios[place];
            let y = power.plus(&one().negated()).plus(&values[place]);
            corners.push(Corner { x: one(), y, whole: power.clone(), place: (0, place) });
        }
        let mut least = one();
        for (place, (power, value)) in self.ratios.iter().zip(values).enumerate() {
            least = smaller(least, value);
            corners.push(Corner { x: power.clone(), y: least.clone(), whole: one(), place: (1, place) });
        }
        let mut hull: Vec<(Corner, Slope)> = Vec::with_capacity(corners.len());
        for corner in corners {
            while let Some((last, to_last)) = hull.last() {
                if hull.len() == 1 || !Slope::between(last, &corner).at_most(to_last) {
                    break;
                }
                hull.pop();
            }
            let slope = match hull.last() {
                Some((last, _)) => Slope::between(last, &corner),
                None => Slope { rise: zero(), run: one() },
            };
            hull.push((corner, slope));
        }
        Ok(hull)
    }
}
