//! [`import`]: reads a state dict of PyTorch by the names of its modules.
//!
//! The names of the arrays of a module say what it is, and the declarations of the parameters say what the layer
//! expects. So every weight gets the layout of its layer, a square one too.

use super::import_error::ImportError;
use super::names::{entry_of, layer_name, sequential_order};
use super::{LayoutError, from_pytorch_gru, from_pytorch_linear, from_pytorch_sum};
use autobatch_ir::Weights;
use std::collections::{BTreeMap, BTreeSet};

/// An array of a state dict.
#[derive(Clone, Debug, PartialEq)]
pub struct StateArray {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements, row by row.
    pub values: Vec<f32>,
}

impl StateArray {
    /// Whether its rows have three equal parts.
    fn is_in_thirds(&self) -> bool {
        self.shape.first().is_some_and(|rows| rows.is_multiple_of(3)) && self.values.len() >= 3
    }
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The parameters that got values.
    pub read: Vec<String>,
    /// The parameters that the state dict lacks. They keep their values.
    pub missing: Vec<String>,
    /// The arrays that belong to no parameter.
    pub unexpected: Vec<String>,
    /// The biases that are the sum of two of PyTorch, which moves twice as far in a step. To train as PyTorch does, write
    /// `optimizer.rate(2.0, move |param| imported.joint_biases.contains(&param.name))`: equal without weight decay.
    pub joint_biases: Vec<String>,
}

/// Reads the arrays of a state dict into weights and converts their layouts.
///
/// `names` maps modules of PyTorch to layers here; modules below them follow, so `("encoder", "enc")` maps
/// `encoder.layers.0.linear1` to `enc.layers.0.linear1`. The longest name wins. Unlisted modules keep their names, and
/// `""` is the module of the state dict itself. The numbers of `torch.nn.Sequential` count activations too; its layers with
/// arrays are the layers here in order, so `("mlp", "mlp")` maps layers 0, 2 and 4 to those of an [`Mlp`](crate::Mlp). A stack or a bidirectional layer here takes the layers `_l0`, `_l1_reverse`
/// and so on of one recurrent module.
///
/// ```
/// use autobatch_ir::{ModuleBuilder, Weights};
/// use autobatch_nn::pytorch::{StateArray, import};
/// use autobatch_nn::Linear;
///
/// let mut m = ModuleBuilder::new("m");
/// Linear::new(&mut m, "out", 2, 2);
/// let mut weights = Weights::init(&m.build().expect("a valid module"), 0);
/// let array = |shape: &[usize], values: &[f32]| StateArray { shape: shape.to_vec(), values: values.to_vec() };
/// let state = [
///     ("0.weight".to_owned(), array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), // torch.nn.Sequential
///     ("0.bias".to_owned(), array(&[2], &[5.0, 6.0])),
/// ];
/// let imported = import(state.into(), &mut weights, &[("0", "out")]).expect("the sizes agree");
/// assert_eq!(weights.by_name("out.w"), Ok(&[1.0, 3.0, 2.0, 4.0][..]));
/// assert!(imported.missing.is_empty() && imported.unexpected.is_empty());
/// ```
///
/// # Errors
/// Arrays have other sizes than the layer, a module lacks an array, or a name of the list matches nothing. Then no value
/// changes.
pub fn import(
    state: BTreeMap<String, StateArray>,
    weights: &mut Weights,
    names: &[(&str, &str)],
) -> Result<Imported, ImportError> {
    let mut modules: BTreeMap<String, Arrays> = BTreeMap::new();
    for (name, array) in state {
        let (module, leaf) = name.rsplit_once('.').unwrap_or(("", &name));
        modules.entry(module.to_owned()).or_default().insert(leaf.to_owned(), array);
    }
    let mut import = Import { weights: weights.clone(), report: Imported::default() };
    let order = sequential_order(&modules, weights, names)?;
    let mut used = vec![(false, false); names.len()];
    for (module, arrays) in modules {
        let layer = order.get(&module).cloned().unwrap_or_else(|| layer_name(&module, names));
        let before = import.report.read.len();
        import.module(&module, &layer, arrays)?;
        if let Some(entry) = entry_of(&module, names) {
            used[entry].0 = true;
            used[entry].1 |= import.report.read.len() > before;
        }
    }
    if let Some((&(from, to), &(has_module, _))) = names.iter().zip(&used).find(|(_, used)| !used.1) {
        return Err(ImportError::Unmatched { from: from.to_owned(), to: to.to_owned(), has_module });
    }
    let Import { weights: imported, mut report } = import;
    let read: BTreeSet<&String> = report.read.iter().collect();
    let all = imported.iter().map(|param| param.name().to_owned());
    report.missing = all.filter(|name| !read.contains(name)).collect();
    *weights = imported;
    Ok(report)
}

pub(super) type Arrays = BTreeMap<String, StateArray>;

/// Replaces the joint projection of attention by those of queries, keys and values, a third of the rows each.
fn split_projections(arrays: &mut Arrays) {
    for kind in ["weight", "bias"] {
        let joint = format!("in_proj_{kind}");
        let Some(array) = arrays.get(&joint).filter(|array| array.is_in_thirds()) else { continue };
        let thirds = array.values.chunks(array.values.len() / 3);
        let mut shape = array.shape.clone();
        shape[0] /= 3;
        let part = |values: &[f32]| StateArray { shape: shape.clone(), values: values.to_vec() };
        let parts: Vec<StateArray> = thirds.map(part).collect();
        arrays.remove(&joint);
        let names = ["q", "k", "v"].map(|name| format!("{name}_proj_{kind}"));
        arrays.extend(names.into_iter().zip(parts));
    }
}

/// An import that is under way.
struct Import {
    weights: Weights,
    report: Imported,
}

impl Import {
    fn has(&self, name: &str) -> bool {
        self.weights.id(name).is_ok()
    }

    fn set(&mut self, module: &str, param: String, values: &[f32]) -> Result<(), ImportError> {
        let set = self.weights.set_by_name(&param, values);
        set.map_err(|error| ImportError::Weights { module: module.to_owned(), error })?;
        self.report.read.push(param);
        Ok(())
    }

    /// Reads the arrays of one module into a layer.
    fn module(&mut self, module: &str, layer: &str, mut arrays: Arrays) -> Result<(), ImportError> {
        while let Some(suffix) = recurrent_suffix(&arrays) {
            self.recurrent(module, layer, &suffix, &mut arrays)?;
        }
        if self.has(&format!("{layer}.q_proj.w")) {
            split_projections(&mut arrays);
        }
        for (leaf, array) in arrays {
            let below =
                |name: &str| if layer.is_empty() { name.to_owned() } else { format!("{layer}.{name}") };
            // A projection of attention has a layer of its own here.
            let projection = leaf.strip_suffix("_weight").map(|part| below(&format!("{part}.w")));
            let projection_bias = leaf.strip_suffix("_bias").map(|part| below(&format!("{part}.b")));
            let matrix = [(leaf == "weight").then(|| below("w")), projection];
            let unchanged = [
                (leaf == "weight").then(|| layer.to_owned()),
                (leaf == "weight").then(|| below("gain")),
                (leaf == "bias").then(|| below("b")),
                (leaf == "bias").then(|| below("bias")),
                projection_bias,
                Some(below(&leaf)),
            ];
            let known =
                |names: &[Option<String>]| names.iter().flatten().find(|name| self.has(name)).cloned();
            if let (Some(param), [outputs, inputs]) = (known(&matrix), &array.shape[..]) {
                let values = from_pytorch_linear(&array.values, *inputs, *outputs);
                let values =
                    values.map_err(|error| ImportError::Layout { module: module.to_owned(), error })?;
                self.fits(module, &param, &[*inputs, *outputs])?;
                self.set(module, param, &values)?;
            } else if let Some(param) = known(&unchanged) {
                self.fits(module, &param, &array.shape)?;
                self.set(module, param, &array.values)?;
            } else {
                self.report.unexpected.push(if module.is_empty() {
                    leaf
                } else {
                    format!("{module}.{leaf}")
                });
            }
        }
        Ok(())
    }

    /// Checks the extents of an array in the layout of its parameter. Equal numbers of elements are not enough.
    fn fits(&self, module: &str, param: &str, found: &[usize]) -> Result<(), ImportError> {
        let ty = self.weights.iter().find(|known| known.name() == param).map(|known| known.ty());
        let expected: Vec<usize> =
            ty.iter().flat_map(|ty| ty.shape.dims().iter().map(|&extent| extent as usize)).collect();
        if expected == found {
            return Ok(());
        }
        let error = LayoutError {
            array: "weight",
            expected: expected.iter().product(),
            found: found.iter().product(),
        };
        Err(ImportError::Layout {
            module: format!("{module} (@{param}{expected:?}, found {found:?})"),
            error,
        })
    }

    /// Reads one layer and direction of a recurrent module.
    fn recurrent(
        &mut self,
        module: &str,
        layer: &str,
        suffix: &str,
        arrays: &mut Arrays,
    ) -> Result<(), ImportError> {
        let layout = |error| ImportError::Layout { module: module.to_owned(), error };
        let mut take = |leaf: &str, needed: bool| {
            let array = format!("{leaf}{suffix}");
            match arrays.remove(&array) {
                None if needed => Err(ImportError::Incomplete { module: module.to_owned(), array }),
                found => Ok(found),
            }
        };
        let (ih, hh) = (take("weight_ih", true)?, take("weight_hh", true)?);
        let (Some(ih), Some(hh)) = (ih, hh) else { return Ok(()) };
        let [bias_ih, bias_hh, projection] =
            [take("bias_ih", false)?, take("bias_hh", false)?, take("weight_hr", false)?];
        let ([width, inputs], [_, hidden]) = (extents(&ih), extents(&hh));
        let Some(name) = self.recurrent_name(layer, suffix) else {
            let leaves = ["weight_ih", "weight_hh"].map(|leaf| format!("{module}.{leaf}{suffix}"));
            self.report.unexpected.extend(leaves);
            return Ok(());
        };
        let zeros = || StateArray { shape: vec![width], values: vec![0.0; width] };
        let (bias_ih, bias_hh) = (bias_ih.unwrap_or_else(zeros), bias_hh.unwrap_or_else(zeros));
        if self.has(&format!("{name}.bn")) {
            let gru = from_pytorch_gru(&ih.values, &hh.values, &bias_ih.values, &bias_hh.values);
            let gru = gru.map_err(layout)?;
            for (param, values) in [("wx", &gru.wx), ("wh", &gru.wh), ("b", &gru.b), ("bn", &gru.bn)] {
                self.set(module, format!("{name}.{param}"), values)?;
            }
            return Ok(());
        }
        let weights = [(&ih.values[..], inputs), (&hh.values[..], hidden)];
        let (joint, bias) =
            from_pytorch_sum(&weights, &[&bias_ih.values, &bias_hh.values], width).map_err(layout)?;
        if self.has(&format!("{name}.wx")) {
            let (x, h) = joint.split_at(inputs * width);
            self.set(module, format!("{name}.wx"), x)?;
            self.set(module, format!("{name}.wh"), h)?;
        } else {
            self.fits(module, &format!("{name}.w"), &[inputs + hidden, width])?;
            self.set(module, format!("{name}.w"), &joint)?;
        }
        if let Some(projection) = projection {
            let [outputs, inputs] = extents(&projection);
            let values = from_pytorch_linear(&projection.values, inputs, outputs).map_err(layout)?;
            self.set(module, format!("{name}.wr"), &values)?;
        }
        self.set(module, format!("{name}.b"), &bias)?;
        self.report.joint_biases.push(format!("{name}.b"));
        Ok(())
    }

    /// The layer here of a suffix such as `_l1_reverse`: a direction of a layer of a stack, if they exist.
    fn recurrent_name(&self, layer: &str, suffix: &str) -> Option<String> {
        let number = suffix.trim_start_matches("_l").trim_end_matches("_reverse");
        let direction = if suffix.ends_with("_reverse") { "bw" } else { "fw" };
        let exists = |name: &String| ["w", "wx"].iter().any(|param| self.has(&format!("{name}.{param}")));
        let alone = (suffix == "_l0").then(|| layer.to_owned());
        let both = (number == "0").then(|| format!("{layer}.{direction}"));
        let stacked = (direction == "fw").then(|| format!("{layer}.{number}"));
        let stacked_both = Some(format!("{layer}.{number}.{direction}"));
        [stacked_both, both, stacked, alone].into_iter().flatten().find(exists)
    }
}

/// The suffix of the first layer of a recurrent module, such as `_l0`.
fn recurrent_suffix(arrays: &Arrays) -> Option<String> {
    arrays.keys().find_map(|name| name.strip_prefix("weight_ih")).map(str::to_owned)
}

/// The extents of a matrix. Other arrays have the extents 0, which fit nothing.
fn extents(array: &StateArray) -> [usize; 2] {
    <[usize; 2]>::try_from(&array.shape[..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BiLstm, Embedding, Gru, LayerNorm, Linear, Lstm, Stacked, TransformerEncoder, TransformerOptions,
    };
    use autobatch_ir::ModuleBuilder;

    fn array(shape: &[usize]) -> StateArray {
        let values = (0..shape.iter().product()).map(|number: usize| number as f32).collect();
        StateArray { shape: shape.to_vec(), values }
    }

    fn state(arrays: &[(&str, &[usize])]) -> BTreeMap<String, StateArray> {
        arrays.iter().map(|(name, shape)| ((*name).to_owned(), array(shape))).collect()
    }

    #[track_caller]
    fn weights(declare: impl FnOnce(&mut ModuleBuilder)) -> Weights {
        let mut m = ModuleBuilder::new("m");
        declare(&mut m);
        Weights::init(&m.build().expect("a valid module"), 0)
    }

    /// The arrays of a recurrent module with `gates` gates.
    fn recurrent(
        prefix: &str,
        suffix: &str,
        [gates, inputs, hidden]: [usize; 3],
    ) -> Vec<(String, Vec<usize>)> {
        let name = |leaf: &str| format!("{prefix}.{leaf}{suffix}");
        vec![
            (name("weight_ih"), vec![gates * hidden, inputs]),
            (name("weight_hh"), vec![gates * hidden, hidden]),
            (name("bias_ih"), vec![gates * hidden]),
            (name("bias_hh"), vec![gates * hidden]),
        ]
    }

    fn all(arrays: Vec<(String, Vec<usize>)>) -> BTreeMap<String, StateArray> {
        arrays.into_iter().map(|(name, shape)| (name, array(&shape))).collect()
    }

    #[test]
    fn square_weights_are_transposed_and_tables_are_not() {
        let mut weights = weights(|m| {
            Embedding::new(m, "words", 3, 2);
            Linear::new(m, "out", 2, 2);
            LayerNorm::new(m, "norm", 2);
        });
        let arrays = state(&[
            ("embed.weight", &[3, 2]),
            ("net.0.weight", &[2, 2]),
            ("net.0.bias", &[2]),
            ("norm.weight", &[2]),
            ("norm.bias", &[2]),
            ("other.weight", &[1]),
        ]);
        let imported =
            import(arrays, &mut weights, &[("embed", "words"), ("net.0", "out")]).expect("they fit");
        assert_eq!(weights.by_name("out.w"), Ok(&[0.0, 2.0, 1.0, 3.0][..]));
        assert_eq!(weights.by_name("words"), Ok(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0][..]));
        assert_eq!(weights.by_name("norm.gain"), Ok(&[0.0, 1.0][..]));
        assert_eq!(imported.unexpected, ["other.weight"]);
        assert!(imported.missing.is_empty() && imported.joint_biases.is_empty(), "{imported:?}");
    }

    #[test]
    fn recurrent_layers_report_their_joint_biases() {
        let mut weights = weights(|m| {
            Lstm::new(m, "lstm", 3, 2);
            BiLstm::new(m, "context", 3, 2);
            Stacked::<BiLstm, 2>::new(m, "stack", 3, 2);
            Gru::new(m, "gru", 3, 2);
        });
        let mut arrays = recurrent("rnn", "_l0", [4, 3, 2]);
        for suffix in ["_l0", "_l0_reverse"] {
            arrays.extend(recurrent("context", suffix, [4, 3, 2]));
            arrays.extend(recurrent("stack", suffix, [4, 3, 2]));
        }
        for suffix in ["_l1", "_l1_reverse"] {
            arrays.extend(recurrent("stack", suffix, [4, 4, 2]));
        }
        arrays.extend(recurrent("gru", "_l0", [3, 3, 2]));
        let imported = import(all(arrays), &mut weights, &[("rnn", "lstm")]).expect("they fit");
        assert!(imported.missing.is_empty() && imported.unexpected.is_empty(), "{imported:?}");
        assert_eq!(imported.joint_biases.len(), 7, "{imported:?}");
        assert!(!imported.joint_biases.contains(&"gru.b".to_owned()));
        let bias = weights.by_name("lstm.b").expect("it is declared");
        assert_eq!(bias[3], 6.0, "the sum of both biases");
        // Row 4 of the joint weight is the second column of weight_hh.
        assert_eq!(weights.by_name("lstm.w").expect("it is declared")[4 * 8], 1.0);
    }

    #[test]
    fn transformer_layers_keep_their_names_below_a_mapped_module() {
        let mut weights = weights(|m| {
            TransformerEncoder::with_options(
                m,
                "enc",
                4,
                2,
                1,
                &TransformerOptions { feed_forward: Some(6), ..TransformerOptions::default() },
            );
        });
        let before = weights.len();
        let layer = "model.encoder.layers.0";
        let shapes: [(&str, &[usize]); 12] = [
            ("self_attn.in_proj_weight", &[12, 4]),
            ("self_attn.in_proj_bias", &[12]),
            ("self_attn.out_proj.weight", &[4, 4]),
            ("self_attn.out_proj.bias", &[4]),
            ("linear1.weight", &[6, 4]),
            ("linear1.bias", &[6]),
            ("linear2.weight", &[4, 6]),
            ("linear2.bias", &[4]),
            ("norm1.weight", &[4]),
            ("norm1.bias", &[4]),
            ("norm2.weight", &[4]),
            ("norm2.bias", &[4]),
        ];
        let arrays = shapes.iter().map(|(name, shape)| (format!("{layer}.{name}"), shape.to_vec())).collect();
        let imported = import(all(arrays), &mut weights, &[("model.encoder", "enc")]).expect("they fit");
        assert_eq!((imported.read.len(), imported.unexpected.len()), (12, 0), "{imported:?}");
        assert_eq!(imported.missing.len(), before - 12, "{imported:?}");
    }

    #[test]
    fn sizes_that_differ_name_the_module_and_change_nothing() {
        let mut weights = weights(|m| {
            Linear::new(m, "out", 2, 3);
            Lstm::new(m, "lstm", 3, 2);
        });
        let before = weights.clone();
        let turned = state(&[("out.weight", &[2, 3])]);
        let error = import(turned, &mut weights, &[]).expect_err("[2, 3] is the other layout").to_string();
        assert!(error.contains("out (@out.w[2, 3], found [3, 2])"), "{error}");
        let mut arrays = recurrent("lstm", "_l0", [4, 3, 2]);
        arrays.remove(1);
        let error = import(all(arrays), &mut weights, &[]).expect_err("an array is missing").to_string();
        assert!(error.contains("lacks weight_hh_l0"), "{error}");
        assert_eq!(weights, before);
    }
}
