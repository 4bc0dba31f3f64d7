//! Graph to plan.

pub mod schedule;
