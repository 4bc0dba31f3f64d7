//! [`MultiHeadAttention`]: several heads, each with its own projections, that attend to lists of any length.

use crate::any_cell::{list_of, vector};
use crate::attention::no_values;
use crate::linear::Linear;
use crate::values::Values;
use autobatch_ir::{Cell, CellOfAny, Graph, Init, ModuleBuilder, Type, Value};
use std::borrow::Borrow;
use std::panic::Location;

/// Attention with several heads (Vaswani et al. 2017), as in `torch.nn.MultiheadAttention`. With `d = width /
/// heads`, and `q_h`, `k_h`, `v_h` the `h`-th group of `d` elements of the projected query, key and value:
/// ```text
/// a_h = sum_i softmax(q_h · k_hi / sqrt(d))_i * v_hi        y = [a_1 .. a_H] · Wo + bo
/// ```
/// A query attends to a list, so sequences of all lengths share a batch without padding or masks: a list contains only the
/// positions that the query may see. For any number of instances, [`run`](Self::run) is two batches: one projects all
/// positions, the other attends. Positions share the list that they read, also in causal attention, so graphs grow
/// with the positions and not with their pairs. So do plans; in training only if a loss depends on every position.
///
/// Parameters: the [`Linear`]s `name.in_proj` (`[width, 3 width]`: queries, keys and values, each grouped by head) and
/// `name.out_proj`. If keys or values have another width than queries, `name.q_proj`, `name.k_proj` and `name.v_proj` replace
/// `name.in_proj`. [`pytorch`](crate::pytorch) lists PyTorch's names for them.
///
/// ```
/// use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// use autobatch_nn::MultiHeadAttention;
///
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let attention = MultiHeadAttention::new(&mut m, "attention", 8, 2);
/// let g = Graph::new(&m.build()?);
/// for (key, length) in [3, 5].into_iter().enumerate() {
///     g.instance(key as u64);
///     let xs: Vec<_> = (0..length).map(|_| g.input(&[0.5; 8])).collect();
///     let all = attention.run(&g, &xs); // each position attends to all
///     let causal = attention.run_causal(&g, &xs); // each position attends to itself and earlier ones
///     let memory = attention.memory(&g, &all, &all);
///     let cross = attention.read(causal[0], &memory); // a query from another sequence
///     g.output(&format!("y {key}"), cross);
/// }
/// assert_eq!(g.finish()?.instances(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiHeadAttention {
    /// `x -> q k_1 .. k_H v_1 .. v_H`, if queries, keys and values have one width.
    itself: Option<CellOfAny>,
    query: Cell<1, 1>,
    /// `k v -> k_1 .. k_H v_1 .. v_H`
    entry: CellOfAny,
    /// `q, lists of k_1 .. k_H v_1 .. v_H -> y`
    read: CellOfAny,
    heads: usize,
}

/// Options of a [`MultiHeadAttention`].
#[derive(Clone, Debug, PartialEq)]
pub struct MultiHeadOptions {
    /// Whether the projections have biases, which start at zero.
    pub bias: bool,
    /// The width of keys, if it differs from that of queries.
    pub key: Option<usize>,
    /// The width of values, if it differs from that of queries.
    pub value: Option<usize>,
    /// The initialiser of the weights.
    pub init: Init,
}

impl Default for MultiHeadOptions {
    fn default() -> Self {
        Self { bias: true, key: None, value: None, init: Init::Glorot(1.0) }
    }
}

/// The projected keys and values of every head, to which queries attend.
#[derive(Clone, Debug)]
pub struct AttentionMemory<'g> {
    layer: MultiHeadAttention,
    /// One list for each of `k_1 .. k_H v_1 .. v_H`.
    lists: Vec<Value<'g>>,
}

impl MultiHeadAttention {
    /// A layer with biases, for queries, keys and values of one width; `heads` must divide it.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize) -> Self {
        Self::with_options(m, name, width, heads, &MultiHeadOptions::default())
    }

    /// A layer with options.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        width: usize,
        heads: usize,
        options: &MultiHeadOptions,
    ) -> Self {
        let (key, value) = (options.key.unwrap_or(width), options.value.unwrap_or(width));
        let joint = key == width && value == width;
        let weights =
            HeadWeights::declare(m, name, [width, heads], (!joint).then_some([key, value]), options);
        let mut itself = None;
        if joint {
            let ports = [vector(width)];
            let name = format!("{name}.project");
            itself = Some(m.cell_of_any(&name, &ports, |_, ports| weights.project(ports[0])));
        }
        let query = m.cell(&format!("{name}.query"), [vector(width)], |_, [x]| [weights.query(x)]);
        let ports = [vector(key), vector(value)];
        let entry =
            m.cell_of_any(&format!("{name}.entry"), &ports, |_, ports| weights.entry(ports[0], ports[1]));
        let mut ports = vec![vector(width)];
        ports.extend(weights.shape().list_types());
        let read = m.cell_of_any(&format!("{name}.read"), &ports, |g, ports| {
            vec![weights.read(g, ports[0], &ports[1..])]
        });
        Self { itself, query, entry, read, heads: weights.shape().heads }
    }

    /// The attention of each position over all positions.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let (queries, columns) = self.projected(g, xs);
        let lists = whole(g, &columns);
        let mut read = Vec::with_capacity(queries.len());
        for query in queries {
            read.push(self.read_lists(g, query, &lists));
        }
        read
    }

    /// The attention of each position over itself and earlier positions.
    #[track_caller]
    #[must_use]
    pub fn run_causal<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let (queries, columns) = self.projected(g, xs);
        let (mut read, mut lists) = (Vec::with_capacity(queries.len()), Vec::new());
        for (place, query) in queries.into_iter().enumerate() {
            append_to_each(g, &mut lists, columns.iter().filter_map(|column| column.get(place)));
            read.push(self.read_lists(g, query, &lists));
        }
        read
    }

    /// Projects keys and values, one value per key, for any number of queries.
    #[track_caller]
    #[must_use]
    pub fn memory<'g>(
        &self,
        g: &'g Graph,
        keys: impl Values<'g>,
        values: impl Values<'g>,
    ) -> AttentionMemory<'g> {
        let keys = keys.into_vec();
        let values = values.into_vec();
        if keys.len() != values.len() {
            let message = format!("{} keys need {} values, found {}", keys.len(), keys.len(), values.len());
            let refused = g.refuse("attention", &message, "give one value for each key", Location::caller());
            return AttentionMemory { layer: *self, lists: vec![refused; 2 * self.heads] };
        }
        let mut columns = vec![Vec::with_capacity(keys.len()); 2 * self.heads];
        for (key, value) in keys.into_iter().zip(values) {
            let entry = g.call_any(self.entry, [key, value]);
            columns.iter_mut().zip(entry).for_each(|(column, result)| column.push(result));
        }
        AttentionMemory { layer: *self, lists: whole(g, &columns) }
    }

    /// The attention of the query over a memory of this layer.
    #[track_caller]
    #[must_use]
    pub fn read<'g>(&self, query: Value<'g>, memory: &AttentionMemory<'g>) -> Value<'g> {
        let g = query.graph();
        if memory.layer != *self {
            let help = "make the memory with the layer that reads it";
            return g.refuse("attention", "the memory belongs to another layer", help, Location::caller());
        }
        let [query] = g.call(self.query, query);
        self.read_lists(g, query, &memory.lists)
    }

    #[track_caller]
    fn read_lists<'g>(&self, g: &'g Graph, query: Value<'g>, lists: &[Value<'g>]) -> Value<'g> {
        if lists.is_empty() {
            return no_values(g);
        }
        g.call_any(self.read, [&query].into_iter().chain(lists))[0]
    }

    /// The queries of the positions, and the columns of their keys and values.
    #[track_caller]
    fn projected<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> (Vec<Value<'g>>, Vec<Vec<Value<'g>>>) {
        let Some(itself) = self.itself else {
            let message = "self-attention needs keys and values of the width of queries";
            let help = "use memory(..) and read(..) for different widths";
            let refused = g.refuse("attention", message, help, Location::caller());
            return (vec![refused; xs.into_iter().count()], vec![vec![refused]; 2 * self.heads]);
        };
        project_all(g, itself, self.heads, xs)
    }

    /// The number of heads.
    #[must_use]
    pub const fn heads(&self) -> usize {
        self.heads
    }
}

/// The first result of each position, and the columns of the other results.
#[track_caller]
pub(crate) fn project_all<'g>(
    g: &'g Graph,
    project: CellOfAny,
    heads: usize,
    xs: impl Values<'g>,
) -> (Vec<Value<'g>>, Vec<Vec<Value<'g>>>) {
    let mut columns = columns_of(g, project, 1 + 2 * heads, xs);
    let queries = columns.remove(0);
    (queries, columns)
}

/// One column per result of a cell: the results for all values in order.
#[track_caller]
pub(crate) fn columns_of<'g>(
    g: &'g Graph,
    cell: CellOfAny,
    results: usize,
    xs: impl Values<'g>,
) -> Vec<Vec<Value<'g>>> {
    let mut columns = vec![Vec::new(); results];
    for x in xs {
        // After a fault there are fewer results; the graph has recorded the fault.
        let given = g.call_any(cell, [*x.borrow()]);
        columns.iter_mut().zip(given).for_each(|(column, result)| column.push(result));
    }
    columns
}

/// One list per column; no lists if the columns are empty.
#[track_caller]
pub(crate) fn whole<'g>(g: &'g Graph, columns: &[Vec<Value<'g>>]) -> Vec<Value<'g>> {
    let mut lists = Vec::with_capacity(columns.len());
    for column in columns.iter().filter(|column| !column.is_empty()) {
        lists.push(g.list(column));
    }
    lists
}

/// Appends one item to each list; the first items begin the lists.
#[track_caller]
pub(crate) fn append_to_each<'g, 'a>(
    g: &'g Graph,
    lists: &mut Vec<Value<'g>>,
    items: impl Iterator<Item = &'a Value<'g>>,
) where
    'g: 'a,
{
    if lists.is_empty() {
        for item in items {
            lists.push(g.list([item]));
        }
    } else {
        for (list, &item) in lists.iter_mut().zip(items) {
            *list = list.append(item);
        }
    }
}

/// The division of a width into heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    width: usize,
    pub(crate) heads: usize,
}

impl Heads {
    /// Reports a number of heads that does not divide the width, and continues with one head.
    #[track_caller]
    fn new(m: &mut ModuleBuilder, name: &str, width: usize, heads: usize) -> Self {
        if heads != 0 && width.is_multiple_of(heads) && width / heads != 0 {
            return Self { width, heads };
        }
        let message = format!("{heads} heads cannot divide a width of {width}");
        let help = Some("use a number of heads that divides the width".to_owned());
        m.fail(&format!("attention {name}"), message, help, Location::caller());
        Self { width, heads: 1 }
    }

    const fn head(self) -> usize {
        self.width / self.heads
    }

    /// The types of the lists of `k_1 .. k_H v_1 .. v_H`.
    pub(crate) fn list_types(self) -> impl Iterator<Item = Type> {
        std::iter::repeat_n(list_of(self.head()), 2 * self.heads)
    }
}

/// The projections, used inside cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadWeights {
    input: Input,
    out: Linear,
    shape: Heads,
}

#[derive(Clone, Copy, Debug)]
enum Input {
    Joint(Linear),
    Apart([Linear; 3]),
}

/// A part of a layer that is a [`Linear`].
#[track_caller]
pub(crate) fn linear(
    m: &mut ModuleBuilder,
    name: &str,
    part: &str,
    [inputs, outputs]: [usize; 2],
    options: &MultiHeadOptions,
) -> Linear {
    let bias = options.bias.then_some(Init::ZEROS);
    Linear::with_options(m, &format!("{name}.{part}"), inputs, outputs, options.init.clone(), bias)
}

impl HeadWeights {
    #[track_caller]
    pub(crate) fn declare(
        m: &mut ModuleBuilder,
        name: &str,
        [width, heads]: [usize; 2],
        apart: Option<[usize; 2]>,
        options: &MultiHeadOptions,
    ) -> Self {
        let shape = Heads::new(m, name, width, heads);
        let input = match apart {
            None => Input::Joint(linear(m, name, "in_proj", [width, width.saturating_mul(3)], options)),
            Some([key, value]) => Input::Apart([
                linear(m, name, "q_proj", [width, width], options),
                linear(m, name, "k_proj", [key, width], options),
                linear(m, name, "v_proj", [value, width], options),
            ]),
        };
        let out = linear(m, name, "out_proj", [width, width], options);
        // The declaration of the weight limits the width, and so the number of ports.
        let heads = if out.weight().id().is_some() { shape.heads } else { 1 };
        Self { input, out, shape: Heads { width, heads } }
    }

    /// The division of the width into heads.
    pub(crate) const fn shape(&self) -> Heads {
        self.shape
    }

    /// `q k_1 .. k_H v_1 .. v_H`
    #[track_caller]
    pub(crate) fn project<'g>(&self, x: Value<'g>) -> Vec<Value<'g>> {
        let [q, k, v] = self.three(x);
        let mut results = vec![q];
        results.extend(k.chunks(0, self.shape.heads));
        results.extend(v.chunks(0, self.shape.heads));
        results
    }

    #[track_caller]
    fn three<'g>(&self, x: Value<'g>) -> [Value<'g>; 3] {
        match self.input {
            Input::Joint(all) => all.on(x).split(),
            Input::Apart(each) => [each[0].on(x), each[1].on(x), each[2].on(x)],
        }
    }

    #[track_caller]
    pub(crate) fn query<'g>(&self, x: Value<'g>) -> Value<'g> {
        match self.input {
            Input::Joint(all) => all.on(x).slice(0..self.shape.width),
            Input::Apart([query, ..]) => query.on(x),
        }
    }

    #[track_caller]
    pub(crate) fn entry<'g>(&self, key: Value<'g>, value: Value<'g>) -> Vec<Value<'g>> {
        let [k, v] = match self.input {
            Input::Joint(all) => {
                let (key, value): ([_; 3], [_; 3]) = (all.on(key).split(), all.on(value).split());
                [key[1], value[2]]
            }
            Input::Apart([_, of_key, of_value]) => [of_key.on(key), of_value.on(value)],
        };
        let mut results = k.chunks(0, self.shape.heads);
        results.extend(v.chunks(0, self.shape.heads));
        results
    }

    /// The attention of a projected query over the lists of `k_1 .. k_H v_1 .. v_H`.
    #[track_caller]
    pub(crate) fn read<'g>(&self, g: &'g Graph, query: Value<'g>, lists: &[Value<'g>]) -> Value<'g> {
        let (keys, values) = lists.split_at(lists.len() / 2);
        let scale = 1.0 / (self.shape.head() as f32).sqrt();
        let mut heads = Vec::with_capacity(keys.len());
        for ((query, &keys), &values) in query.chunks(0, self.shape.heads).into_iter().zip(keys).zip(values) {
            heads.push(g.attend(query, keys, values, scale));
        }
        self.out.on_parts(g, heads)
    }
}
