//! Graph to plan.
