//! Files of modules: read, written in both forms, read back, and initialised.

use super::{Files, Form, boxed, corpus, of_files};
use crate::counts::{Counts, Tally};
use crate::effort::{is_small_module, parameters};
use crate::target::{CAP, Subject};
use autobatch_ir::{Graph, Module, Weights};
use autobatch_testing::hostile::tokens;

struct Modules {
    files: Files,
}

pub(super) fn open(form: Form) -> Box<dyn Subject> {
    let write =
        |module: &Module| if form == Form::Text { module.to_text().into_bytes() } else { module.to_bytes() };
    let seeds = corpus::graphs().iter().map(|graph| write(&graph.module)).collect();
    boxed(Modules { files: Files { form, seeds, tokens: &tokens::GRAPH } })
}

impl Subject for Modules {
    of_files!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let read = match self.files.form {
            Form::Text => counts.read(input.len(), || Module::from_text(input)),
            _ => counts.read(input.len(), || Module::from_bytes(input)),
        };
        let Some(module) = read else { return };
        if let Err(errors) = module.verify() {
            assert!(self.files.form == Form::Text, "the reader accepts an invalid module: {errors}");
            counts.add(Tally::Refused);
            return;
        }
        let (bytes, text) = (module.to_bytes(), module.to_text());
        let again = Module::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}\n{text}"));
        // The comparison is of bytes, because NaN values compare unequal.
        assert!(again.to_bytes() == bytes, "the binary form reads back another module\n{text}");
        let again = Module::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(again.to_text() == text, "the text reads back another module\n{text}");
        Graph::new(&module)
            .finish()
            .unwrap_or_else(|error| panic!("an empty graph has a fault: {error}\n{text}"));
        counts.add(Tally::Accepted);
        if !is_small_module(&module) {
            counts.add(Tally::Large);
            if parameters(&module) > CAP as u64 / 4 {
                assert!(Weights::try_init(&module, 1).is_err(), "parameters exceed the memory\n{text}");
            }
            return;
        }
        if Weights::try_init(&module, 1).is_ok() {
            counts.add(Tally::Executed);
        }
    }
}
