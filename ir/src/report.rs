//! The report of an error: its message, and the messages of its sources.
//!
//! `fn main() -> Result<(), E>` prints the `Debug` form of its error. Errors of this workspace therefore
//! print their message there, and not their fields: [`debug_as_display`](crate::debug_as_display) implements it.

use std::error::Error;
use std::fmt::{self, Write as _};

/// Writes an error's message, then one line for each source whose text the message lacks.
///
/// # Errors
/// If the formatter fails.
pub fn write(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            write!(text, "\n  caused by: {cause_text}")?;
        }
        source = cause.source();
    }
    f.write_str(&text)
}

/// Implements `Debug` of an error type as its message and the messages of its sources.
#[macro_export]
macro_rules! debug_as_display {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::report::write(self, f)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fmt;

    struct Failed {
        message: &'static str,
        source: Option<Box<Failed>>,
    }

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.message)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.source.as_deref().map(|source| source as _)
        }
    }

    debug_as_display!(Failed);

    fn chain(messages: &[&'static str]) -> Failed {
        let (message, rest) = messages.split_first().expect("a chain has a first error");
        let source = (!rest.is_empty()).then(|| Box::new(chain(rest)));
        Failed { message, source }
    }

    #[test]
    fn debug_prints_the_message_and_each_new_source_once() {
        assert_eq!(format!("{:?}", chain(&["no plan"])), "no plan");
        let told = chain(&["cannot read a.abg: not found", "not found", "disk 3 is offline"]);
        assert_eq!(format!("{told:?}"), "cannot read a.abg: not found\n  caused by: disk 3 is offline");
    }
}
