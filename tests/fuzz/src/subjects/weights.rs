//! Safetensors files: weights and checkpoints. An accepted file is written and read back.
//!
//! The hash of a checkpoint rejects nearly every mutation; files of weights have no hash.

use super::{Files, Form, boxed};
use crate::counts::{Counts, Tally};
use crate::target::Subject;
use autobatch::Trainer;
use autobatch::train::{read_weights, write_weights};
use autobatch_ir::module::{Init, Module, ModuleBuilder, ParamKind};
use autobatch_ir::{DType, Weights};
use autobatch_nn::optim::{Adam, AmsGrad, Momentum, Optimize, Optimizer, Sgd};
use autobatch_testing::hostile::{SplitMix64, mutated_bytes, mutated_json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The length of the number before the header of a safetensors file.
const LENGTH: usize = 8;
/// Pieces of the header.
const HEADER: [&str; 12] = [
    "\"F32\"",
    "\"F16\"",
    "\"BF16\"",
    "\"F64\"",
    "\"I8\"",
    "\"shape\":[],",
    "\"shape\":[0]",
    "[4294967296,4294967296]",
    "\"data_offsets\":[0,0]",
    "18446744073709551615",
    "\"__metadata__\":{},",
    "\"\\u001b[2J\"",
];

/// Safetensors files, whose headers are JSON.
struct Tensors {
    files: Files,
    headers: Vec<Vec<u8>>,
    /// The file that the readers open.
    path: PathBuf,
}

impl Tensors {
    fn new(name: &str, write: impl Fn(&PathBuf) -> Vec<Vec<u8>>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = format!("autobatch-fuzz-{name}-{}-{number}.safetensors", std::process::id());
        let path = std::env::temp_dir().join(file);
        let seeds = write(&path);
        let headers = seeds.iter().map(|file| split(file).0.to_vec()).collect();
        Self { files: Files { form: Form::Binary, seeds, tokens: &[] }, headers, path }
    }

    /// Mutates the header or the whole file.
    fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
        if random.below(3) == 0 {
            return mutated_bytes(random, &self.files.seeds);
        }
        let header = mutated_json(random, &self.headers, &HEADER);
        let (_, data) = split(&self.files.seeds[random.below(self.files.seeds.len())]);
        let length = header.len() as u64;
        [&length.to_le_bytes(), &header[..], data].concat()
    }

    /// Writes an input where the readers find it.
    fn put(&self, input: &[u8]) {
        std::fs::write(&self.path, input).expect("the folder for temporary files is writable");
    }

    fn written(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the file exists")
    }
}

impl Drop for Tensors {
    fn drop(&mut self) {
        // A file that is gone needs no removal.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Splits a file into its header and its data.
fn split(file: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = file.split_at(LENGTH);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    rest.split_at(length as usize)
}

fn module() -> Arc<Module> {
    let mut m = ModuleBuilder::new("weights");
    m.param("w", [3, 4], Init::Uniform(1.0));
    m.param_stored_as("half", ParamKind::Param, DType::BF16, [2, 2], Init::Uniform(1.0));
    m.table("words", [5, 2], Init::Uniform(1.0));
    m.param("scale", [], Init::Constant(1.0));
    m.build().expect("the module is well formed")
}

struct WeightFiles {
    tensors: Tensors,
    module: Arc<Module>,
}

pub(super) fn open_weights() -> Box<dyn Subject> {
    let module = module();
    let write = |path: &PathBuf| {
        let file = |seed| {
            write_weights(path, &Weights::init(&module, seed)).expect("the folder is writable");
            std::fs::read(path).expect("the file exists")
        };
        (0..4).map(file).collect()
    };
    let tensors = Tensors::new("weights", write);
    boxed(WeightFiles { tensors, module })
}

/// Implements the inputs of a subject with a field `tensors`.
macro_rules! of_tensors {
    () => {
        fn seeds(&self) -> &[Vec<u8>] {
            &self.tensors.files.seeds
        }

        fn draw(&self, random: &mut SplitMix64) -> Vec<u8> {
            self.tensors.draw(random)
        }
    };
}

impl Subject for WeightFiles {
    of_tensors!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let path = &self.tensors.path;
        self.tensors.put(input);
        let Some(weights) = counts.read(input.len(), || read_weights(path, &self.module)) else { return };
        write_weights(path, &weights).expect("the folder is writable");
        let written = self.tensors.written();
        let again = read_weights(path, &self.module).unwrap_or_else(|error| panic!("{error}"));
        // The comparison is of files, because NaN values compare unequal.
        write_weights(path, &again).expect("the folder is writable");
        assert!(self.tensors.written() == written, "the file reads back other weights");
        counts.add(Tally::Accepted);
    }
}

struct Checkpoints {
    tensors: Tensors,
    trainer: Trainer,
}

fn trainer(optimizer: Optimizer) -> Trainer {
    Trainer::new(module(), optimizer).expect("the optimiser fits the module")
}

pub(super) fn open_checkpoints() -> Box<dyn Subject> {
    let write = |path: &PathBuf| {
        let rules: [Optimizer; 4] = [
            Adam::new(0.1).into(),
            Momentum::new(0.1, 0.9).into(),
            Sgd::new(0.1).into(),
            AmsGrad::new(0.1).average(0.5),
        ];
        let file = |rule| {
            trainer(rule).save(path).expect("the folder is writable");
            std::fs::read(path).expect("the file exists")
        };
        rules.into_iter().map(file).collect()
    };
    let tensors = Tensors::new("checkpoint", write);
    boxed(Checkpoints { tensors, trainer: trainer(Adam::new(0.1).into()) })
}

impl Subject for Checkpoints {
    of_tensors!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let (path, trainer) = (&self.tensors.path, &mut self.trainer);
        self.tensors.put(input);
        if counts.read(input.len(), || trainer.load(path)).is_none() {
            return;
        }
        trainer.save(path).expect("the folder is writable");
        let written = self.tensors.written();
        trainer.load(path).unwrap_or_else(|error| panic!("{error}"));
        trainer.save(path).expect("the folder is writable");
        assert!(self.tensors.written() == written, "the file reads back another checkpoint");
        counts.add(Tally::Accepted);
    }
}
