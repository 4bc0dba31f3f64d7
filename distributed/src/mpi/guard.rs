//! [`Guard`]: a thread that watches over calls of MPI that cannot be polled, connecting and closing.

use std::io::Write;
use std::process::{abort, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that the functions at the exit of a process get.
const EXIT: Duration = Duration::from_secs(2);

/// Watches until it is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    ends: Arc<AtomicBool>,
}

impl Guard {
    /// Calls `look` now and then on a thread of its own. When that returns a message, prints it and ends the process, so that the
    /// launcher ends the others.
    pub(super) fn watch(mut look: impl FnMut() -> Option<String> + Send + 'static) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        // Without a thread, the call waits as MPI does.
        let _ = thread::Builder::new().spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                if let Some(message) = look() {
                    end(&message);
                }
                thread::sleep(PAUSE);
            }
        });
        Self { ends }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Ends the process, even if MPI holds its locks.
fn end(message: &str) -> ! {
    // The process ends now, so an error of printing cannot be reported.
    let _ = writeln!(std::io::stderr(), "error: {message}");
    let _ = thread::Builder::new().spawn(|| {
        thread::sleep(EXIT);
        abort();
    });
    exit(1)
}
