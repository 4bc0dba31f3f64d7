//! The reference interpreter satisfies the op table, and evaluates all of a random graph.

use autobatch_ir::graph::{Callee, OperandKind, OutputKind};
use autobatch_ir::numeric::Real;
use autobatch_ir::{DType, GraphData, Op, ParamId, ValueId, Weights};
use autobatch_oracle::reference::{self, Datum, Evaluation, Given, Noise, OnDemand, Run};
use autobatch_testing::op_table::{self, Differentiate, Evaluate, Gradients, Kind};
use autobatch_testing::random::{self, Options, Profile, Rng};
use std::cell::Cell;
use std::marker::PhantomData;

const TRAIN: Noise = Noise::On { seed: 11, step: 4 };

/// The reference interpreter for one number type.
struct Reference<T>(PhantomData<T>);

/// Sets up the evaluation of a graph at these parameters.
fn at<'g, T: Real>(graph: &'g GraphData, params: &[Vec<f64>], noise: Noise) -> Evaluation<'g, T> {
    let weights = Weights::init(&graph.module, 0);
    let mut evaluation = Evaluation::new(graph, &weights, noise).expect("the graph is well formed");
    for (number, values) in params.iter().enumerate() {
        let own = evaluation.param_mut(ParamId::new(number));
        own.iter_mut().zip(values).for_each(|(own, &x)| *own = T::from_f64(x));
    }
    evaluation
}

/// Returns the elements of a value as numbers.
fn numbers<T: Real>(graph: &GraphData, run: &Run<T>, id: ValueId) -> Vec<f64> {
    match run.value(id).expect("every value was computed") {
        Datum::Floats(elements) => elements.iter().map(|x| x.to_f64()).collect(),
        Datum::Words(words) if graph.type_of(id).dtype == DType::I32 => {
            words.iter().map(|&word| f64::from(word as i32)).collect()
        }
        Datum::Words(words) => words.iter().map(|&word| f64::from(word)).collect(),
        Datum::List(_) => unreachable!("a list cannot be an output"),
    }
}

impl<T: Real> Evaluate for Reference<T> {
    fn run(&self, graph: &GraphData, params: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let run = at::<T>(graph, params, Noise::Off).forward().expect("the example can be evaluated");
        graph.outputs.iter().map(|output| numbers(graph, &run, output.value)).collect()
    }
}

impl<T: Real> Differentiate for Reference<T> {
    fn gradients(&self, graph: &GraphData, params: &[Vec<f64>]) -> Gradients {
        let evaluation = at::<T>(graph, params, Noise::Off);
        let run = evaluation.forward().expect("the example can be evaluated");
        let found = evaluation.reverse(&run, &graph_losses(graph)).expect("losses are scalars");
        let widen = |gradient: &[T]| gradient.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let mut floats = vec![0.0; graph.bindings.floats.len()];
        for node in graph.arena.ids() {
            let Callee::Op(Op::Input(_)) = graph.signature(node).callee else { continue };
            let Some(OperandKind::Data(slot)) = graph.arena.operands(node)[0].kind() else { continue };
            if let Some(gradient) = found.value(ValueId::new(graph.arena.results(node).start)) {
                floats[slot as usize..][..gradient.len()].copy_from_slice(&widen(gradient));
            }
        }
        let param = |(number, values): (usize, &Vec<f64>)| {
            found.param(ParamId::new(number)).map_or_else(|| vec![0.0; values.len()], widen)
        };
        Gradients { params: params.iter().enumerate().map(param).collect(), floats }
    }
}

fn graph_losses(graph: &GraphData) -> Vec<(ValueId, f32)> {
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    losses.map(|output| (output.value, 1.0)).collect()
}

fn for_every_kind(check: impl Fn(Kind) -> Result<(), String>) {
    let failures: Vec<String> = Kind::ALL.iter().filter_map(|&kind| check(kind).err()).collect();
    assert!(failures.is_empty(), "{} entries fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_op_has_the_numbers_of_the_table_in_f32_and_in_f64() {
    for_every_kind(|kind| op_table::check_numbers(kind, &Reference::<f32>(PhantomData), 1e-6));
    for_every_kind(|kind| op_table::check_numbers(kind, &Reference::<f64>(PhantomData), 1e-6));
}

#[test]
fn every_op_has_the_gradient_of_the_table() {
    for_every_kind(|kind| op_table::check_gradients(kind, &Reference::<f64>(PhantomData), 1e-4));
}

/// Checks that every value has the elements of its type, and that two runs give the same bits.
fn whole<T: Real>(graph: &GraphData, noise: Noise) -> Result<(), String> {
    let weights = Weights::init(&graph.module, 1);
    let run = || reference::forward::<T>(graph, &weights, noise).map_err(|error| error.to_string());
    let (run, again) = (run()?, run()?);
    for index in 0..graph.arena.values() {
        let id = ValueId::new(index);
        let ty = graph.type_of(id);
        if ty.is_list {
            let known = run.list(id).is_some_and(|items| items.iter().all(|item| item.index() < index));
            if known { continue } else { return Err(format!("{id} lists a value that does not exist")) }
        }
        let (found, repeated) = (numbers(graph, &run, id), numbers(graph, &again, id));
        if found.len() != ty.shape.elements() {
            return Err(format!("{id} is {ty} and has {} elements", found.len()));
        }
        if !found.iter().zip(&repeated).all(|(a, b)| a.to_bits() == b.to_bits()) {
            return Err(format!("{id} differs between runs"));
        }
    }
    let gradients = reference::reverse(graph, &weights, &run, &graph_losses(graph));
    let gradients = gradients.map_err(|error| error.to_string())?;
    for index in 0..graph.arena.values() {
        let id = ValueId::new(index);
        let length = gradients.value(id).map(<[T]>::len);
        if length.is_some_and(|length| length != graph.type_of(id).shape.elements()) {
            return Err(format!("the gradient of {id} has {length:?} elements"));
        }
    }
    Ok(())
}

#[test]
fn every_value_of_a_random_graph_is_evaluated_and_differentiated() {
    for profile in Profile::ALL {
        let options = Options::new(profile);
        random::check("complete in f32", options, 15, |graph| whole::<f32>(graph, TRAIN));
        random::check("complete in f64", options.infer_only(), 5, |graph| whole::<f64>(graph, Noise::Off));
        random::check("complete with wild numbers", options.wild(), 15, |graph| whole::<f32>(graph, TRAIN));
    }
}

/// Checks that values on demand have the bits of an evaluation of the whole graph, in any order, after others that are known from
/// elsewhere, and that a limit is kept.
fn on_demand(graph: &GraphData) -> Result<(), String> {
    let weights = Weights::init(&graph.module, 1);
    let whole = reference::forward::<f32>(graph, &weights, TRAIN).map_err(|error| error.to_string())?;
    let elsewhere = |id: ValueId| whole.floats(id).filter(|_| id.index().is_multiple_of(3));
    let given = Given { weights: &weights, noise: TRAIN, known: &elsewhere };
    let (mut values, mut limited) = (OnDemand::default(), OnDemand::default());
    for number in 0..graph.arena.values() {
        let id = ValueId::new(number * 7919 % graph.arena.values());
        if !values.evaluate(graph, &[id], &given, u64::MAX).map_err(|error| error.to_string())? {
            continue;
        }
        let bits = |datum: Option<&Datum<f32>>| match datum {
            Some(Datum::Floats(elements)) => elements.iter().map(|x| x.to_bits()).collect(),
            Some(Datum::Words(words)) => words.to_vec(),
            Some(Datum::List(items)) => items.iter().map(|item| item.index() as u32).collect(),
            None => Vec::new(),
        };
        if bits(values.value(id)) != bits(whole.value(id)) {
            return Err(format!("{id} differs from the evaluation of the whole graph"));
        }
        if elsewhere(id).is_none() && limited.evaluate(graph, &[id], &given, 0) != Ok(false) {
            return Err(format!("{id} was evaluated without an operation"));
        }
    }
    Ok(())
}

#[test]
fn values_on_demand_have_the_bits_of_an_evaluation() {
    for profile in Profile::ALL {
        random::check("on demand", Options::new(profile), 20, on_demand);
    }
}

/// Returns the derivative of all losses along one random direction of all parameters. Checks that it agrees
/// with the difference of the losses at both ends.
fn slope(graph: &GraphData) -> Result<f64, String> {
    let losses = graph_losses(graph);
    let values: Vec<Vec<f64>> = random::parameters(&graph.module, 3)
        .iter()
        .map(|values| values.iter().map(|&x| f64::from(x)).collect())
        .collect();
    let mut rng = Rng::new(17);
    let direction: Vec<Vec<f64>> =
        values.iter().map(|values| values.iter().map(|_| f64::from(rng.small())).collect()).collect();
    let total = |step: f64| -> Result<f64, String> {
        let along = |(x, d): (&Vec<f64>, &Vec<f64>)| x.iter().zip(d).map(|(x, d)| x + step * d).collect();
        let moved: Vec<Vec<f64>> = values.iter().zip(&direction).map(along).collect();
        let run = at::<f64>(graph, &moved, TRAIN).forward().map_err(|error| error.to_string())?;
        Ok(losses.iter().map(|&(loss, _)| numbers(graph, &run, loss)[0]).sum())
    };
    let h = 1e-5;
    let difference = (total(h)? - total(-h)?) / (2.0 * h);
    let evaluation = at::<f64>(graph, &values, TRAIN);
    let run = evaluation.forward().map_err(|error| error.to_string())?;
    let gradients = evaluation.reverse(&run, &losses).map_err(|error| error.to_string())?;
    let along = |(number, direction): (usize, &Vec<f64>)| -> f64 {
        let gradient = gradients.param(ParamId::new(number)).unwrap_or(&[]);
        gradient.iter().zip(direction).map(|(g, d)| g * d).sum()
    };
    let rule: f64 = direction.iter().enumerate().map(along).sum();
    let bound = 1e-5 * rule.abs().max(total(0.0)?.abs()).max(1.0);
    if (rule - difference).abs() <= bound {
        Ok(rule)
    } else {
        Err(format!("the rules give {rule}, differences give {difference}"))
    }
}

#[test]
fn gradients_of_random_graphs_agree_with_finite_differences() {
    let (steep, all) = (Cell::new(0), Cell::new(0));
    for profile in Profile::ALL {
        random::check("slopes", Options::new(profile).differentiable(), 25, |graph| {
            let slope = slope(graph)?;
            all.set(all.get() + 1);
            steep.set(steep.get() + u32::from(slope.abs() > 1e-3));
            Ok(())
        });
    }
    let (steep, all) = (steep.get(), all.get());
    assert!(2 * steep > all, "only {steep} of {all} graphs have a significant slope");
}
