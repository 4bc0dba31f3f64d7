//! Watches for signs of life.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that acts if it hears nothing for some time. Dropping the value ends it.
pub(super) struct Watcher {
    signs: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts a thread that passes each sign of life to `progress`, and calls `silence` with the last sign if the next does not
    /// come in time.
    pub(super) fn start(
        patience: Duration,
        progress: impl Fn(&str) + Send + 'static,
        silence: impl Fn(&str, Duration) + Send + 'static,
    ) -> Self {
        let (signs, heard) = mpsc::channel::<String>();
        let thread = std::thread::spawn(move || {
            let mut last = String::new();
            loop {
                match heard.recv_timeout(patience) {
                    Ok(sign) => {
                        progress(&sign);
                        last = sign;
                    }
                    Err(RecvTimeoutError::Timeout) => return silence(&last, patience),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self { signs: Some(signs), thread: Some(thread) }
    }

    pub(super) fn beat(&self, what: &str) {
        if let Some(signs) = &self.signs {
            // The thread is gone if it has given up.
            let _ = signs.send(what.to_owned());
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.signs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
