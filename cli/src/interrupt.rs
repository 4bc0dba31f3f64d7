//! Interruption by Ctrl-C or a signal of termination.
//!
//! The first signal asks the verb to stop at the next safe point. The second one ends the process at once.

use crate::failure::Answer;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Receives signals from now on. If the system refuses the handler, a signal ends the process as usual.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let _ = ctrlc::set_handler(|| {
            if REQUESTED.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(Answer::Interrupted.code()));
            }
        });
    });
}

/// Whether a signal asked the verb to stop.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
