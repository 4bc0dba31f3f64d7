//! A worker thread that panics while it emits an item changes nothing: the trainer goes on with the bits of a run without the
//! panic, and a checkpoint on disk stays whole.

use crate::model::{bits, data, file, train, trainer};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_panicking_worker_changes_nothing() {
    let items = data(1, 32);
    let (model, mut whole) = trainer(1);
    train(&model, &mut whole, &items, 0..4);

    let path = file("panics.safetensors");
    let (model, trainer) = trainer(1);
    let mut trainer = trainer.emit_threads(2);
    train(&model, &mut trainer, &items, 0..2);
    trainer.save(&path).expect("the temporary folder exists");
    let before = bits(&trainer);
    for bad in [0, 7, 31] {
        let numbered: Vec<usize> = (0..items.len()).collect();
        let step = catch_unwind(AssertUnwindSafe(|| {
            trainer.step(&numbered, |g, &number| {
                assert!(number != bad, "the model panics at item {bad}");
                model.loss(g, &items[number])
            })
        }));
        assert!(step.is_err(), "the panic of item {bad} reaches the caller");
        assert_eq!(bits(&trainer), before, "after the panic of item {bad}");
    }
    train(&model, &mut trainer, &items, 2..4);
    assert_eq!(bits(&trainer), bits(&whole));
    let (_, mut loaded) = crate::model::trainer(1);
    loaded.load(&path).expect("the checkpoint is whole");
    assert_eq!(bits(&loaded), before);
}
