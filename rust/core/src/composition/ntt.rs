//! Exact products of polynomials with non-negative integer coefficients: transforms modulo several primes, and Garner.
//!
//! A coefficient is `limbs` words of 64 bits, the lowest first; a product's has twice as many. Every coefficient of a
//! product must be below the product of the primes; the caller's masses sum to at most 2^b, so that 2^(2b) bounds it.

use crate::{Result, control::Control, memory};
use num_bigint::BigUint;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Transforms have at most 2^LONGEST entries: the primes are 1 modulo 2^LONGEST.
const LONGEST: u32 = 30;
/// How deep transforms split in halves: blocks of this many entries stay in the cache.
const BLOCK: usize = 1 << 12;
/// Coefficients put together at a time by one thread.
const TOGETHER: usize = 1 << 12;

fn multiply(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

fn power(mut base: u64, mut exponent: u64, p: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base, p);
        }
        base = multiply(base, base, p);
        exponent >>= 1;
    }
    result
}

/// Whether an odd number below 2^64 is prime: Miller and Rabin with the first twelve primes, which decides below 2^64.
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    let twos = (n - 1).trailing_zeros();
    BASES.iter().all(|&base| {
        let mut x = power(base, (n - 1) >> twos, n);
        if x == 1 {
            return true;
        }
        for _ in 0..twos {
            if x == n - 1 {
                return true;
            }
            x = multiply(x, x, n);
        }
        false
    })
}

/// A factor and floor(2^64 factor / p), by which Shoup's product needs no division.
type Factor = (u64, u64);

fn factor(w: u64, p: u64) -> Factor {
    (w, ((u128::from(w) << 64) / u128::from(p)) as u64)
}

/// a w mod p, in [0, 2p), for any a and w < p < 2^63: the quotient is short by at most one.
#[inline]
fn times(a: u64, (w, quotient): Factor, p: u64) -> u64 {
    let q = ((u128::from(a) * u128::from(quotient)) >> 64) as u64;
    a.wrapping_mul(w).wrapping_sub(q.wrapping_mul(p))
}

/// From [0, 2 bound) to [0, bound).
#[inline]
fn reduced(a: u64, bound: u64) -> u64 {
    // Where a is below the bound the difference wraps to more than a.
    a.min(a.wrapping_sub(bound))
}

/// [`factor`] for p from 2^61 to 2^62 without a division, by 2^125 / p rounded down.
#[inline]
fn factor_by(w: u64, inverse: u64, p: u64) -> Factor {
    // Short by less than 3: w times what the inverse lacks, over 2^61, and two floors. So the rest is below 4p < 2^64.
    let mut quotient = ((u128::from(w) * u128::from(inverse)) >> 61) as u64;
    let mut rest = quotient.wrapping_mul(p).wrapping_neg();
    for _ in 0..3 {
        quotient = quotient.wrapping_add(u64::from(rest >= p));
        rest = reduced(rest, p);
    }
    (w, quotient)
}

/// A prime below 2^62 and what its arithmetic needs. Values are in [0, 2p), as 4p < 2^64.
struct Prime {
    p: u64,
    /// An element of order 2^LONGEST.
    root: u64,
    /// -1 / p modulo 2^64.
    montgomery: u64,
    /// 2^64 modulo p.
    word: Factor,
    one: Factor,
}

impl Prime {
    fn new(p: u64) -> Self {
        let mut inverse = p;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(p.wrapping_mul(inverse)));
        }
        // The first number that is no square has this power of order 2^LONGEST exactly.
        let other = (2..p).find(|&x| power(x, (p - 1) / 2, p) == p - 1).unwrap_or(1);
        let root = power(other, (p - 1) >> LONGEST, p);
        let word = factor(((1_u128 << 64) % u128::from(p)) as u64, p);
        Self { p, root, montgomery: inverse.wrapping_neg(), word, one: factor(1, p) }
    }

    /// a b / 2^64 modulo p, in [0, 2p), for a, b < 2p < 2^63.
    #[inline]
    fn montgomery_product(&self, a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let q = (product as u64).wrapping_mul(self.montgomery);
        ((product + u128::from(q) * u128::from(self.p)) >> 64) as u64
    }

    /// The residue of a number of several words, in [0, 2p).
    #[inline]
    fn residue(&self, words: &[u64]) -> u64 {
        let mut sum = 0;
        for &word in words.iter().rev() {
            sum = reduced(times(sum, self.word, self.p) + times(word, self.one, self.p), 2 * self.p);
        }
        sum
    }
}

/// The largest primes below 2^62 that are 1 modulo 2^LONGEST.
fn primes(count: usize) -> &'static [Prime] {
    const MOST: usize = 40;
    static PRIMES: OnceLock<Vec<Prime>> = OnceLock::new();
    let all = PRIMES.get_or_init(|| {
        let candidates = (1..1_u64 << 32).map(|k| (1_u64 << 62) - (k << LONGEST) + 1);
        candidates.filter(|&p| is_prime(p)).take(MOST).map(Prime::new).collect()
    });
    &all[..count]
}

/// How many primes products below 2^bits take: each is above 2^61.99.
fn primes_for(bits: u64) -> usize {
    usize::try_from((bits * 100).div_ceil(6199)).unwrap_or(usize::MAX)
}

/// Roots of unity of a prime, for all lengths up to one: those of 2n are at n..2n.
struct Transform {
    prime: &'static Prime,
    roots: Vec<Factor>,
}

impl Transform {
    fn new(prime: &'static Prime, log: u32) -> Self {
        let p = prime.p;
        let mut roots = vec![(0, 0); 1 << log];
        let inverse = ((1_u128 << 125) / u128::from(p)) as u64;
        for level in 1..=log {
            let half = 1_usize << (level - 1);
            let step = factor(power(prime.root, 1 << (LONGEST - level), p), p);
            let mut root = 1;
            for entry in &mut roots[half..2 * half] {
                *entry = factor_by(root, inverse, p);
                root = reduced(times(root, step, p), p);
            }
        }
        Self { prime, roots }
    }

    /// Decimation in frequency, from the natural to the bit-reversed order.
    fn forward(&self, values: &mut [u64]) {
        let length = values.len();
        if length > BLOCK {
            self.split(values);
            let (low, high) = values.split_at_mut(length / 2);
            self.forward(low);
            self.forward(high);
            return;
        }
        let mut size = length;
        while size > 1 {
            values.chunks_exact_mut(size).for_each(|chunk| self.split(chunk));
            size /= 2;
        }
    }

    /// (x, y) becomes (x + y, (x - y) w). Sums are below 4p < 2^64.
    #[inline]
    fn split(&self, values: &mut [u64]) {
        let (p, half) = (self.prime.p, values.len() / 2);
        let double = 2 * p;
        let (low, high) = values.split_at_mut(half);
        for ((x, y), &root) in low.iter_mut().zip(high).zip(&self.roots[half..2 * half]) {
            let (a, b) = (*x, *y);
            *x = reduced(a.wrapping_add(b), double);
            *y = times(a.wrapping_add(double).wrapping_sub(b), root, p);
        }
    }

    /// Decimation in time, from the bit-reversed order back, with the same roots: entry i is that of -i.
    fn backward(&self, values: &mut [u64]) {
        let length = values.len();
        if length > BLOCK {
            let (low, high) = values.split_at_mut(length / 2);
            self.backward(low);
            self.backward(high);
            self.join(values);
            return;
        }
        let mut size = 2;
        while size <= length {
            values.chunks_exact_mut(size).for_each(|chunk| self.join(chunk));
            size *= 2;
        }
    }

    /// (x, y) becomes (x + w y, x - w y).
    #[inline]
    fn join(&self, values: &mut [u64]) {
        let (p, half) = (self.prime.p, values.len() / 2);
        let double = 2 * p;
        let (low, high) = values.split_at_mut(half);
        for ((x, y), &root) in low.iter_mut().zip(high).zip(&self.roots[half..2 * half]) {
            let (a, b) = (*x, times(*y, root, p));
            *x = reduced(a.wrapping_add(b), double);
            *y = reduced(a.wrapping_add(double).wrapping_sub(b), double);
        }
    }

    fn transformed(&self, coefficients: &[u64], limbs: usize, length: usize) -> Result<Vec<u64>> {
        let mut values = memory::zeros("max_terms", length, "a coarser resolution has fewer terms")?;
        for (value, words) in values.iter_mut().zip(coefficients.chunks_exact(limbs)) {
            *value = self.prime.residue(words);
        }
        self.forward(&mut values);
        Ok(values)
    }

    /// The residues of a product of so many terms.
    fn product(&self, a: &[u64], b: Option<&[u64]>, limbs: usize, terms: usize) -> Result<Vec<u64>> {
        let (p, length) = (self.prime.p, terms.next_power_of_two());
        let mut values = self.transformed(a, limbs, length)?;
        // What Montgomery's products lack, and the transforms' factor.
        let scale = factor(multiply(self.prime.word.0, power(length as u64 % p, p - 2, p), p), p);
        let put = |x: u64, y: u64| times(self.prime.montgomery_product(x, y), scale, p);
        if let Some(b) = b {
            let others = self.transformed(b, limbs, length)?;
            values.iter_mut().zip(&others).for_each(|(x, &y)| *x = put(*x, y));
        } else {
            for x in &mut values {
                *x = put(*x, *x);
            }
        }
        self.backward(&mut values);
        values[1..].reverse();
        values.truncate(terms);
        for x in &mut values {
            *x = reduced(*x, p);
        }
        Ok(values)
    }
}

/// Numbers from their residues, in mixed radix.
struct Garner {
    primes: &'static [Prime],
    /// 1 / `p_j` modulo `p_i`, at i (i - 1) / 2 + j.
    inverses: Vec<Factor>,
    /// The words of `p_0` ... p_{i-1}, of i words each, one after the other from i = 1 on.
    radices: Vec<u64>,
}

impl Garner {
    fn new(primes: &'static [Prime]) -> Self {
        let mut inverses = Vec::new();
        let mut radices = Vec::new();
        let mut radix = BigUint::from(1_u8);
        for (i, prime) in primes.iter().enumerate() {
            let p = prime.p;
            inverses.extend(primes[..i].iter().map(|other| factor(power(other.p % p, p - 2, p), p)));
            if i > 0 {
                let mut words = radix.to_u64_digits();
                words.resize(i, 0);
                radices.extend(words);
            }
            radix *= p;
        }
        Self { primes, inverses, radices }
    }

    /// The number with these residues, into `number`; `digits` is room for as many.
    #[inline]
    fn number(&self, residues: impl Fn(usize) -> u64, digits: &mut [u64], number: &mut [u64]) {
        number.fill(0);
        let (mut first_inverse, mut first_radix) = (0, 0);
        for (i, prime) in self.primes.iter().enumerate() {
            let p = prime.p;
            let mut digit = residues(i);
            for (&other, &inverse) in digits[..i].iter().zip(&self.inverses[first_inverse..]) {
                // Primes are within a factor of 2 of one another.
                digit = reduced(times(digit + p - reduced(other, p), inverse, p), p);
            }
            digits[i] = digit;
            first_inverse += i;
            if i == 0 {
                number[0] = digit;
                continue;
            }
            add_multiple(number, &self.radices[first_radix..first_radix + i], digit);
            first_radix += i;
        }
    }
}

/// Adds `factor` times `words`; the sum must fit.
#[inline]
fn add_multiple(number: &mut [u64], words: &[u64], factor: u64) {
    let mut carry = 0_u128;
    let both = words.len().min(number.len());
    for (x, &word) in number.iter_mut().zip(words) {
        carry += u128::from(*x) + u128::from(word) * u128::from(factor);
        *x = carry as u64;
        carry >>= 64;
    }
    for x in &mut number[both..] {
        if carry == 0 {
            return;
        }
        carry += u128::from(*x);
        *x = carry as u64;
        carry >>= 64;
    }
}

/// Products of polynomials whose masses sum to at most 2^bits; roots are made once, for the longest so far.
pub(super) struct Multiplier {
    limbs: usize,
    garner: Garner,
    transforms: Vec<Transform>,
    log: u32,
}

impl Multiplier {
    /// For coefficients of so many words, which sum to at most 2^bits.
    pub(super) fn new(limbs: usize, bits: u64) -> Self {
        let garner = Garner::new(primes(primes_for(2 * bits + 1)));
        Self { limbs, garner, transforms: Vec::new(), log: 0 }
    }

    /// How many bytes a product of so many terms takes, roots included.
    pub(super) fn bytes(&self, terms: usize) -> usize {
        let length = terms.next_power_of_two();
        let primes = self.garner.primes.len();
        primes
            .saturating_mul(length)
            .saturating_mul(16 + 16)
            .saturating_add(terms.saturating_mul(16 * self.limbs))
    }

    /// The product of two polynomials (or a square), of twice the words for each coefficient.
    pub(super) fn product(&mut self, a: &[u64], b: Option<&[u64]>, control: &Control) -> Result<Vec<u64>> {
        let limbs = self.limbs;
        let (left, right) = (a.len() / limbs, b.unwrap_or(a).len() / limbs);
        let terms = left + right - 1;
        let log = terms.next_power_of_two().trailing_zeros().max(1);
        if log > self.log {
            self.transforms = self.garner.primes.par_iter().map(|prime| Transform::new(prime, log)).collect();
            self.log = log;
        }
        control.check()?;
        let residues = self
            .transforms
            .par_iter()
            .map(|transform| {
                control.check()?;
                transform.product(a, b, limbs, terms)
            })
            .collect::<Result<Vec<_>>>()?;
        control.check()?;
        let stride = 2 * limbs;
        let mut product = memory::zeros("max_terms", terms * stride, "a coarser resolution has fewer terms")?;
        product.par_chunks_mut(TOGETHER * stride).enumerate().for_each(|(chunk, numbers)| {
            let mut digits = vec![0; residues.len()];
            for (place, number) in numbers.chunks_exact_mut(stride).enumerate() {
                let place = chunk * TOGETHER + place;
                self.garner.number(|prime| residues[prime][place], &mut digits, number);
            }
        });
        assert!(same_at_a_point(a, b.unwrap_or(a), &product, limbs), "a product of polynomials is wrong");
        Ok(product)
    }
}

/// Whether a(x) b(x) = c(x) modulo 2^61 - 1: a wrong coefficient is found with probability 1 - terms / 2^61 for a random x.
/// The point is fixed: this guards against mistakes of program or machine, not against somebody's choice.
fn same_at_a_point(a: &[u64], b: &[u64], c: &[u64], limbs: usize) -> bool {
    const P: u64 = (1 << 61) - 1;
    const X: u64 = 0x1b7e_1516_28ae_d2a6;
    let fold = |x: u128| {
        let folded = (x as u64 & P) + ((x >> 61) as u64);
        reduced((folded & P) + (folded >> 61), P)
    };
    let times = |x: u64, y: u64| fold(u128::from(x) * u128::from(y));
    let horner = |part: &[u64], limbs: usize| {
        part.chunks_exact(limbs).rev().fold(0, |sum, words| {
            // 2^64 = 8 modulo 2^61 - 1.
            let mass =
                words.iter().rev().fold(0, |mass, &word| fold(u128::from(mass) * 8 + u128::from(word)));
            fold(u128::from(sum) * u128::from(X) + u128::from(mass))
        })
    };
    // Parts of so many terms, by Horner's rule at a power of x.
    let mut far = 1;
    (0..TOGETHER).for_each(|_| far = times(far, X));
    let at = |polynomial: &[u64], limbs: usize| {
        let parts: Vec<u64> =
            polynomial.par_chunks(TOGETHER * limbs).map(|part| horner(part, limbs)).collect();
        parts.iter().rev().fold(0, |sum, &part| fold(u128::from(sum) * u128::from(far) + u128::from(part)))
    };
    let left = at(a, limbs);
    let right = if std::ptr::eq(a, b) { left } else { at(b, limbs) };
    times(left, right) == at(c, 2 * limbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_what_is_proved_of_them() {
        let found = primes(40);
        for prime in found {
            assert!(prime.p < 1 << 62 && prime.p as f64 > 2_f64.powf(61.99));
            assert_eq!(prime.p % (1 << LONGEST), 1);
            assert_eq!(power(prime.root, 1 << (LONGEST - 1), prime.p), prime.p - 1);
        }
        for prime in found {
            let inverse = ((1_u128 << 125) / u128::from(prime.p)) as u64;
            let many = (0..2000).map(|k| power(prime.root, k, prime.p));
            for w in many.chain([0, 1, 2, prime.p / 2, prime.p - 2, prime.p - 1]) {
                assert_eq!(factor_by(w, inverse, prime.p), factor(w, prime.p));
            }
        }
        // The four largest, from a table.
        let first: Vec<u64> = found[..4].iter().map(|prime| prime.p).collect();
        assert_eq!(
            first,
            [
                4_611_685_944_339_202_049,
                4_611_685_941_117_976_577,
                4_611_685_917_495_656_449,
                4_611_685_860_587_339_777
            ]
        );
    }

    #[test]
    fn products_are_those_of_schoolbook() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for limbs in [2, 3, 5, 17] {
            let bits = 64 * limbs as u64 - 8;
            let mut multiplier = Multiplier::new(limbs, bits);
            for (n, k) in [(1, 1), (2, 3), (37, 5), (64, 65), (300, 1), (200, 313)] {
                let mut random = |n: usize| -> Vec<u64> {
                    let mut words: Vec<u64> = (0..n * limbs).map(|_| next()).collect();
                    // Room for n masses that sum to at most 2^bits; some are 0, one may be all.
                    words.chunks_exact_mut(limbs).for_each(|mass| mass[limbs - 1] >>= 24);
                    words.chunks_exact_mut(limbs).step_by(7).skip(1).for_each(|mass| mass.fill(0));
                    if n == 1 {
                        words.fill(0);
                        words[limbs - 1] = 1 << 56;
                    }
                    words
                };
                let (a, b) = (random(n), random(k));
                let number =
                    |words: &[u64]| words.iter().rev().fold(BigUint::ZERO, |sum, &word| (sum << 64) + word);
                let of = |words: &[u64], limbs: usize| -> Vec<BigUint> {
                    words.chunks_exact(limbs).map(number).collect()
                };
                let (left, right) = (of(&a, limbs), of(&b, limbs));
                let mut wanted = vec![BigUint::ZERO; n + k - 1];
                for (i, x) in left.iter().enumerate() {
                    for (j, y) in right.iter().enumerate() {
                        wanted[i + j] += x * y;
                    }
                }
                let found = multiplier.product(&a, Some(&b), &Control::new()).unwrap();
                assert_eq!(of(&found, 2 * limbs), wanted, "{limbs} words, {n} x {k}");
                let square = multiplier.product(&a, None, &Control::new()).unwrap();
                assert_eq!(square, multiplier.product(&a, Some(&a), &Control::new()).unwrap());
            }
        }
    }
}
