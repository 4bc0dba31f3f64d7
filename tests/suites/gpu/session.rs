//! The facade executes on a GPU.

use crate::common::executor;
use autobatch::prelude::*;
use autobatch_runtime_wgpu::Options;

fn sums(device: Device) -> autobatch::Result<Vec<Vec<f32>>> {
    let mut m = ModuleBuilder::new("sums");
    let words = m.table("words", [9, 4], Init::Uniform(0.5));
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([4]); 2], |g, [x, h]| [(g.affine([x], w, None) + h).tanh()]);
    let mut session = Session::new(&m.build()?, device)?;
    let sentences: [&[u32]; 3] = [&[1, 2, 3], &[8], &[4, 0]];
    let rows = session.predict(sentences, |g, sentence| {
        sentence.iter().fold(g.zeros([4]), |h, &word| {
            let [h] = g.call(cell, [words.lookup(g, word), h]);
            h
        })
    })?;
    Ok(rows.into_iter().map(|row| row.into_vec()).collect())
}

#[test]
fn a_session_predicts_the_same_on_gpu_and_cpu() {
    if executor(Options::default()).is_none() {
        return;
    }
    let (here, there) =
        (sums(Device::Cpu).expect("executes"), sums("gpu".parse().expect("a device")).expect("executes"));
    let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(here.iter().zip(&there).all(|(a, b)| close(a, b)), "{here:?}\n{there:?}");
}

#[test]
fn device_words_are_parsed() {
    for word in ["cpu", "gpu", "gpu:1", "gpu:radeon"] {
        assert_eq!(word.parse::<Device>().expect("a device").to_string(), word);
    }
    for word in ["", "gpu:", "GPU", "cuda", "cpu:1"] {
        let error = word.parse::<Device>().expect_err("no device");
        assert!(error.to_string().contains("gpu:part-of-a-name"), "{error}");
    }
    let (best, why) = Device::best_and_why();
    assert!(best == Device::best() && !why.is_empty());
}

/// Halves numbers until they are below 1, in parallel. Returns how often, and the results.
fn halved(device: Device) -> autobatch::Result<Vec<(u32, Vec<f32>)>> {
    let mut session = Session::new(&ModuleBuilder::new("halves").build()?, device)?;
    let g = session.graph();
    let task = async |x: f32| {
        let (mut x, mut halvings) = (g.input(&[x, 1.0]), 0);
        while x.get().await?[0] >= 1.0 {
            x = x * 0.5;
            halvings += 1;
        }
        Ok((halvings, x.get().await?))
    };
    session.tasks(&g, [1000.0, 0.25, 3.0].map(task))
}

#[test]
fn tasks_await_values_of_a_gpu() {
    if executor(Options::default()).is_none() {
        return;
    }
    let there = halved("gpu".parse().expect("a device")).expect("executes");
    assert_eq!(there, halved(Device::Cpu).expect("executes"));
    assert_eq!(there.iter().map(|one| one.0).collect::<Vec<_>>(), [10, 0, 2]);
}
