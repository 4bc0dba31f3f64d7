//! Tests of work beside an executor.

use crate::executor::Executor;

#[test]
fn work_beside_an_executor_returns_its_result_or_its_panic() {
    for threads in 1..=3 {
        let mut executor = Executor::new(threads).unwrap();
        let isa = executor.isa();
        let (led, made) = executor.beside(|| vec![threads; 3], |executor| executor.isa());
        assert_eq!((led, made.unwrap()), (isa, vec![threads; 3]));
        let (led, made) = executor.beside(|| assert_eq!(threads, 0, "no thread"), |_| 7);
        assert_eq!(led, 7);
        let panic = made.unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("no thread"));
    }
}
