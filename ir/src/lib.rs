//! The two languages of autobatch: graphs and plans.

pub mod numeric;
