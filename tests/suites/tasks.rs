//! Graphs that grow while they execute, and tasks that await their values. The fuzz target `tasks` runs random tasks.

use autobatch::prelude::*;
use autobatch::random::Random;
use autobatch_nn::{Linear, losses};
use autobatch_testing::growing;
use std::future::pending;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

#[test]
fn a_growing_graph_executes_every_step_once_with_the_bits_of_a_single_run() {
    let (module, model) = growing::model();
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let g = session.graph();
    let mut random = Random::new(7);
    let (mut known, mut seen, mut steps) = (growing::Known::default(), Vec::new(), 0);
    let mut growing = session.growing(&g);
    for round in 0..40 {
        for _ in 0..6 {
            model.act(&g, &mut known, &mut |end| random.below(end as u64) as usize);
        }
        let wanted = [known[known.len() - 1], known[random.below(known.len() as u64) as usize]];
        let run = growing.run(wanted).unwrap();
        seen.extend(wanted.map(|value| (value, run[value].words())));
        assert!(growing.steps() >= steps, "round {round}");
        steps = growing.steps();
    }
    // Computed values need no further step.
    let earlier: Vec<Value<'_>> = seen.iter().map(|(value, _)| *value).collect();
    let again = growing.run(&earlier).unwrap();
    assert!(seen.iter().all(|(value, row)| again[*value].words() == *row));
    assert_eq!(growing.steps(), steps);
    let run = session.run(&g, &earlier).unwrap();
    assert!(seen.iter().all(|(value, row)| run[*value].words() == *row));
}

#[test]
fn values_shared_by_tasks_are_computed_once() {
    let (module, model) = growing::model();
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let g = session.graph();
    let [shared, _] = g.call(model.leaf, 3);
    let task = async |rounds: usize| {
        let mut h = shared;
        for _ in 0..rounds {
            h.get().await?;
            [h, _] = g.call(model.node, [h, shared, h, shared]);
        }
        Ok(h.get().await?)
    };
    let found = session.tasks(&g, [3, 1, 2, 3].map(task)).unwrap();
    assert_eq!(found[0], found[3]);
    assert_ne!(found[0], found[1]);
    let plan = session.last_plan().unwrap();
    // The expected steps: the leaf, its index, and the nodes of three rounds, each in one batch.
    let rows: Vec<u32> = plan.steps.iter().map(|step| step.rows).filter(|&rows| rows > 0).collect();
    assert_eq!(rows.iter().filter(|&&rows| rows == 4).count(), 1, "{rows:?}");
    assert_eq!(rows.iter().sum::<u32>() - rows[..rows.len() - 3].iter().sum::<u32>(), 4 + 3 + 2, "{rows:?}");
}

/// A waker that queues a future of a [`Join`].
struct Turn {
    number: usize,
    next: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.next.lock().expect("no thread panics").push(self.number);
    }
}

/// Runs futures concurrently and polls only woken ones, as executors and `join_all` do.
struct Join<F: Future> {
    open: Vec<Option<Pin<Box<F>>>>,
    done: Vec<Option<F::Output>>,
    next: Arc<Mutex<Vec<usize>>>,
}

impl<F: Future> Join<F> {
    fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let open: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
        let next = Arc::new(Mutex::new((0..open.len()).collect()));
        Self { done: open.iter().map(|_| None).collect(), open, next }
    }
}

impl<F: Future<Output: Unpin>> Future for Join<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let turns = std::mem::take(&mut *self.next.lock().expect("no thread panics"));
        for number in turns {
            let waker = Waker::from(Arc::new(Turn { number, next: Arc::clone(&self.next) }));
            let Some(future) = &mut self.open[number] else { continue };
            if let Poll::Ready(made) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                (self.open[number], self.done[number]) = (None, Some(made));
            }
        }
        if self.open.iter().any(Option::is_some) {
            return Poll::Pending;
        }
        Poll::Ready(self.done.iter_mut().filter_map(Option::take).collect())
    }
}

#[test]
fn a_computed_value_wakes_its_waiters() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let g = session.graph();
    let both = g.input(&[3.0]);
    let count_down = async |from: u32| {
        let (mut x, mut rounds) = (g.input(&[from as f32]), 0.0);
        while x.get().await?[0] > 0.0 {
            (x, rounds) = (x - 1.0, rounds + both.get().await?[0]);
        }
        Ok(rounds)
    };
    let task = async |counts: u32| Join::new((0..counts).map(count_down)).await.into_iter().collect();
    let found: Vec<Vec<f32>> = session.tasks(&g, [4, 0, 2].map(task)).unwrap();
    assert_eq!(found, [vec![0.0, 3.0, 6.0, 9.0], vec![], vec![0.0, 3.0]]);
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("the run must fail").to_string()
}

#[test]
fn the_error_for_an_invalid_await_names_the_problem() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let mut session = Session::new(&module, Device::Cpu).unwrap();

    let g = session.graph();
    let found = error(session.tasks(&g, [async { Ok(g.input(&[1.0, 2.0]).index().await?) }]));
    assert!(found.contains("expected a single u32 or bool"), "{found}");
    assert!(found.contains("suites/tasks.rs") && found.contains("argmax().index()"), "{found}");

    let g = session.graph();
    let list = g.list([g.input(&[1.0])]);
    let found = error(session.tasks(&g, [async { Ok(list.get().await?) }]));
    assert!(found.contains("a list has no elements of its own"), "{found}");

    let g = session.graph();
    let wrong = async {
        let sum = g.input(&[1.0]) + g.input(&[1.0, 2.0, 3.0]).matmul(g.input(&[1.0]));
        Ok(sum.get().await?)
    };
    let found = error(session.tasks(&g, [wrong]));
    assert!(found.starts_with("matmul"), "{found}");

    let g = session.graph();
    let value = g.input(&[1.0]);
    let tasks = (0..3).map(async |number| {
        value.get().await?;
        if number == 1 { pending().await } else { Ok(number) }
    });
    let found = error(session.tasks(&g, tasks));
    assert!(found.contains("task 1 awaits something that is no value"), "{found}");

    let g = session.graph();
    let mut inner = Session::new(&module, Device::Cpu).unwrap();
    let (g, inner) = (&g, &mut inner);
    let nested = async { inner.tasks(g, [async { Ok(()) }]) };
    let found = error(session.tasks(g, [nested]));
    assert!(found.contains("another call is running tasks"), "{found}");
    // The tasks above are gone, so the session accepts others.
    let value = g.input(&[4.0]);
    assert_eq!(session.tasks(g, [async { Ok(value.get().await?) }]).unwrap(), [[4.0]]);
}

#[test]
fn awaiting_a_value_outside_a_task_is_an_error() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let (g, other) = (Graph::new(&module), Graph::new(&module));
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let found = error(session.tasks(&g, [async { Ok(other.input(&[1.0]).get().await?) }]));
    assert!(found.contains("no executor runs this graph"), "{found}");
    assert!(found.contains("Session::tasks"), "{found}");
}

#[test]
fn the_error_of_one_task_ends_all_tasks() {
    let module = ModuleBuilder::new("m").build().unwrap();
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let g = session.graph();
    let value = g.input(&[1.0]);
    let tasks = (0..3).map(async |number| {
        value.get().await?;
        if number == 2 { Err(Error::OtherModule) } else { Ok(()) }
    });
    assert!(matches!(session.tasks(&g, tasks), Err(Error::OtherModule)));
    let none: Vec<u8> = session.tasks(&g, Vec::<std::future::Ready<Result<u8>>>::new()).unwrap();
    assert!(none.is_empty());
}

#[test]
fn a_graph_keeps_growing_after_a_failed_execution() {
    let (module, model) = growing::model();
    let options = SessionOptions { limits: Limits::of_memory(60_000), ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&module, 3));
    let mut session = Session::with_options(&module, weights, options).unwrap();
    let g = session.graph();
    let mut growing = session.growing(&g);
    let first = model.words.lookup(&g, 3);
    let row = growing.value(first).unwrap();

    let found = error(growing.value(model.words.lookup(&g, 99)));
    assert!(found.contains("index 99") && found.contains("tasks.rs:"), "{found}");
    assert_eq!(growing.value(first).unwrap(), row);
    let sum = growing.value(first + first).unwrap();
    assert_eq!(sum[0], 2.0 * row[0]);

    let found = error(growing.value((g.fill([20_000], 1.0) * first.sum()).sum()));
    assert!(found.contains("the memory limit is 60000"), "{found}");
    let twice = growing.tasks([async { Ok((first * 2.0).get().await?) }]).unwrap();
    assert_eq!(twice, [sum]);
}

/// The environment variable that marks the child process of the next test.
const CHILD: &str = "AUTOBATCH_TEST_CHILD_DUMPS";

#[test]
fn the_child_recovers_from_a_failed_dump() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let folder = PathBuf::from(std::env::var_os("AUTOBATCH_DUMP").unwrap());
    let module = ModuleBuilder::new("m").build().unwrap();
    let mut session = Session::new(&module, Device::Cpu).unwrap();
    let g = session.graph();
    let mut growing = session.growing(&g);
    let x = g.input(&[1.0, 2.0]);
    assert_eq!(growing.value(x).unwrap(), [1.0, 2.0]);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    let found = growing.value(x + x);
    assert!(matches!(found, Err(Error::Io { .. })), "{found:?}");
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(growing.value(x).unwrap(), [1.0, 2.0]);
    assert_eq!(growing.value(x + x).unwrap(), [2.0, 4.0]);
}

#[test]
fn a_graph_keeps_growing_after_a_failed_dump() {
    let folder = std::env::temp_dir().join(format!("autobatch-tasks-{}", std::process::id()));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["the_child_recovers_from_a_failed_dump", "--exact"])
        .envs([(CHILD, "1".as_ref()), ("AUTOBATCH_DUMP", folder.as_os_str())])
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

/// A model whose instances set the number of layers. Dropout separates the layers.
struct Deep {
    layer: Linear,
    out: Linear,
}

impl Deep {
    fn trainer() -> (Self, Trainer) {
        let mut m = ModuleBuilder::new("deep");
        let deep = Deep { layer: Linear::new(&mut m, "layer", 6, 6), out: Linear::new(&mut m, "out", 6, 3) };
        let module = m.build().expect("the model is well typed");
        let trainer = Trainer::new(module, Adam::new(0.02)).expect("there is something to train");
        (deep, trainer)
    }

    fn begin<'g>(&self, g: &'g Graph, word: u32) -> Value<'g> {
        g.one_hot(word % 6, 6)
    }

    fn next<'g>(&self, h: Value<'g>) -> Value<'g> {
        self.layer.on(h).tanh().dropout(0.3)
    }

    fn loss<'g>(&self, g: &'g Graph, h: Value<'g>, word: u32) -> Value<'g> {
        losses::sequence_cross_entropy(g, [self.out.on(h)], [word % 3])
    }
}

#[test]
fn a_step_over_tasks_has_the_losses_and_the_noise_of_a_plain_step() {
    let (deep, mut plain) = Deep::trainer();
    let (deeper, mut waiting) = Deep::trainer();
    let items: Vec<u32> = (0..9).collect();
    for step in 0..4 {
        let made = plain
            .step(&items, |g, &word| {
                let h = (0..word).fold(deep.begin(g, word), |h, _| deep.next(h));
                deep.loss(g, h, word)
            })
            .unwrap();
        let seen = std::cell::RefCell::new(vec![Vec::new(); items.len()]);
        let tasks = waiting
            .step_tasks(&items, async |g, &word| {
                let mut h = deeper.begin(g, word);
                for _ in 0..word {
                    h = deeper.next(h);
                    let row = h.get().await?;
                    seen.borrow_mut()[word as usize].push(row);
                }
                let loss = deeper.loss(g, h, word);
                g.output(&format!("h{word}"), h);
                Ok(loss)
            })
            .unwrap();
        let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
        if step == 0 {
            assert_eq!(bits(&made.losses), bits(&tasks.losses));
        }
        assert!(made.losses.iter().zip(&tasks.losses).all(|(a, b)| (a - b).abs() < 1e-4), "step {step}");
        // The step trains on the last row that a task saw, dropout included.
        for (word, rows) in seen.borrow().iter().enumerate().skip(1) {
            let trained = tasks.output(&format!("h{word}")).unwrap();
            assert_eq!(bits(rows.last().unwrap()), bits(trained), "step {step}, word {word}");
        }
        assert!(seen.borrow()[8].iter().any(|row| row.contains(&0.0)), "dropout is on");
    }
}

#[test]
fn a_step_over_no_tasks_or_with_an_error_changes_nothing() {
    let (deep, mut trainer) = Deep::trainer();
    let before = trainer.weights().clone();
    let none = trainer.step_tasks(Vec::<u32>::new(), async |g, word| Ok(deep.begin(g, word)));
    assert!(error(none).contains("no items"), "an empty minibatch");
    let vector = trainer.step_tasks([1], async |g, word| Ok(deep.begin(g, word)));
    let found = error(vector);
    assert!(found.contains("f32[6]"), "{found}");
    assert_eq!(*trainer.weights(), before);
}

#[test]
fn the_error_for_an_index_out_of_range_in_a_task_names_its_item_and_line() {
    let mut m = ModuleBuilder::new("words");
    let words = m.table("words", [4, 2], Init::Uniform(1.0));
    let mut trainer = Trainer::new(m.build().unwrap(), Adam::new(0.02)).unwrap();
    let step = trainer.step_tasks([1, 9], async |g, word| {
        let row = words.lookup(g, word);
        row.get().await?;
        Ok(row.mse(g.zeros([2])))
    });
    let found = error(step);
    assert!(found.starts_with("item 1 of the minibatch: index 9 bound at "), "{found}");
    assert!(found.contains("suites/tasks.rs") && found.contains("below 4"), "{found}");
}
