//! Random tables near the boundary, with the verdicts of the checker that Coq has proved.
//!
//! `proofs/compare_certificates.py --write FILE` makes the file; `USERDP_TABLES=FILE` has the test read a longer one.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use userdp_core::{
    exact::Level,
    sampler::{refusal, tdlap},
};

const DECIDED: &str = include_str!("data/decided_tables.txt");

fn fraction(numerator: &str, denominator: &str) -> BigRational {
    let read = |text: &str| text.parse::<BigInt>().expect("an integer");
    BigRational::new(read(numerator), read(denominator))
}

#[test]
fn tables_that_coq_decided() {
    let longer =
        std::env::var("USERDP_TABLES").ok().map(|path| std::fs::read_to_string(path).expect("a file"));
    let (mut accepted, mut refused) = (0, 0);
    for line in longer.as_deref().unwrap_or(DECIDED).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, a, b, c, d, verdict, entries @ ..] = words.as_slice() else { panic!("too few words") };
        let level = Level::rational(fraction(a, b));
        let delta = fraction(c, d);
        let table: Vec<BigUint> = entries.iter().map(|entry| entry.parse().expect("an entry")).collect();
        let found = match *kind {
            "refusal" => refusal::certify(&table, &level, &delta),
            "laplace" => tdlap::certify(&table, &level, &delta),
            _ => panic!("an unknown kind"),
        };
        assert_eq!(found.is_ok(), *verdict == "accepted", "{line}");
        *(if found.is_ok() { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(accepted >= 40 && refused >= 40, "{accepted} accepted, {refused} refused");
}
