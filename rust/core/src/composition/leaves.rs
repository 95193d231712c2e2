//! One release on a grid: its masses, moved up to levels so that the curve rises by a known amount.
//!
//! `docs/proofs/exact_composition.md`, Theorems 2 and 3.

use super::{
    Options,
    fixed::{Fixed, ceil_units, with_fixed},
    levels::{LevelTable, Levels, Multiplier},
    masses::{Masses, at_most, bits_of, words},
};
use crate::{
    Error, Result,
    control::Control,
    exact::{Integer, Interval, Rational, dyadic::Dyadic, exp::exp},
    memory,
};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive, Zero};
use rayon::prelude::*;

/// An outcome of P: its mass, and e^loss = P / Q there.
#[derive(Debug, Clone)]
pub struct Atom {
    /// P's mass, enclosed to [`mass_bits`] bits.
    pub mass: Interval,
    /// P's mass over Q's.
    pub multiplier: Multiplier,
}

/// A pair (P, Q) of distributions, as P's distribution of losses.
#[derive(Debug, Clone)]
pub struct Part {
    /// Outcomes where both have mass, by rising loss.
    pub atoms: Vec<Atom>,
    /// P's mass where Q has none.
    pub infinity: Interval,
    /// Where all losses are in offset + step Z: the levels, and each atom's index.
    pub lattice: Option<(Levels, Vec<i64>)>,
}

/// Bits to which masses and levels are enclosed, for masses over 2^b of N atoms on a grid of 1/h levels for a unit of loss:
/// N enclosures, divided by 1 - e^-h, have less than a unit of width together.
fn working_bits(limbs: usize, atoms: usize, steps_per_unit: f64) -> i64 {
    let more = (atoms.max(2) as f64).log2() + steps_per_unit.max(2.0).log2();
    i64::try_from(bits_of(limbs)).unwrap_or(i64::MAX) + 48 + more.ceil() as i64
}

/// Bits to which the masses of atoms are to be enclosed, whatever the grid.
pub fn mass_bits(limbs: usize) -> i64 {
    i64::try_from(bits_of(limbs)).unwrap_or(i64::MAX) + 128
}

impl Part {
    /// P and Q by their integer weights.
    ///
    /// # Errors
    /// Where lengths differ or a total is 0.
    pub fn from_weights(p: &[BigUint], q: &[BigUint], limbs: usize, control: &Control) -> Result<Self> {
        if p.len() != q.len() {
            return Err(Error::invalid("q", format!("has {} masses, p has {}", q.len(), p.len())));
        }
        let total = |weights: &[BigUint], argument| {
            let total = weights.iter().sum::<BigUint>();
            if total.is_zero() {
                Err(Error::invalid(argument, "has no mass"))
            } else {
                Ok(BigInt::from(total))
            }
        };
        let (all_p, all_q) = (total(p, "p")?, total(q, "q")?);
        let bits = mass_bits(limbs);
        let mut atoms: Vec<(Rational, BigInt)> = Vec::new();
        let mut infinity = BigInt::zero();
        for (x, y) in p.iter().zip(q) {
            control.check()?;
            if x.is_zero() {
                continue;
            }
            let x = BigInt::from(x.clone());
            if y.is_zero() {
                infinity += x;
            } else {
                atoms.push((Rational::new(&x * &all_q, BigInt::from(y.clone()) * &all_p), x));
            }
        }
        atoms.sort_by(|(a, _), (b, _)| a.cmp(b));
        atoms.dedup_by(|(other, mass), (ratio, sum)| {
            let same = other == ratio;
            if same {
                *sum += &*mass;
            }
            same
        });
        let lattice = lattice_of(atoms.iter().map(|(ratio, _)| ratio));
        let enclosed = |mass: BigInt| Interval::rational(&Rational::new(mass, all_p.clone()), bits);
        let infinity = enclosed(infinity);
        let atoms = atoms
            .into_iter()
            .map(|(ratio, mass)| Atom { mass: enclosed(mass), multiplier: Multiplier::rational(ratio) })
            .collect();
        Ok(Self { atoms, infinity, lattice })
    }

    /// The pair above all (epsilon, delta)-DP mechanisms: losses epsilon and -epsilon, and delta at infinity (Kairouz, Oh, Viswanath).
    pub fn pure(epsilon: &Multiplier, delta: &Rational, limbs: usize) -> Self {
        let bits = mass_bits(limbs);
        let enclosed = |x: &Rational| Interval::rational(x, bits);
        let (infinity, rest) = (enclosed(delta), Rational::one() - delta);
        let one = Multiplier::rational(Rational::one());
        if *epsilon == one {
            let levels = Levels {
                step: Multiplier::rational(Rational::from_integer(Integer::from(2))),
                offset: Vec::new(),
            };
            let atoms = vec![Atom { mass: enclosed(&rest), multiplier: one }];
            return Self { atoms, infinity, lattice: Some((levels, vec![0])) };
        }
        let inverse = one.times_power(epsilon, -1);
        // (1 - delta) / (1 + e^epsilon), and e^epsilon times as much.
        let low = if epsilon.exponent.is_zero() {
            enclosed(&(&rest / (Rational::one() + &epsilon.ratio)))
        } else {
            let sum = epsilon.enclosure(bits).plus(&Interval::integer(1), bits);
            enclosed(&rest).times(&sum.reciprocal(bits), bits)
        };
        let high = enclosed(&rest).minus(&low, bits);
        let levels = Levels { step: epsilon.times_power(epsilon, 1), offset: vec![(inverse.clone(), 1)] };
        let atoms =
            vec![Atom { mass: low, multiplier: inverse }, Atom { mass: high, multiplier: epsilon.clone() }];
        Self { atoms, infinity, lattice: Some((levels, vec![0, 1])) }
    }

    /// Discrete Laplace noise, `P[x]` proportional to `e^(-|x| rate)`, on a value and one that is `shift` larger.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    pub fn discrete_laplace(rate: &Multiplier, shift: u32, limbs: usize, control: &Control) -> Result<Self> {
        let bits = mass_bits(limbs);
        let one = Multiplier::rational(Rational::one());
        let a = |x: u32| one.times_power(rate, -i64::from(x)).enclosure(bits);
        let single = Interval::integer(1);
        let sum = a(1).plus(&single, bits).reciprocal(bits);
        let middle = single.minus(&a(1), bits).times(&sum, bits);
        let mut atoms = Vec::with_capacity(shift as usize + 1);
        for index in 0..=shift {
            control.check()?;
            let x = shift - index;
            let mass = match x {
                0 => sum.clone(),
                _ if index == 0 => a(x).times(&sum, bits),
                _ => a(x).times(&middle, bits),
            };
            let multiplier = one.times_power(rate, 2 * i64::from(index) - i64::from(shift));
            atoms.push(Atom { mass, multiplier });
        }
        let levels = Levels {
            step: rate.times_power(rate, 1),
            offset: vec![(one.times_power(rate, -i64::from(shift)), 1)],
        };
        let infinity = Interval::integer(0);
        Ok(Self { atoms, infinity, lattice: Some((levels, (0..=i64::from(shift)).collect())) })
    }

    /// Discrete Gaussian noise, `P[x]` proportional to `e^(-x^2 / (2 sigma^2))`, on a value and one that is `shift` larger.
    ///
    /// # Numerics
    /// Masses beyond `reach` on either side are below 2^-(b + 8) together: those of losses that are too large count as
    /// infinite, which the unit for widths includes, and those of losses that are too small move up.
    ///
    /// # Errors
    /// [`Error::Canceled`].
    pub fn discrete_gaussian(
        sigma_squared: &Rational,
        shift: u32,
        reach: u32,
        limbs: usize,
        control: &Control,
    ) -> Result<Self> {
        let bits = mass_bits(limbs);
        let double = sigma_squared * Integer::from(2);
        let mut weights = Vec::with_capacity(reach as usize + 1);
        for x in 0..=reach {
            control.check()?;
            weights.push(exp(
                &-(Rational::from_integer(Integer::from(u64::from(x) * u64::from(x))) / &double),
                bits,
            ));
        }
        // Beyond the reach R terms fall by r <= e^(-R / sigma^2) each, and r / (1 - r) <= sigma^2 / R.
        let times = (sigma_squared / Integer::from(reach)).ceil().to_integer();
        let last = weights[reach as usize].times(&Interval::integer(times), bits);
        let one_side = weights[1..].iter().fold(Interval::integer(0), |sum, weight| sum.plus(weight, bits));
        let mut all = one_side.plus(&one_side, bits).plus(&weights[0], bits);
        all.upper = all.upper.plus(&last.upper).plus(&last.upper).rounded(bits, true);
        let scale = all.reciprocal(bits);
        let unit = Rational::from_integer(Integer::from(shift)) / sigma_squared;
        let mut atoms = Vec::with_capacity(2 * reach as usize + 1);
        // The loss at x is (shift^2 - 2 shift x) / (2 sigma^2): it rises as x falls.
        for index in -i64::from(reach)..=i64::from(reach) {
            let mass = weights[index.unsigned_abs() as usize].times(&scale, bits);
            let half = Rational::new(Integer::from(shift), Integer::from(2));
            let exponent = (half + Rational::from_integer(Integer::from(index))) * &unit;
            atoms.push(Atom { mass, multiplier: Multiplier::exponential(exponent) });
        }
        let offset = Multiplier::exponential(atoms[0].multiplier.exponent.clone());
        let levels = Levels { step: Multiplier::exponential(unit), offset: vec![(offset, 1)] };
        let beyond = last.times(&scale, bits).upper;
        let infinity = Interval { lower: Dyadic::integer(Integer::zero()), upper: beyond };
        Ok(Self { atoms, infinity, lattice: Some((levels, (0..=2 * i64::from(reach)).collect())) })
    }

    /// e^loss for the largest loss; none where Q lacks an outcome.
    pub(super) fn largest_loss(&self) -> Option<Multiplier> {
        if self.infinity.upper.sign().is_gt() {
            return None;
        }
        self.atoms.last().map(|atom| atom.multiplier.clone())
    }

    /// On its lattice, without any loss but the rounding of sums.
    pub(super) fn on_lattice(&self, indices: &[i64], limbs: usize, max_terms: usize) -> Result<Masses> {
        let indexed: Vec<(i64, Interval)> =
            indices.iter().zip(&self.atoms).map(|(&index, atom)| (index, atom.mass.clone())).collect();
        let low = indices.iter().copied().min().unwrap_or(0);
        let high = indices.iter().copied().max().unwrap_or(0);
        let rising = vec![BigInt::zero(); terms(low, high, max_terms)?];
        Ok(self.masses(
            indexed,
            low,
            &rising,
            limbs,
            working_bits(limbs, self.atoms.len(), 2.0),
            &BigUint::zero(),
        ))
    }

    /// On the levels e^(i / steps): each atom is split between the two levels around it, in a way that keeps P's mass and
    /// Q's. At most `cut` units move from each end.
    pub(super) fn on_grid(
        &self,
        levels: &Levels,
        limbs: usize,
        cut: &BigUint,
        max_terms: usize,
        control: &Control,
    ) -> Result<Masses> {
        let (_, step) = levels.offset_and_step();
        let bits = working_bits(limbs, self.atoms.len(), 1.0 / step);
        let mut cells = Vec::with_capacity(self.atoms.len());
        for atom in &self.atoms {
            control.check()?;
            cells.push((cell(&atom.multiplier, levels, bits), atom));
        }
        cells.sort_by_key(|(cell, _)| *cell);
        let unit = usize::try_from(bits_of(limbs)).unwrap_or(usize::MAX);
        let allowed = Integer::from(cut.clone());
        // How many atoms at an end hold at most the cut together.
        let leading = |atoms: &mut dyn Iterator<Item = &(i64, &Atom)>| {
            let mut sum = Integer::zero();
            atoms
                .take_while(|(_, atom)| {
                    sum += ceil_units(&atom.mass.upper, unit);
                    sum <= allowed
                })
                .count()
        };
        let below = leading(&mut cells.iter()).min(cells.len().saturating_sub(1));
        let above = leading(&mut cells[below..].iter().rev()).min(cells.len().saturating_sub(below + 1));
        let kept = &cells[below..cells.len() - above];
        let low = kept.first().map_or(0, |(cell, _)| *cell);
        let high = kept.last().map_or(0, |(cell, _)| cell + 1);
        let mut rising = vec![BigInt::zero(); terms(low, high, max_terms)?];
        let mut table = LevelTable::new(levels, bits);
        // G / (G - 1), for what an atom gives to the level above it.
        let step_up = levels.enclosure(1, bits + 64);
        let share = {
            let less = step_up.minus(&Interval::integer(1), bits + 64);
            step_up.times(&less.reciprocal(bits + 64), bits + 64)
        };
        for (cell, atom) in kept {
            control.check()?;
            // p - q E_i = p (1 - E_i / E), where E is the atom's own level.
            let own = atom.multiplier.enclosure(bits).reciprocal(bits);
            let rest = Interval::integer(1).minus(&table.enclosure(*cell).times(&own, bits), bits);
            let part = rest.times(&share, bits).times(&atom.mass, bits);
            let most = ceil_units(&atom.mass.upper, bits as usize);
            let given = ceil_units(&part.upper, bits as usize).clamp(Integer::zero(), most);
            rising[usize::try_from(cell + 1 - low).unwrap_or(0)] += given;
        }
        let outside: Interval = cells[cells.len() - above..]
            .iter()
            .fold(self.infinity.clone(), |sum, (_, atom)| sum.plus(&atom.mass, mass_bits(limbs)));
        let mut indexed: Vec<(i64, Interval)> = cells[..cells.len() - above]
            .iter()
            .map(|(cell, atom)| ((*cell).max(low), atom.mass.clone()))
            .collect();
        if indexed.is_empty() {
            indexed.push((0, Interval::integer(0)));
        }
        let moved = if below + above > 0 { cut * 2_u8 } else { BigUint::zero() };
        let part = Self { atoms: Vec::new(), infinity: outside, lattice: None };
        Ok(part.masses(indexed, low, &rising, limbs, bits, &moved))
    }

    /// Masses from atoms at indices, and what they give to levels above their own, in units of 2^-bits.
    fn masses(
        &self,
        atoms: Vec<(i64, Interval)>,
        low: i64,
        rising: &[Integer],
        limbs: usize,
        bits: i64,
        moved: &BigUint,
    ) -> Masses {
        let whole = Integer::one() << bits_of(limbs);
        let drop = usize::try_from(bits).unwrap_or(usize::MAX) - usize::try_from(bits_of(limbs)).unwrap_or(0);
        let unit = Integer::one() << drop;
        let to_units = |sum: &Integer| sum.div_ceil(&unit).min(whole.clone());
        let mut at = vec![Integer::zero(); rising.len()];
        for (index, mass) in atoms {
            at[usize::try_from(index - low).unwrap_or(0)] += ceil_units(&mass.upper, bits as usize);
        }
        let mut sum = ceil_units(&self.infinity.upper, bits as usize);
        let infinity = to_units(&sum);
        let mut last = infinity.clone();
        let mut survival = vec![0; rising.len() * limbs];
        for (i, here) in survival.chunks_exact_mut(limbs).enumerate().rev() {
            // Mass at this level or above it, and what atoms of the cell below give to it.
            sum += &at[i];
            let value = if i == 0 { whole.clone() } else { to_units(&(&sum + &rising[i])).max(last) };
            here.copy_from_slice(&words(value.magnitude(), limbs));
            last = value;
        }
        // One unit for rounding up, one for the widths of all enclosures.
        Masses::from_survival(limbs, low, &survival, &words(infinity.magnitude(), limbs), moved + 2_u8)
    }
}

/// How many indices there are, if so many are allowed.
pub(super) fn terms(low: i64, high: i64, max_terms: usize) -> Result<usize> {
    let terms = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX).saturating_add(1);
    if terms > max_terms {
        return Err(Error::too_large(format!(
            "max_terms: one release has {terms} losses on the grid, where {max_terms} are allowed; a coarser resolution \
             has fewer"
        )));
    }
    Ok(terms)
}

/// i with `E_i` <= multiplier < E_(i+1). Where even enclosures of so many bits do not tell, the multiplier is `E_i` but for less
/// than a part in 2^bits, which the widths of enclosures include.
fn cell(multiplier: &Multiplier, levels: &Levels, bits: i64) -> i64 {
    let floors = |bits: i64| {
        let step = levels.step.ln(bits);
        let quotient = multiplier.ln(bits).times(&step.reciprocal(bits + 64), bits + 64);
        let floor = |x: &Dyadic| x.to_rational().floor().to_integer().to_i64().unwrap_or(i64::MAX / 4);
        (floor(&quotient.lower), floor(&quotient.upper))
    };
    let (low, high) = floors(80);
    if low == high { high } else { floors(bits + 64).1 }
}

/// The lattice of rising rational levels, where all are a power of one rational number times the first.
fn lattice_of<'a>(ratios: impl Iterator<Item = &'a Rational>) -> Option<(Levels, Vec<i64>)> {
    const MOST_POWER: u32 = 1 << 12;
    let ratios: Vec<&Rational> = ratios.collect();
    let offset = vec![(Multiplier::rational((*ratios.first()?).clone()), 1)];
    if ratios.len() == 1 {
        let step = Multiplier::rational(Rational::from_integer(Integer::from(2)));
        return Some((Levels { step, offset }, vec![0]));
    }
    // The least quotient of neighbors is the only step tried: a lattice with another is answered on a grid.
    let gaps: Vec<Rational> = ratios.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let step = gaps.iter().min()?.clone();
    debug_assert!(step > Rational::one());
    // Good enough to guess a power from, which is checked.
    let rough = |ratio: &Rational| crate::exact::ln::ln(ratio, 64).to_f64_bounds().0;
    let width = rough(&step);
    let mut indices = vec![0_i64];
    for gap in &gaps {
        let power = (rough(gap) / width).round();
        if !(power >= 1.0 && power <= f64::from(MOST_POWER)) || step.pow(power as i32) != *gap {
            return None;
        }
        indices.push(indices.last()? + power as i64);
    }
    Some((Levels { step: Multiplier::rational(step), offset }, indices))
}

/// A curve from ends of its values on levels low - 1, ..., high: the chords between them. `moved` units are beyond the ends.
///
/// # Numerics
/// P's mass at levels >= i is U(i) = (G g(E_{i-1}) - `g(E_i)`) / (G - 1). Where ends of values are d apart, its upper end is too
/// large by less than ((G + 1) d + 5) / (G - 1) + 4, all in units of 2^-64F: G and 1 / (G - 1) are known to 2 units, and products
/// are a unit off. With the bits of [`bits_for`] that is less than 2^-b.
pub(super) fn chords<const N: usize, const F: usize>(
    curve: impl Fn(i64) -> (Fixed<N, F>, Fixed<N, F>) + Sync,
    levels: &Levels,
    (low, high): (i64, i64),
    moved: &BigUint,
    options: &Options,
    control: &Control,
) -> Result<Masses> {
    let (limbs, count) = (options.limbs, terms(low, high, options.max_terms)?);
    let mut values = memory::zeros("max_terms", count + 1, "a coarser resolution has fewer terms")?;
    values.par_iter_mut().enumerate().try_for_each(|(place, value)| {
        control.check()?;
        *value = curve(low - 1 + place as i64);
        Ok(())
    })?;
    let bits = Fixed::<N, F>::WIDTH as i64 + 8;
    let step = levels.enclosure(1, bits);
    let inverse = Fixed::<N, F>::ends(&step.minus(&Interval::integer(1), bits).reciprocal(bits)).1;
    let step = Fixed::<N, F>::ends(&step).1;
    // Products are rounded down.
    let unit = Fixed::units(1);
    let mut survival = memory::zeros("max_terms", count * limbs, "a coarser resolution has fewer terms")?;
    let mut infinity = vec![0; limbs];
    values[count].1.ceil_mass(&mut infinity);
    let mut last = infinity.clone();
    for (place, here) in survival.chunks_exact_mut(limbs).enumerate().rev() {
        let rise = step.times(&values[place].1).plus(&unit).minus(&values[place + 1].0);
        rise.max(&Fixed::ZERO).times(&inverse).plus(&unit).ceil_mass(here);
        if place == 0 {
            here.copy_from_slice(&words(&(BigUint::one() << bits_of(limbs)), limbs));
        } else if at_most(here, &last) {
            here.copy_from_slice(&last);
        }
        last.copy_from_slice(here);
    }
    Ok(Masses::from_survival(limbs, low, &survival, &infinity, moved + 2_u8))
}

/// Bits behind the point for [`chords`] of values whose ends are at most 2^`size` units of the last place apart, `size` >= 1.
pub(super) fn bits_for(limbs: usize, step: f64, size: f64) -> f64 {
    // (G + 1) / (G - 1) <= 2 / h + 1 <= 3 / h for h <= 1, and what else is off takes less than 2^4 times as much.
    bits_of(limbs) as f64 + size + (3.0 / step).log2() + 4.0
}

/// From the enclosed 1 - sqrt(E e^-end) and 1 / (1 - e^-end), of all mechanisms of bounded range.
pub(super) fn range_curve(rest: &Interval, scale: &Interval, bits: i64) -> Interval {
    rest.times(rest, bits).times(scale, bits)
}

/// From the same, of continuous Laplace noise.
pub(super) fn laplace_curve(rest: &Interval, _scale: &Interval, _bits: i64) -> Interval {
    rest.clone()
}

/// A curve that is a function of 1 - sqrt(E e^-end) for E within e^(-end), e^end, and 1 - E or 0 outside.
pub(super) fn by_root(
    range: &Multiplier,
    inside: fn(&Interval, &Interval, i64) -> Interval,
    levels: &Levels,
    options: &Options,
    control: &Control,
) -> Result<Masses> {
    let (_, step) = levels.offset_and_step();
    // One level more at each end: there the curve is 0, or 1 - E.
    let last = (range.ln(64).to_f64_bounds().1 / step).ceil() as i64 + 1;
    // Ends are rounded to units, and enclosures are far narrower.
    let fraction = bits_for(options.limbs, step, 2.0);
    with_fixed!(fraction, 50.0, by_root_in(range, inside, levels, last, options, control))
}

fn by_root_in<const N: usize, const F: usize>(
    range: &Multiplier,
    inside: fn(&Interval, &Interval, i64) -> Interval,
    levels: &Levels,
    last: i64,
    options: &Options,
    control: &Control,
) -> Result<Masses> {
    // What 1 - e^-range lacks of 1 in bits.
    let size = range.ln(64).lower;
    let lost = -(size.mantissa.bits().cast_signed() + size.exponent).min(0);
    let bits = Fixed::<N, F>::WIDTH as i64 + 64 + 2 * lost;
    let inverse = range.enclosure(bits).reciprocal(bits);
    let one = Interval::integer(1);
    let scale = one.minus(&inverse, bits).reciprocal(bits);
    let top = range.enclosure(bits);
    let mut table = LevelTable::new(levels, bits);
    let count = terms(-last, last, options.max_terms)? + 1;
    let mut at = memory::room("max_terms", count)?;
    for index in -last - 1..=last {
        control.check()?;
        at.push(table.enclosure(index));
    }
    let curve = |index: i64| {
        let level = &at[usize::try_from(index + last + 1).unwrap_or(0)];
        let value = if level.lower.compare(&top.upper).is_ge() {
            Interval::integer(0)
        } else if level.upper.compare(&inverse.lower).is_le() {
            one.minus(level, bits)
        } else {
            let root = square_root(&level.times(&inverse, bits), bits);
            inside(&one.minus(&root, bits), &scale, bits)
        };
        Fixed::<N, F>::ends(&value)
    };
    chords(curve, levels, (-last, last), &BigUint::zero(), options, control)
}

/// The square root of a positive interval, to so many bits.
pub(super) fn square_root(x: &Interval, bits: i64) -> Interval {
    let root = |x: &Dyadic, up: bool| {
        let size = x.mantissa.bits().cast_signed();
        // Twice the bits, and an even exponent.
        let mut places = (2 * bits - size).max(0);
        places += (x.exponent - places).rem_euclid(2);
        let scaled = x.mantissa.magnitude() << usize::try_from(places).unwrap_or(0);
        let floor = scaled.sqrt();
        let inexact = &floor * &floor != scaled;
        let mantissa = Integer::from(if up && inexact { floor + 1_u8 } else { floor });
        Dyadic { mantissa, exponent: (x.exponent - places) / 2 }
    };
    Interval { lower: root(&x.lower, false), upper: root(&x.upper, true) }
}
