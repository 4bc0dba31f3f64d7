//! Graph to plan.

pub mod layout;
