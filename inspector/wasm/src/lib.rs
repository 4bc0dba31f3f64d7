//! The functions that the inspector's page calls.
//!
//! Strings cross the border through one buffer: the page calls [`reserve`], writes its bytes, and calls [`open`] or [`ask`],
//! which replaces the bytes by an answer in JSON: `{"ok": ..}` or `{"error": .., "help": ..}`. WebAssembly has one thread here.

use autobatch_inspector::Refused;
use autobatch_inspector::page::Inspected;
use serde_json::{Value as Json, json};
use std::cell::RefCell;

#[derive(Default)]
struct State {
    inspected: Inspected,
    buffer: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Makes the buffer this long and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.buffer.clear();
        state.buffer.resize(bytes, 0);
        state.buffer.as_mut_ptr()
    })
}

/// The address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn address() -> *const u8 {
    STATE.with_borrow(|state| state.buffer.as_ptr())
}

/// Opens a file: the buffer holds its name, which has `name` bytes, and its content. Returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn open(name: usize) -> usize {
    answer(|inspected, buffer| {
        let (name, content) = buffer.split_at(name.min(buffer.len()));
        inspected.open(&String::from_utf8_lossy(name), content)
    })
}

/// Answers the question in the buffer. Returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    answer(|inspected, buffer| inspected.ask(&String::from_utf8_lossy(buffer)))
}

fn answer(of: impl FnOnce(&mut Inspected, &[u8]) -> Result<Json, Refused>) -> usize {
    STATE.with_borrow_mut(|state| {
        let found = match of(&mut state.inspected, &state.buffer) {
            Ok(answer) => json!({"ok": answer}),
            Err(refused) => json!({"error": refused.message, "help": refused.help}),
        };
        state.buffer = found.to_string().into_bytes();
        state.buffer.len()
    })
}
