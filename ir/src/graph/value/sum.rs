//! Sums of iterators of values.
//!
//! `Iterator::sum` knows no graph, and the sum of no values has no type. Such a sum is a poison value of a
//! graph that only holds the fault. A graph that reads the value stores the fault with the reader's line.

use super::Value;
use crate::graph::emit::Graph;
use crate::module::Module;
use std::iter::Sum;
use std::panic::Location;
use std::sync::Arc;

thread_local! {
    /// The graph of sums of no values, one for each thread. Values borrow it for any lifetime.
    static NO_VALUES: &'static Graph = Box::leak(Box::new(Graph::new(&Arc::new(Module::empty("sum")))));
}

/// The fault of a sum of no values.
pub(crate) const NO_TYPE: &str = "the sum of no values has no type";
/// How to fix it.
pub(crate) const TYPED_SUM: &str = "use g.list_of(type, values).sum(), which is zeros for no values";

impl<'g> Sum for Value<'g> {
    /// The sum of the values: a single node over their list. The sum of no values is a fault, because it
    /// has no type; `g.list_of(type, values).sum()` is zeros then.
    #[track_caller]
    fn sum<I: Iterator<Item = Value<'g>>>(values: I) -> Value<'g> {
        let values: Vec<Value<'g>> = values.collect();
        match values.first() {
            Some(first) => first.graph.list(&values).sum(),
            None => NO_VALUES.with(|graph| graph.refuse("sum", NO_TYPE, TYPED_SUM, Location::caller())),
        }
    }
}

impl<'a, 'g: 'a> Sum<&'a Value<'g>> for Value<'g> {
    #[track_caller]
    fn sum<I: Iterator<Item = &'a Value<'g>>>(values: I) -> Value<'g> {
        values.copied().sum()
    }
}

/// Whether a value is the sum of no values.
pub(crate) fn is_sum_of_none(value: Value<'_>) -> bool {
    NO_VALUES.with(|graph| value.is_of(graph))
}
