//! Layers over graphs.

use crate::lab::*;
use autobatch_nn::{Activation, GatedGraph, GatedSum, GraphAttention, GraphAttentionOptions};

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

#[test]
fn graph_attention_weighs_neighbours_and_the_node_itself() {
    const IN: usize = 3;
    let options = GraphAttentionOptions { slope: 0.25, activation: Activation::Elu(1.0) };
    let (lab, layer) = Lab::with(|m| GraphAttention::with_options(m, "g", [IN, H], 2, options));
    let xs = rows(1, NEAR.len(), IN);
    let found = lab.eval(|g| layer.run(g, &inputs(g, &xs), &NEAR));
    let z: Vec<Vec<f64>> = xs.iter().map(|x| product(&wide(x), &lab.param("g.w"))).collect();
    let dots = |name: &str, z: &[f64]| -> Vec<f64> {
        mul(z, &lab.param(name)).chunks(H / 2).map(|head| head.iter().sum()).collect()
    };
    for (node, (found, near)) in found.iter().zip(NEAR).enumerate() {
        let near: Vec<usize> = [node].into_iter().chain(near.iter().map(|&at| at as usize)).collect();
        let query = dots("g.query", &z[node]);
        let mut expected = lab.param("g.b");
        for (head, part) in expected.chunks_mut(H / 2).enumerate() {
            let score = |&at: &usize| {
                let sum = query[head] + dots("g.key", &z[at])[head];
                if sum > 0.0 { sum } else { 0.25 * sum }
            };
            let exps: Vec<f64> = near.iter().map(|at| score(at).exp()).collect();
            let total: f64 = exps.iter().sum();
            for (exp, &at) in exps.iter().zip(&near) {
                for (y, x) in part.iter_mut().zip(&z[at][head * H / 2..]) {
                    *y += exp / total * x;
                }
            }
        }
        close(found, &map(&expected, |y| if y > 0.0 { y } else { y.exp() - 1.0 }));
    }
    // A node that is its own neighbour counts once.
    let with_itself = lab.eval(|g| layer.run(g, &inputs(g, &xs), &[&[1, 0][..], &[0, 2], &[1], &[]]));
    close(&with_itself[0], &found[0]);
    assert_eq!((layer.heads(), layer.width()), (2, H));
}
