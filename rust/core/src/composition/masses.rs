//! Masses of P on a grid of losses, as integers over 2^b, and their products rounded upwards in loss.
//!
//! `docs/proofs/exact_composition.md`: raising a loss raises the curve (Theorem 2); survival sums that are rounded up cost one
//! unit (Theorem 3); costs of factors add up, as often as a factor enters (Theorem 4).

use super::ntt::Multiplier;
use crate::{Error, Result, control::Control, memory};
use num_bigint::BigUint;

/// Masses in words of 64 bits, the lowest first: they and the infinite loss sum to 2^b, b = 64 limbs - 8.
#[derive(Debug, Clone)]
pub(super) struct Masses {
    /// Words of a mass.
    pub(super) limbs: usize,
    /// The index of the first mass.
    pub(super) low: i64,
    /// Of the indices from `low` on.
    pub(super) finite: Vec<u64>,
    /// At infinity.
    pub(super) infinity: Vec<u64>,
    /// The curve is at most so many units above that of what the masses stand for.
    pub(super) charge: BigUint,
}

/// b for so many words.
pub(super) fn bits_of(limbs: usize) -> u64 {
    64 * limbs as u64 - 8
}

/// A number of so many words, which it must fit.
pub(super) fn words(number: &BigUint, limbs: usize) -> Vec<u64> {
    let mut words = number.to_u64_digits();
    debug_assert!(words.len() <= limbs);
    words.resize(limbs, 0);
    words
}

/// The number that words stand for.
pub(super) fn number(words: &[u64]) -> BigUint {
    let halves = words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
    BigUint::new(halves.collect())
}

/// x += y; whether it overflows.
pub(super) fn add(x: &mut [u64], y: &[u64]) -> bool {
    let mut carry = false;
    for (x, &y) in x.iter_mut().zip(y) {
        let (sum, first) = x.overflowing_add(y);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        *x = sum;
        carry = first || second;
    }
    carry
}

/// x - y into `difference`; whether y is larger.
pub(super) fn subtract(x: &[u64], y: &[u64], difference: &mut [u64]) -> bool {
    let mut borrow = false;
    for ((difference, &x), &y) in difference.iter_mut().zip(x).zip(y) {
        let (rest, first) = x.overflowing_sub(y);
        let (rest, second) = rest.overflowing_sub(u64::from(borrow));
        *difference = rest;
        borrow = first || second;
    }
    borrow
}

/// Whether x <= y.
pub(super) fn at_most(x: &[u64], y: &[u64]) -> bool {
    x.iter().rev().le(y.iter().rev())
}

/// ceil(x / 2^b) for x of twice the words: the lowest of them but 8 bits are dropped.
fn ceil_by_bits(x: &[u64], out: &mut [u64]) {
    let limbs = out.len();
    for (i, out) in out.iter_mut().enumerate() {
        let above = x.get(limbs + i).copied().unwrap_or(0);
        *out = (x[limbs - 1 + i] >> 56) | (above << 8);
    }
    let dropped = x[..limbs - 1].iter().any(|&word| word != 0) || x[limbs - 1] << 8 != 0;
    if dropped {
        for out in out {
            let (next, carry) = out.overflowing_add(1);
            *out = next;
            if !carry {
                return;
            }
        }
    }
}

impl Masses {
    /// From survival sums in words: W(low), ..., W(top), and what is above. They must fall from 2^b.
    pub(super) fn from_survival(
        limbs: usize,
        low: i64,
        survival: &[u64],
        above: &[u64],
        charge: BigUint,
    ) -> Self {
        let mut finite = vec![0; survival.len()];
        let next = survival[limbs..].chunks_exact(limbs).chain([above]);
        for ((out, here), next) in finite.chunks_exact_mut(limbs).zip(survival.chunks_exact(limbs)).zip(next)
        {
            let negative = subtract(here, next, out);
            debug_assert!(!negative);
        }
        Self { limbs, low, finite, infinity: above.to_vec(), charge }
    }

    /// How many finite losses there are.
    pub(super) fn terms(&self) -> usize {
        self.finite.len() / self.limbs
    }

    /// The product of two (or a square). At most `cut` units move from each end: from below up, from above to infinity.
    fn times(
        &self,
        other: Option<&Self>,
        cut: &BigUint,
        multiplier: &mut Multiplier,
        control: &Control,
    ) -> Result<Self> {
        let limbs = self.limbs;
        let bits = bits_of(limbs);
        let product = multiplier.product(&self.finite, other.map(|other| &other.finite[..]), control)?;
        let right = other.unwrap_or(self);
        let one = BigUint::from(1_u8) << bits;
        let whole = &one * &one;
        let finite = (&one - number(&self.infinity)) * (&one - number(&right.infinity));
        let mut sum = words(&(&whole - finite), 2 * limbs);
        let mut infinity = vec![0; limbs];
        ceil_by_bits(&sum, &mut infinity);
        let terms = product.len() / (2 * limbs);
        let mut survival = memory::zeros("max_terms", terms * limbs, "a coarser resolution has fewer terms")?;
        for (out, mass) in survival.chunks_exact_mut(limbs).zip(product.chunks_exact(2 * limbs)).rev() {
            let overflow = add(&mut sum, mass);
            debug_assert!(!overflow);
            ceil_by_bits(&sum, out);
        }
        assert!(number(&sum) == whole, "masses of a product do not sum to one");
        drop(product);
        let at = |i: usize| &survival[i * limbs..(i + 1) * limbs];
        let (full, cut_words) = (words(&one, limbs), words(cut, limbs));
        // Survival sums at least `least` leave at most the cut below; at most `most`, above.
        let mut least = vec![0; limbs];
        subtract(&full, &cut_words, &mut least);
        let mut most = infinity.clone();
        add(&mut most, &cut_words);
        let mut first = 0;
        while first + 1 < terms && at_most(&least, at(first + 1)) {
            first += 1;
        }
        let mut last = terms - 1;
        while last > first && at_most(at(last), &most) {
            last -= 1;
        }
        let above = if last + 1 < terms { at(last + 1).to_vec() } else { infinity.clone() };
        let moved = (&one - number(at(first))) + (number(&above) - number(&infinity));
        let mut masses =
            memory::zeros("max_terms", (last + 1 - first) * limbs, "a coarser resolution has fewer terms")?;
        for (out, i) in masses.chunks_exact_mut(limbs).zip(first..) {
            let here = if i == first { &full[..] } else { at(i) };
            let next = if i == last { &above[..] } else { at(i + 1) };
            let negative = subtract(here, next, out);
            debug_assert!(!negative);
        }
        Ok(Self {
            limbs,
            low: self.low + right.low + i64::try_from(first).unwrap_or(i64::MAX),
            finite: masses,
            infinity: above,
            charge: &self.charge + &right.charge + moved + 1_u8,
        })
    }
}

/// The product of masses, each to a power of at least 1.
///
/// # Errors
/// [`Error::TooLarge`] before a product of more than `max_terms` terms; [`Error::Canceled`].
pub(super) fn product(
    factors: Vec<(Masses, u64)>,
    cut: &BigUint,
    max_terms: usize,
    control: &Control,
) -> Result<Masses> {
    let limbs = factors[0].0.limbs;
    let mut multiplier = Multiplier::new(limbs, bits_of(limbs));
    let mut times = |a: &Masses, b: Option<&Masses>| {
        let terms = a.terms() + b.unwrap_or(a).terms() - 1;
        if terms > max_terms || multiplier.bytes(terms) > memory::MOST_BYTES {
            return Err(Error::too_large(format!(
                "max_terms: a product has {terms} terms of {} bits, where {max_terms} are allowed; a coarser resolution \
                 has fewer, and so has a larger delta",
                bits_of(limbs),
            )));
        }
        a.times(b, cut, &mut multiplier, control)
    };
    let mut powers = Vec::with_capacity(factors.len());
    for (base, count) in factors {
        let mut power = base.clone();
        for bit in (0..count.ilog2()).rev() {
            power = times(&power, None)?;
            if count >> bit & 1 == 1 {
                power = times(&power, Some(&base))?;
            }
            control.advance(1)?;
        }
        powers.push(power);
    }
    // The two shortest first: a product tree.
    while powers.len() > 1 {
        powers.sort_by_key(|power| std::cmp::Reverse(power.terms()));
        if let (Some(a), Some(b)) = (powers.pop(), powers.pop()) {
            powers.push(times(&a, Some(&b))?);
        }
        control.advance(1)?;
    }
    powers.pop().ok_or_else(|| Error::invalid("parts", "there must be at least one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Survival sums of a square, rounded up, and masses from them: the rule itself, at any number of bits.
    fn rounded_square(masses: &[BigUint], infinity: &BigUint, bits: u64) -> (Vec<BigUint>, BigUint) {
        let one = BigUint::from(1_u8) << bits;
        let mut square = vec![BigUint::ZERO; 2 * masses.len() - 1];
        for (i, x) in masses.iter().enumerate() {
            for (j, y) in masses.iter().enumerate() {
                square[i + j] += x * y;
            }
        }
        let ceil = |sum: &BigUint| (sum + &one - 1_u8) >> bits;
        let finite = &one - infinity;
        let mut sum = &one * &one - &finite * &finite;
        let above = ceil(&sum);
        let mut last = above.clone();
        for mass in square.iter_mut().rev() {
            sum += &*mass;
            let here = ceil(&sum);
            *mass = &here - &last;
            last = here;
        }
        assert_eq!(last, one);
        (square, above)
    }

    #[test]
    fn the_rule_rounds_as_known_squares_are_rounded() {
        let numbers = |list: &[u32]| list.iter().map(|&x| BigUint::from(x)).collect::<Vec<_>>();
        let cases: [(&[u32], u32, &[u32], u32); 2] = [
            (&[10, 100, 90, 50], 6, &[0, 8, 46, 74, 71, 35, 10], 12),
            (&[0, 1, 254], 1, &[0, 0, 0, 1, 253], 2),
        ];
        for (masses, infinity, square, above) in cases {
            let found = rounded_square(&numbers(masses), &infinity.into(), 8);
            assert_eq!(found, (numbers(square), above.into()));
        }
    }

    #[test]
    fn squares_and_products_are_rounded_by_the_rule_bit_for_bit() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for limbs in [2, 3, 5] {
            let bits = bits_of(limbs);
            for terms in [1, 2, 7, 33, 64, 65, 200] {
                // Masses of all sizes; some are 0, and the rest of the whole is at infinity.
                let mut rest = BigUint::from(1_u8) << bits;
                let mut list = Vec::new();
                for place in 0..terms {
                    let random = (0..limbs).fold(BigUint::ZERO, |sum, _| (sum << 64) + next());
                    let share = if place % 5 == 3 { BigUint::ZERO } else { random >> (8 + next() % 90) };
                    let mass = share.min(&rest >> 3);
                    rest -= &mass;
                    list.push(mass);
                }
                let finite: Vec<u64> = list.iter().flat_map(|mass| words(mass, limbs)).collect();
                let masses =
                    Masses { limbs, low: -3, finite, infinity: words(&rest, limbs), charge: 5_u8.into() };
                let mut multiplier = Multiplier::new(limbs, bits);
                for other in [None, Some(&masses)] {
                    let found =
                        masses.times(other, &BigUint::ZERO, &mut multiplier, &Control::new()).unwrap();
                    let (wanted, above) = rounded_square(&list, &rest, bits);
                    // Masses of 0 at the ends are left out.
                    let skipped = usize::try_from(found.low + 6).unwrap();
                    let of_found: Vec<BigUint> = found.finite.chunks_exact(limbs).map(number).collect();
                    assert_eq!(of_found, wanted[skipped..skipped + found.terms()]);
                    let outside = wanted[..skipped].iter().chain(&wanted[skipped + found.terms()..]);
                    assert_eq!(outside.sum::<BigUint>(), BigUint::ZERO);
                    assert_eq!((number(&found.infinity), found.charge), (above, 11_u8.into()));
                }
            }
        }
    }
}
