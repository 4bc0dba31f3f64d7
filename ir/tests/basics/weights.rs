//! Weights.

use autobatch_ir::weights::WeightsError;
use autobatch_ir::{Init, ModuleBuilder, Weights};
use autobatch_testing::hostile::metered;

#[test]
fn parameters_too_large_for_memory_are_an_error() {
    let mut m = ModuleBuilder::new("m");
    m.param("w", [1 << 29], Init::ZEROS);
    let mut module = (*m.build().unwrap()).clone();
    // 2^48 bytes: more than a process can address.
    module.params = vec![module.params[0].clone(); 1 << 17];
    let error = Weights::try_init(&module, 0).unwrap_err();
    assert_eq!(error, WeightsError::Memory { bytes: 1 << 48 });
    assert!(error.to_string().contains("281474976710656 bytes, which the system cannot allocate"), "{error}");
}

#[test]
fn orthogonal_matrices_that_take_minutes_are_an_error() {
    let mut m = ModuleBuilder::new("m");
    m.param("small", [4, 3], Init::Saxe(1.0));
    m.param("large", [1 << 13, 1 << 14], Init::Saxe(1.0));
    let module = m.build().unwrap();
    let (error, spent) = metered(|| Weights::try_init(&module, 0).unwrap_err());
    assert_eq!(error, WeightsError::Orthogonal { name: "large".to_owned(), products: (1 << 41) + 72 });
    assert!(error.to_string().contains("another initialiser"), "{error}");
    assert!(spent.time.unwrap_or_default() < std::time::Duration::from_secs(5), "{spent:?}");
}

#[test]
fn given_values_are_rounded_and_their_number_is_checked() {
    let mut m = ModuleBuilder::new("m");
    m.param("w", [2], Init::ZEROS);
    let module = m.build().unwrap();
    let weights = Weights::of(&module, vec![vec![1.0, 2.0]]).unwrap();
    assert_eq!(weights.by_name("w").unwrap(), [1.0, 2.0]);
    for (values, found) in [(vec![], 0), (vec![vec![1.0; 3]], 3)] {
        let error = Weights::of(&module, values).unwrap_err();
        assert_eq!(error, WeightsError::Length { name: "w".to_owned(), expected: 2, found });
    }
}
