//! Sizes that numbers ask for are refused, whatever they are.

use userdp_core::{
    Error,
    control::Control,
    correlated::race,
    memory::{MOST_BYTES, copied, limited, room, zeros},
    public::PublicSeed,
    rng::{MOST_CHOSEN, Source},
    score::{thresholds::ThresholdSweep, user_rows::UserRows, users::first_rows},
    vectors::rows::RowsOfUsers,
};

const HUGE: [usize; 5] = [1 << 40, 1 << 61, 1 << 63, usize::MAX - 1, usize::MAX];

fn refused<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::TooLarge { .. } | Error::Memory { .. } | Error::InvalidArgument { .. }))
}

#[test]
fn limits_are_in_bytes() {
    assert_eq!(limited::<u8>("n", MOST_BYTES, "less").map(|list| list.len()), Ok(0));
    assert!(limited::<u8>("n", MOST_BYTES + 1, "less").is_err());
    assert!(limited::<u64>("n", MOST_BYTES / 8 + 1, "less").is_err());
    let message = limited::<u64>("n", 1 << 30, "take less").map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(
        message,
        Err("n: 1073741824 entries take 8.000 GiB, where at most 2.000 GiB are given at a time; take less"
            .into())
    );
    assert_eq!(zeros::<u16>("n", 3, "less"), Ok(vec![0; 3]));
    assert_eq!(copied("n", &[1, 2]), Ok(vec![1, 2]));
    assert!(matches!(room::<u64>("n", usize::MAX), Err(Error::Memory { .. })));
}

#[test]
fn counts_near_the_largest_are_refused() {
    let control = Control::new();
    let sweep = ThresholdSweep::new(&[1], &[0], &[0], 1, 1, 5, &control).expect("valid rows");
    for huge in HUGE {
        assert!(refused(&race::keys(&PublicSeed::new([0; 32]), "label", 0, huge, &control)));
        assert!(refused(&RowsOfUsers::new(&[0], huge, &control)));
        assert!(refused(&UserRows::new(&[0], &[0], huge, 1)));
        assert!(refused(&first_rows(&[0], huge, 1, &control)));
        assert!(refused(&ThresholdSweep::new(&[1], &[0], &[0], huge, 1, 5, &control)));
        assert!(refused(&sweep.groups(0, huge, &control)));
        assert!(refused(&Source::system().subset(huge, MOST_CHOSEN + 1, &Control::new())));
    }
}
