//! Metrics. Each adds one observation at a time and returns a number.
//!
//! Rates and scores are fractions from 0 to 1; Pearson's correlation starts at -1. Without observations
//! they are 0.

mod attachment;
mod pearson;
mod rate;
mod spans;

pub use attachment::Attachment;
pub use pearson::Pearson;
pub use rate::{Average, Confusion, Mean, Rate};
pub use spans::{Span, SpanScore, bio_spans};
