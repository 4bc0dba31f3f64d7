//! Layers over graphs.

use crate::lab::*;
use autobatch_nn::{GatedGraph, GatedSum};

const H: usize = 4;

/// A path of three nodes and a node without neighbours.
const NEAR: [&[u32]; 4] = [&[1], &[0, 2], &[1], &[]];

fn part(row: &[f64], number: usize) -> &[f64] {
    &row[number * H..(number + 1) * H]
}

#[test]
fn a_gated_graph_network_updates_all_nodes_from_the_round_before() {
    let (lab, layer) = Lab::with(|m| GatedGraph::new(m, "g", H));
    let first = rows(1, NEAR.len(), H);
    let p = |name: &str| lab.param(&format!("g.{name}"));
    let mut states: Vec<Vec<f64>> = first.iter().map(|row| wide(row)).collect();
    for rounds in 0..3 {
        let found = lab.eval(|g| layer.run(g, &inputs(g, &first), &NEAR, rounds));
        found.iter().zip(&states).for_each(|(found, state)| close(found, state));
        let next = |(near, h): (&&[u32], &Vec<f64>)| {
            let sum = near.iter().fold(vec![0.0; H], |sum, &at| add(&sum, &states[at as usize]));
            let x = affine(&product(&sum, &p("message.w")), &p("update.wx"), &p("update.b"));
            let of_h = product(h, &p("update.wh"));
            let [r, z] = [0, 1].map(|gate| sigmoid(&add(part(&x, gate), part(&of_h, gate))));
            let n = tanh(&add(part(&x, 2), &mul(&r, &add(part(&of_h, 2), &p("update.bn")))));
            add(&mul(&map(&z, |z| 1.0 - z), &n), &mul(&z, h))
        };
        states = NEAR.iter().zip(&states).map(next).collect();
    }
    assert_eq!(layer.width(), H);
}

#[test]
fn a_gated_sum_reads_states_and_inputs() {
    let (lab, layer) = Lab::with(|m| GatedSum::new(m, "r", H, 3));
    let (states, xs) = (rows(1, 3, H), rows(5, 3, H));
    let found = lab.eval(|g| {
        let (states, xs) = (inputs(g, &states), inputs(g, &xs));
        vec![layer.on(g, &states, &xs), layer.on(g, &[], &[])]
    });
    let node = |(h, x): (&Vec<f32>, &Vec<f32>)| {
        let both = affine(&join(&wide(h), &wide(x)), &lab.param("r.w"), &lab.param("r.b"));
        mul(&sigmoid(&both[..3]), &tanh(&both[3..]))
    };
    let sum = states.iter().zip(&xs).map(node).reduce(|a, b| add(&a, &b)).unwrap();
    close(&found[0], &sum);
    close(&found[1], &[0.0; 3]);
}
