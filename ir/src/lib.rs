//! The two languages of autobatch: graphs and plans.
