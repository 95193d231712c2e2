//! Discrete Gaussian noise: its range of sigma^2, wiping, canceling.

use num_bigint::BigInt;
use num_rational::BigRational;
use userdp_core::{Error, control::Control, rng::Source, sampler::DiscreteGaussian};

fn noise(numerator: i64, denominator: i64) -> Result<DiscreteGaussian, Error> {
    DiscreteGaussian::new(BigRational::new(numerator.into(), denominator.into()))
}

#[test]
fn sigma_squared_has_two_ends() {
    for (numerator, denominator) in [(-1, 1), (0, 1), (99, 10_000)] {
        let error = noise(numerator, denominator).expect_err("a refusal").to_string();
        assert!(error.contains("finer"), "{error}");
    }
    let most = BigRational::from_integer(BigInt::from(1) << 112_u32);
    assert!(DiscreteGaussian::new(&most + BigRational::new(1.into(), 2.into())).is_err());
    let (least, most) = (noise(1, 100).expect("accepted"), DiscreteGaussian::new(most).expect("accepted"));
    assert_eq!(least.support(), 1);
    assert!((1 << 59..1 << 60).contains(&most.support()));
}

#[test]
fn weights_of_wide_distributions_are_refused() {
    let error = noise(1_000_000_000_000, 1).expect("accepted").weights(&Control::new());
    assert!(matches!(error, Err(Error::TooLarge { .. })));
    assert_eq!(noise(1, 1).expect("accepted").weights(&Control::new()).map(|weights| weights.len()), Ok(12));
}

#[test]
fn values_are_wiped_when_the_source_fails() {
    let distribution = noise(100, 1).expect("accepted");
    let mut values = [7; 4];
    // The first trial is +0, the second -0, and there are no others.
    let mut bytes = vec![0; 80];
    bytes[40] = 1;
    let mut source = Source::listed(bytes);
    let mut two = values[..2].to_vec();
    assert!(distribution.release_many(&mut source, &mut two, &Control::new()).is_err());
    assert_eq!(two, [0; 2]);
    assert!(distribution.release_many(&mut Source::listed(vec![]), &mut values, &Control::new()).is_err());
    assert_eq!(values, [0; 4]);
}

#[test]
fn canceled_work_leaves_nothing() {
    let (distribution, control) = (noise(100, 1).expect("accepted"), Control::new());
    control.cancel();
    let mut values = [7; 4];
    let outcome = distribution.release_many(&mut Source::system(), &mut values, &control);
    assert_eq!((outcome, values), (Err(Error::Canceled), [0; 4]));
}
