//! Several players on one adapter: they share it and nothing else.

use crate::batches::{bits, cells};
use crate::common::{bound, inferring, player};
use autobatch_ir::Weights;
use autobatch_runtime_wgpu::{GpuError, Options, Player};
use std::thread;

#[test]
fn players_of_several_threads_do_not_meet_and_go_in_any_order() {
    let Some(mut alone) = player(Options::default()) else { return };
    let graphs = [3, 40, 17].map(|instances| cells(instances, 8));
    let expected: Vec<_> = graphs.iter().map(|(graph, values)| bits(&mut alone, graph, values)).collect();
    let check = |player: &mut Player, first: usize| {
        for number in (first..first + 3).map(|number| number % 3) {
            let (graph, values) = &graphs[number];
            assert_eq!(bits(player, graph, values), expected[number], "{number}");
        }
    };
    let mut players: Vec<Player> = thread::scope(|scope| {
        let check = &check;
        let spawned: Vec<_> = (0..3)
            .map(|number| {
                scope.spawn(move || {
                    let mut player = Player::new(Options::default()).expect("opens");
                    check(&mut player, number);
                    check(&mut player, number + 1);
                    player
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().expect("plays")).collect()
    });
    // One that loses its device takes no other along.
    players[1].gpu().expect("open").destroy();
    check(&mut players[0], 1);
    let (graph, values) = &graphs[0];
    let (plan, weights) = (inferring(graph, values), Weights::init(&graph.module, 3));
    let error = players[1].play(&plan, &weights, bound(graph, false)).expect_err("the device is gone");
    assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
    check(&mut players[1], 0);
    // The first goes first, and the last on another thread while one plays.
    drop(players.remove(0));
    let last = players.pop().expect("two are left");
    thread::scope(|scope| {
        scope.spawn(move || drop(last));
        check(&mut players[0], 2);
    });
    drop(alone);
    check(&mut players[0], 0);
}
