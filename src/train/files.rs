//! Parameters alone as safetensors files, which other programs read and write.

use crate::train::arrays::{Arrays, Named, header, little_endian};
use crate::train::checkpoint::{STATE, examine};
use crate::train::checkpoint_error::CheckpointError;
use autobatch_ir::files::{Opened, replace_by};
use autobatch_ir::id::ParamId;
use autobatch_ir::types::Type;
use autobatch_ir::weights::ParamValues;
use autobatch_ir::{Module, Weights};
use autobatch_nn::pytorch::{self, Imported, StateArray};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes every parameter under its name as an array of F32, and nothing else. The file is whole at
/// every moment.
///
/// # Errors
/// The file cannot be written, or the names of the parameters exceed its header.
pub fn write_weights(path: impl AsRef<Path>, weights: &Weights) -> Result<(), CheckpointError> {
    let path = path.as_ref();
    let mut params: Vec<(Named, &[f32])> = weights.iter().map(array).collect();
    params.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let header = header(params.iter().map(|param| &param.0), None).map_err(CheckpointError::unwritten)?;
    let written = replace_by(path, |file| {
        let mut file = BufWriter::new(file);
        file.write_all(&header)?;
        params.iter().try_for_each(|(_, values)| file.write_all(&little_endian(values)))?;
        file.flush()
    });
    written.map_err(|error| CheckpointError::Io { path: path.to_owned(), error, is_read: false })
}

/// Reads every parameter of a module from a safetensors file, which may be a checkpoint. Arrays may be
/// F32, F16, BF16 or F64; F64 is rounded. For files of other libraries see [`pytorch`](crate::nn::pytorch).
///
/// # Errors
/// The file cannot be read or is damaged, or a parameter is missing or has another shape. In a file
/// that is not a checkpoint, every array must be a parameter.
pub fn read_weights(path: impl AsRef<Path>, module: &Module) -> Result<Weights, CheckpointError> {
    read_file(path.as_ref(), |bytes| weights_in(bytes, module))
}

/// Reads a file and decodes its bytes. Errors name the file.
pub(crate) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, CheckpointError>,
) -> Result<T, CheckpointError> {
    let io = |error| CheckpointError::Io { path: path.to_owned(), error, is_read: true };
    let in_file = |error| CheckpointError::File { path: path.to_owned(), error: Box::new(error) };
    let file = Opened::open(path).map_err(io)?;
    check_head(file.head(), file.length()).map_err(in_file)?;
    let bytes = file.read(u64::MAX).map_err(io)?;
    read(&bytes).map_err(in_file)
}

/// Checks the first bytes of a safetensors file before the rest is read: the length of the header, and its first character.
fn check_head(head: &[u8], len: Option<u64>) -> Result<(), CheckpointError> {
    let header = head.first_chunk().map(|length| u64::from_le_bytes(*length));
    let fits = |header: u64| len.is_none_or(|len| header.saturating_add(8) <= len);
    match header {
        Some(header) if fits(header) && head.get(8).is_none_or(|&first| first == b'{') => Ok(()),
        _ => Err(CheckpointError::damaged("its first bytes are not the length of a header and a header")),
    }
}

fn weights_in(bytes: &[u8], module: &Module) -> Result<Weights, CheckpointError> {
    let arrays = Arrays::read(bytes).map_err(CheckpointError::damaged)?;
    if arrays.remark().is_none() {
        let stranger = arrays.names().into_iter().find(|name| module.param(name).is_none());
        if let Some(name) = stranger {
            return Err(CheckpointError::Unknown { name });
        }
    } else {
        examine(&arrays)?;
    }
    weights_of(&arrays, module)
}

/// The overlap between a file and a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// The parameters that the file provided.
    pub read: Vec<String>,
    /// The parameters that the file lacks; they keep their values.
    pub missing: Vec<String>,
    /// The arrays that belong to no parameter.
    pub unexpected: Vec<String>,
}

/// Reads the parameters that a safetensors file or a checkpoint has arrays for, and reports which. The
/// others keep their values. Use it to take over a part of another model, or a model that has grown.
///
/// ```
/// # use autobatch::prelude::*;
/// # use autobatch::nn::{Embedding, Linear};
/// # use autobatch::train::{read_matching_weights, write_weights};
/// # use std::sync::Arc;
/// # fn main() -> autobatch::Result<()> {
/// # let file = std::env::temp_dir().join(format!("autobatch-matching-{}.safetensors", std::process::id()));
/// # let mut old = ModuleBuilder::new("old");
/// # (Embedding::new(&mut old, "words", 9, 4), Linear::new(&mut old, "tags", 4, 3));
/// # let old = old.build()?;
/// # write_weights(&file, &Weights::init(&old, 7))?;
/// let mut m = ModuleBuilder::new("new");
/// let words = Embedding::new(&mut m, "words", 9, 4);
/// let out = Linear::no_bias(&mut m, "out", 4, 2);
/// let mut trainer = Trainer::new(m.build()?, Adam::new(1e-3))?;
/// let mut weights = Weights::clone(trainer.weights());
/// let matching = read_matching_weights(&file, &mut weights)?;
/// trainer.set_weights(Arc::new(weights))?;
/// assert_eq!((matching.read, matching.missing), (vec!["words".to_owned()], vec!["out.w".to_owned()]));
/// assert_eq!(matching.unexpected, ["tags.b", "tags.w"]);
/// # std::fs::remove_file(file).expect("it was just written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The file cannot be read or is damaged, or an array has another shape than its parameter. An error changes no value.
pub fn read_matching_weights(
    path: impl AsRef<Path>,
    weights: &mut Weights,
) -> Result<Matching, CheckpointError> {
    read_file(path.as_ref(), |bytes| matching(bytes, weights))
}

fn matching(bytes: &[u8], weights: &mut Weights) -> Result<Matching, CheckpointError> {
    let arrays = Arrays::read(bytes).map_err(CheckpointError::damaged)?;
    if arrays.remark().is_some() {
        examine(&arrays)?;
    }
    let (mut matching, mut found) = (Matching::default(), Vec::new());
    for (number, param) in weights.iter().enumerate() {
        let name = param.name().to_owned();
        match array_of(&arrays, &name, &extents(param.ty())) {
            Ok(values) => {
                found.push((ParamId::new(number), values));
                matching.read.push(name);
            }
            Err(CheckpointError::Missing { name }) => matching.missing.push(name),
            Err(error) => return Err(error),
        }
    }
    for (param, values) in found {
        weights.set(param, &values).expect("the shapes are equal");
    }
    let strange = |name: &String| weights.id(name).is_err() && !name.starts_with(STATE);
    matching.unexpected = arrays.names().into_iter().filter(strange).collect();
    Ok(matching)
}

/// Reads a state dict of PyTorch from a safetensors file into weights. It transposes weights, sums double biases and
/// maps names as [`nn::pytorch::import`](crate::nn::pytorch::import) describes. In Python,
/// `safetensors.torch.save_file(model.state_dict(), "model.safetensors")` writes the file.
///
/// ```
/// # use autobatch::prelude::*;
/// # use autobatch::nn::{Embedding, Lstm};
/// # use autobatch::train::import_pytorch;
/// # use std::sync::Arc;
/// # fn main() -> autobatch::Result<()> {
/// # let mut m = ModuleBuilder::new("m");
/// # let words = Embedding::new(&mut m, "words", 9, 3);
/// # let lstm = Lstm::new(&mut m, "lstm", 3, 2);
/// # let module = m.build()?;
/// # let file = std::env::temp_dir().join(format!("autobatch-pytorch-{}.safetensors", std::process::id()));
/// # let mut p = ModuleBuilder::new("p"); // parameters with the names and shapes of a state dict
/// # p.param("embed.weight", [9, 3], Init::ZEROS);
/// # p.param("rnn.weight_ih_l0", [8, 3], Init::ZEROS);
/// # p.param("rnn.weight_hh_l0", [8, 2], Init::ZEROS);
/// # ["rnn.bias_ih_l0", "rnn.bias_hh_l0"].map(|name| p.param(name, [8], Init::ZEROS));
/// # autobatch::train::write_weights(&file, &Weights::init(&*p.build()?, 0))?;
/// let mut weights = Weights::init(&module, 0);
/// let imported = import_pytorch(&file, &mut weights, &[("embed", "words"), ("rnn", "lstm")])?;
/// assert!(imported.missing.is_empty() && imported.unexpected.is_empty());
/// // PyTorch trains two biases where the LSTM has their sum.
/// let optimizer = Adam::new(1e-3).rate(2.0, move |param| imported.joint_biases.contains(&param.name));
/// let options = SessionOptions::default();
/// let trainer = Trainer::with_options(&module, optimizer, Arc::new(weights), options)?;
/// # std::fs::remove_file(file).expect("it was just written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The file cannot be read or is damaged, or its arrays do not fit the layers. An error changes no value.
pub fn import_pytorch(
    path: impl AsRef<Path>,
    weights: &mut Weights,
    names: &[(&str, &str)],
) -> Result<Imported, CheckpointError> {
    read_file(path.as_ref(), |bytes| {
        let arrays = Arrays::read(bytes).map_err(CheckpointError::damaged)?;
        let mut state = BTreeMap::new();
        for name in arrays.names() {
            // Counters such as num_batches_tracked are integers and no parameters.
            if let Some(Ok((shape, values))) = arrays.get(&name) {
                state.insert(name, StateArray { shape, values });
            }
        }
        pytorch::import(state, weights, names).map_err(CheckpointError::PyTorch)
    })
}

/// Returns the name, the shape and the values of a parameter.
pub(crate) fn array(param: &ParamValues) -> (Named, &[f32]) {
    ((param.name().to_owned(), extents(param.ty())), param.values())
}

/// Returns the extents of a type's shape.
pub(crate) fn extents(ty: Type) -> Vec<usize> {
    ty.shape.dims().iter().map(|&extent| extent as usize).collect()
}

/// Reads every parameter of the module.
pub(crate) fn weights_of(arrays: &Arrays<'_>, module: &Module) -> Result<Weights, CheckpointError> {
    // A module may declare more than any file holds, so memory is allocated only for arrays that exist.
    let values = module.params.iter().map(|decl| array_of(arrays, &decl.name, &extents(decl.ty)));
    let weights = Weights::of(module, values.collect::<Result<_, _>>()?);
    Ok(weights.expect("the shapes are equal"))
}

/// Returns the values of a required array of this shape.
pub(crate) fn array_of(
    arrays: &Arrays<'_>,
    name: &str,
    expected: &[usize],
) -> Result<Vec<f32>, CheckpointError> {
    let found = arrays.get(name).ok_or_else(|| CheckpointError::Missing { name: name.to_owned() })?;
    let (shape, values) = found
        .map_err(|found| CheckpointError::Numbers { name: name.to_owned(), found: found.to_string() })?;
    if shape != expected {
        let (name, expected) = (name.to_owned(), expected.to_vec());
        return Err(CheckpointError::Shape { name, expected, found: shape });
    }
    Ok(values)
}
