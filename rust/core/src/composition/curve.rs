//! delta(epsilon) and epsilon(delta) of composed masses, from both sides.
//!
//! `docs/proofs/exact_composition.md`: sections 4 (both directions of the curve) and 5 (the lower side).

use super::{
    LargestLoss,
    leaves::square_root,
    levels::Levels,
    masses::{Masses, bits_of, number},
};
use crate::{
    Result,
    control::Control,
    exact::{Integer, Interval, Level, Rational, dyadic::Dyadic, exp::exp_interval, rounding::Direction},
    memory,
};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, Zero};

/// Composed masses, and all that is asked of them.
#[derive(Debug)]
pub struct Composed {
    levels: Levels,
    limbs: usize,
    low: i64,
    infinity: BigUint,
    charge: BigUint,
    /// Sums of masses from an index on, in words.
    survival: Vec<u64>,
    /// Q's mass there in units of the level, rounded down: `B_i` = sum of `m_j` step^(i - j) over j >= i.
    weighted: Vec<u64>,
    /// How much larger `B_i` may be.
    slack: BigUint,
    window: Option<Window>,
    /// At least the largest loss, where it is finite.
    largest_loss: Option<LargestLoss>,
    /// The logarithms of the lowest level and of the step, to so many places that the place of a level is found.
    ln_low: Interval,
    ln_step: Interval,
    places: i64,
}

/// Theorem 5: how far the curve may be below that of the masses on the grid.
#[derive(Debug)]
struct Window {
    /// Half the width around a loss within which its rounding stays with probability 1 - beta.
    width: f64,
    /// Upper bounds of Psi from 0, spacing, 2 spacing, ... on; not rising.
    bounds: Vec<Interval>,
    spacing: f64,
    /// At least 1 / (1 - beta).
    inverse: Interval,
}

const BITS: i64 = 128;
/// omega of Theorem 5.
const OMEGA: f64 = 2.5;

impl Window {
    /// For so many leaves on a grid of cells of width h: V = n h^2 / 4. `reach` is ln(1 / delta) for the least delta asked.
    fn new(leaves: u64, h: &Rational, reach: f64) -> Option<Self> {
        let quarter = Rational::new(Integer::one(), Integer::from(4));
        let variance = h * h * Integer::from(leaves) * &quarter;
        let enclosed = Interval::rational(&variance, BITS);
        let spread = square_root(&enclosed, BITS);
        let (s, v) = (spread.to_f64_bounds().1, enclosed.to_f64_bounds().1);
        // Beyond this the theorem says nothing.
        if v > 0.25 {
            return None;
        }
        let spacing = s / 8.0;
        let exact_spacing = crate::exact::rounding::rational_from_f64(spacing);
        let half = &variance / Integer::from(2);
        // v = (1 + sinh^2(h/2))^leaves - 1 <= e^(leaves sinh^2(h/2)) - 1, and sinh^2(x) <= x^2 (1 + x^2) for x <= 1.
        let fine = h * h * &quarter;
        let exponent = &fine * (Rational::one() + &fine) * Integer::from(leaves);
        let excess =
            exp_interval(&Interval::rational(&exponent, BITS), BITS).minus(&Interval::integer(1), BITS);
        // s sqrt(pi / 2), from a quotient above pi / 2.
        let half_pi =
            Interval::rational(&Rational::new(Integer::from(1_570_797), Integer::from(1_000_000)), BITS);
        let tail = spread.times(&square_root(&half_pi, BITS), BITS);
        let last = v / 2.0 + s * ((2.0 * reach).sqrt() + 6.0);
        let mut bounds: Vec<Interval> = Vec::new();
        for place in 0..=(last / spacing).ceil() as u32 {
            let t = &exact_spacing * Integer::from(place);
            // e^t (sqrt(v + z^2) - z) / 2 = e^t v / (2 (sqrt(v + z^2) + z)), z = 1 - e^-t.
            let power = exp_interval(&Interval::rational(&t, BITS), BITS);
            let z = Interval::integer(1).minus(&power.reciprocal(BITS), BITS);
            let root = square_root(&excess.plus(&z.times(&z, BITS), BITS), BITS);
            let first = power.times(&excess, BITS).times(&root.plus(&z, BITS).reciprocal(BITS), BITS);
            let mut best = Dyadic { exponent: first.upper.exponent - 1, ..first.upper };
            if t > half {
                let far = &t - &half;
                let exponent = -(&far * &far) / (&variance * Integer::from(2));
                let second =
                    exp_interval(&Interval::rational(&exponent, BITS), BITS).times(&tail, BITS).upper;
                if second.compare(&best).is_lt() {
                    best = second;
                }
            }
            if let Some(last) = bounds.last()
                && last.upper.compare(&best).is_lt()
            {
                best = last.upper.clone();
            }
            bounds.push(Interval { lower: Dyadic::integer(Integer::zero()), upper: best });
        }
        // 1 / (1 - beta), beta = 2 e^(-omega^2 / 2) = 2 e^-3.125 < 0.0879.
        let inverse = Interval::rational(&Rational::new(Integer::from(10_000), Integer::from(9_121)), BITS);
        Some(Self { width: OMEGA * s + v / 2.0, bounds, spacing, inverse })
    }
}

impl Composed {
    /// From masses on levels; `leaves` of them were moved to levels of the grid, on cells of width `h`.
    pub(super) fn new(
        masses: Masses,
        levels: Levels,
        dilated: Option<(u64, Rational)>,
        largest_loss: Option<LargestLoss>,
        reach: f64,
        control: &Control,
    ) -> Result<Self> {
        let limbs = masses.limbs;
        let advice = "a coarser resolution has fewer terms";
        let mut survival = memory::zeros("max_terms", masses.finite.len(), advice)?;
        let mut weighted = memory::zeros("max_terms", masses.finite.len(), advice)?;
        // g <= 2^(64 limbs) / step in words.
        let inverse = levels.step.enclosure(64 * limbs as i64 + 64).reciprocal(64 * limbs as i64 + 64);
        let factor = {
            let places = BigInt::one() << (64 * limbs);
            let floor = (inverse.lower.to_rational() * places).floor().to_integer();
            super::masses::words(floor.magnitude(), limbs)
        };
        let (mut sum, mut weight) = (masses.infinity.clone(), vec![0; limbs]);
        let mut product = vec![0; 2 * limbs];
        for (place, mass) in masses.finite.chunks_exact(limbs).enumerate().rev() {
            if place % (1 << 16) == 0 {
                control.check()?;
            }
            super::masses::add(&mut sum, mass);
            multiply(&weight, &factor, &mut product);
            weight.copy_from_slice(&product[limbs..]);
            super::masses::add(&mut weight, mass);
            survival[place * limbs..][..limbs].copy_from_slice(&sum);
            weighted[place * limbs..][..limbs].copy_from_slice(&weight);
        }
        // Each step of the sum is short by less than 1 + 2^-8 units, and is divided by the step afterwards; the whole is at
        // most 2^b, which is all that is known where the step is 1 to as many bits.
        let most = Integer::one() << bits_of(limbs);
        let less = Interval::integer(1).minus(&inverse, 128);
        let slack: Integer = if less.lower.sign().is_gt() {
            let share = less.reciprocal(128).upper.to_rational();
            let slack: Integer =
                (share * Rational::new(Integer::from(257), Integer::from(256))).ceil().to_integer() + 1;
            slack.min(most)
        } else {
            most
        };
        // The place of a level is known to far less than 1: offsets may be large where steps are tiny.
        let rough = levels.step.ln(64).lower;
        let places = 128 - (rough.mantissa.bits().cast_signed() + rough.exponent).min(0);
        let (ln_low, ln_step) = (levels.ln(masses.low, places), levels.step.ln(places));
        let window = dilated.map(|(leaves, h)| Window::new(leaves, &h, reach));
        // A window that says nothing leaves no lower bound: of width infinity.
        let window = window.map(|window| {
            window.unwrap_or(Window {
                width: f64::INFINITY,
                bounds: Vec::new(),
                spacing: 1.0,
                inverse: Interval::integer(1),
            })
        });
        Ok(Self {
            levels,
            limbs,
            low: masses.low,
            infinity: number(&masses.infinity),
            charge: masses.charge,
            survival,
            weighted,
            slack: slack.magnitude().clone(),
            window,
            largest_loss,
            ln_low,
            ln_step,
            places,
        })
    }

    /// How many finite losses there are.
    pub fn terms(&self) -> usize {
        self.survival.len() / self.limbs
    }

    /// Whether no loss was moved: both bounds differ by the rounding of masses alone.
    pub fn on_lattice(&self) -> bool {
        self.window.is_none()
    }

    /// At most this is the computed curve above the true one for the rounding of masses, as a fraction of 2^b.
    pub fn charge(&self) -> Rational {
        Rational::new(self.charge.clone().into(), BigInt::one() << bits_of(self.limbs))
    }

    /// Floats at or above all finite losses, the masses there and the mass at infinity, which together are 2^b.
    pub fn losses(&self) -> (Vec<f64>, Vec<BigUint>, BigUint) {
        let places = 0..self.terms();
        let above = |place| self.levels.ln(self.index(place), 64).to_f64_bounds().1;
        let mass = |place| self.above(place) - self.above(place + 1);
        (places.clone().map(above).collect(), places.map(mass).collect(), self.infinity.clone())
    }

    fn at(&self, words: &[u64], place: usize) -> BigUint {
        number(&words[place * self.limbs..][..self.limbs])
    }

    /// P's mass at the level of a place or above.
    fn above(&self, place: usize) -> BigUint {
        if place < self.terms() { self.at(&self.survival, place) } else { self.infinity.clone() }
    }

    fn unit(&self) -> i64 {
        bits_of(self.limbs).cast_signed()
    }

    fn working(&self) -> i64 {
        self.unit() + 64
    }

    fn index(&self, place: usize) -> i64 {
        self.low + place as i64
    }

    /// ln E, to so many places that the place of E is found.
    fn ln_of(&self, level: &Level) -> Interval {
        let bits = self.places + 64;
        let exponent = Interval::rational(level.exponent(), bits);
        if level.ratio().is_one() {
            exponent
        } else {
            crate::exact::ln::ln(level.ratio(), bits).plus(&exponent, bits)
        }
    }

    /// Floats at or below, and at or above, (ln E - ln of the lowest level) / ln step: E is at or below the level of a place
    /// that is at least as large.
    fn position(&self, ln: &Interval) -> (f64, f64) {
        let bits = self.places + 64;
        ln.minus(&self.ln_low, bits).times(&self.ln_step.reciprocal(bits), bits).to_f64_bounds()
    }

    /// The level above all finite losses, about.
    fn ln_top(&self) -> f64 {
        self.levels.ln(self.index(self.terms()), self.places).to_f64_bounds().1
    }

    /// E over the level of a place, for E at most about the level; `ln` is ln E.
    fn quotient(&self, place: usize, level: &Level, ln: &Interval) -> Interval {
        let bits = self.working();
        let own = self.levels.ln(self.index(place), self.places);
        // e^-bits < 2^-bits, and all masses together are 2^b.
        let far = own.lower.plus(&Dyadic::integer(Integer::from(-bits)));
        if ln.upper.compare(&far).is_lt() {
            let upper = Dyadic { mantissa: Integer::one(), exponent: -bits };
            return Interval { lower: Dyadic::integer(Integer::zero()), upper };
        }
        let own = self.levels.enclosure(self.index(place), bits);
        level.enclosure(bits).times(&own.reciprocal(bits), bits)
    }

    /// The value of the line of a place, A - (E / `E_i`) B, in units, enclosed.
    fn line(&self, place: usize, quotient: &Interval) -> Interval {
        let bits = self.working();
        let mass = Dyadic::integer(self.above(place).into());
        let least = self.at(&self.weighted, place);
        let weight = Interval {
            lower: Dyadic::integer(least.clone().into()),
            upper: Dyadic::integer((least + &self.slack).into()),
        };
        Interval { lower: mass.clone(), upper: mass }.minus(&quotient.times(&weight, bits), bits + 64)
    }

    /// The masses' curve at a level in units, enclosed, without its charge.
    fn value(&self, level: &Level, ln: &Interval) -> Interval {
        let infinity = Dyadic::integer(self.infinity.clone().into());
        let mut best = Interval { lower: infinity.clone(), upper: infinity };
        // The curve is the largest of all lines, which is that of E's cell; below all levels, that of the lowest.
        let (low, high) = self.position(ln);
        let last = self.terms() - 1;
        if low > last as f64 {
            return best;
        }
        let place = |position: f64| position.clamp(0.0, last as f64) as usize;
        for place in place(low.floor())..=place(high.ceil()) {
            let line = self.line(place, &self.quotient(place, level, ln));
            if line.upper.compare(&best.upper).is_gt() {
                best.upper = line.upper;
            }
            if line.lower.compare(&best.lower).is_gt() {
                best.lower = line.lower;
            }
        }
        best
    }

    /// delta at a level, from both sides.
    pub fn delta(&self, level: &Level) -> (Rational, Rational) {
        if self.largest_loss.as_ref().is_some_and(|largest| largest.is_at_most(level)) {
            return (Rational::zero(), Rational::zero());
        }
        let scale = Rational::new(Integer::one(), Integer::one() << bits_of(self.limbs));
        let ln = self.ln_of(level);
        if ln.to_f64_bounds().0 > self.ln_top().max(0.0) + 64.0 {
            let upper = Rational::from_integer(self.infinity.clone().into()) * &scale;
            return ((self.below_at_infinity() * scale).max(Rational::zero()), upper);
        }
        let value = self.value(level, &ln);
        let upper = (value.upper.to_rational() * &scale).min(Rational::one());
        let lower = self.below(self.position(&ln), &value) * &scale;
        (lower.max(Rational::zero()), upper)
    }

    /// A lower bound of the curve in units.
    fn below(&self, position: (f64, f64), value: &Interval) -> Rational {
        let charge = Rational::from_integer(self.charge.clone().into());
        let plain = value.lower.to_rational() - &charge;
        let Some(window) = &self.window else { return plain };
        let Some(most) = window.bounds.first() else { return Rational::zero() };
        // E[Psi] over the masses, by the rings in which Psi is at most a bound.
        let bits = self.working();
        let mut expected = Dyadic::integer(Integer::zero());
        for (place, bound) in window.bounds.iter().enumerate() {
            let next = window.bounds.get(place + 1);
            let drop = match next {
                Some(next) => bound.upper.plus(&next.upper.negated()),
                None => bound.upper.clone(),
            };
            if !drop.sign().is_gt() {
                continue;
            }
            let mass = match next {
                Some(_) => self.within(position, window.width + window.spacing * (place + 1) as f64),
                None => BigUint::one() << bits_of(self.limbs),
            };
            expected = expected.plus(&drop.times(&Dyadic::integer(mass.into()))).rounded(bits, true);
        }
        let rounding = most.upper.times(&Dyadic::integer((&self.charge * 2_u8).into()));
        let lost = Interval { lower: Dyadic::integer(Integer::zero()), upper: expected.plus(&rounding) };
        plain - lost.times(&window.inverse, bits).upper.to_rational()
    }

    /// A lower bound of the curve beyond all finite losses, in units: Psi is at most its last bound there.
    fn below_at_infinity(&self) -> Rational {
        let plain =
            Rational::from_integer(Integer::from(self.infinity.clone()) - Integer::from(self.charge.clone()));
        let Some(window) = &self.window else { return plain };
        let (Some(most), Some(least)) = (window.bounds.first(), window.bounds.last()) else {
            return Rational::zero();
        };
        let whole = Dyadic::integer(Integer::one() << bits_of(self.limbs));
        let rounding = most.upper.times(&Dyadic::integer((&self.charge * 2_u8).into()));
        let upper = least.upper.times(&whole).plus(&rounding);
        let lost = Interval { lower: Dyadic::integer(Integer::zero()), upper };
        plain - lost.times(&window.inverse, self.working()).upper.to_rational()
    }

    /// At least the finite mass within so much of a loss: indices are widened by one, far more than floats may be off.
    fn within(&self, (low, high): (f64, f64), distance: f64) -> BigUint {
        let most = self.terms() as f64 + 2.0;
        let reach = distance / self.ln_step.to_f64_bounds().0;
        let first = ((low - reach).floor().clamp(-2.0, most) - 1.0).max(0.0) as usize;
        let end = (((high + reach).ceil().clamp(-2.0, most) + 2.0).max(0.0) as usize).min(self.terms());
        if end <= first { BigUint::zero() } else { self.above(first) - self.above(end) }
    }

    /// An upper bound of epsilon at delta; infinite where the mass at infinity is more.
    pub fn epsilon_above(&self, delta: &Rational) -> f64 {
        let largest =
            self.largest_loss.as_ref().map_or(f64::INFINITY, |loss| loss.sum.to_f64_bounds().1.max(0.0));
        let units = (delta * (Integer::one() << bits_of(self.limbs))).floor().to_integer();
        if !units.is_negative() && &self.infinity > units.magnitude() || units.is_negative() {
            return largest;
        }
        let units = units.magnitude();
        // The curve at the level of a place is at most A - B there.
        let low_enough = |place: usize| self.above(place) <= units + self.at(&self.weighted, place);
        let (mut least, mut found) = (0, self.terms() - 1);
        if !low_enough(found) {
            return largest;
        }
        while least < found {
            let middle = usize::midpoint(least, found);
            if low_enough(middle) {
                found = middle;
            } else {
                least = middle + 1;
            }
        }
        let mass = self.above(found);
        if &mass <= units {
            return 0.0;
        }
        let bits = self.working();
        let weight = self.at(&self.weighted, found);
        let crossing = Rational::new((mass - units).into(), weight.into());
        let mut loss =
            self.levels.ln(self.index(found), bits).plus(&crate::exact::ln::ln(&crossing, bits), bits).upper;
        if found > 0 {
            let before = self.levels.ln(self.index(found) - 1, bits).upper;
            if before.compare(&loss).is_gt() {
                loss = before;
            }
        }
        loss.to_f64(Direction::Up).max(0.0).min(largest)
    }

    /// Where the lines of a lattice are certainly above delta: each is below the curve, so each crossing is a lower bound.
    fn lattice_crossing(&self, delta: &Rational) -> f64 {
        let bits = self.working();
        let units = (delta * (Integer::one() << bits_of(self.limbs))).ceil().to_integer();
        let taken = units + Integer::from(self.charge.clone());
        let rest = |place: usize| Integer::from(self.above(place)) - &taken;
        // The last line that is above delta at its own level, and its neighbors.
        let (mut low, mut high) = (0, self.terms());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            let weight = Integer::from(self.at(&self.weighted, middle) + &self.slack);
            if rest(middle) > weight { low = middle } else { high = middle }
        }
        let mut best = 0.0_f64;
        for place in low.saturating_sub(1)..(low + 3).min(self.terms()) {
            let weight = Integer::from(self.at(&self.weighted, place) + &self.slack);
            let rest = rest(place);
            if rest.is_positive() {
                let crossing = crate::exact::ln::ln(&Rational::new(rest, weight), bits);
                let loss = self.levels.ln(self.index(place), bits).plus(&crossing, bits);
                best = best.max(loss.lower.to_f64(Direction::Down));
            }
        }
        best
    }

    /// A lower bound of epsilon at delta: the largest epsilon found at which delta is certainly larger.
    pub fn epsilon_below(&self, delta: &Rational, upper: f64) -> f64 {
        let certain = |epsilon: f64| {
            let level = Level::from_epsilon(epsilon);
            self.delta(&level).0 > *delta
        };
        if upper <= 0.0 || !certain(0.0) {
            return 0.0;
        }
        if upper.is_infinite() && self.below_at_infinity() > delta * (Integer::one() << bits_of(self.limbs)) {
            return f64::INFINITY;
        }
        let top = if upper.is_finite() { upper } else { self.ln_top().max(0.0) + 1.0 };
        if self.window.is_none() {
            return self.lattice_crossing(delta).clamp(0.0, top);
        }
        let (mut low, mut high) = (0.0, top);
        for _ in 0..64 {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            if certain(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// x y for numbers of the same words.
fn multiply(x: &[u64], y: &[u64], product: &mut [u64]) {
    product.fill(0);
    for (i, &word) in x.iter().enumerate() {
        let mut carry = 0_u128;
        for (out, &other) in product[i..].iter_mut().zip(y) {
            carry += u128::from(*out) + u128::from(word) * u128::from(other);
            *out = carry as u64;
            carry >>= 64;
        }
        product[i + y.len()] = carry as u64;
    }
}
