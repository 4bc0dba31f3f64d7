//! Processes that are killed, stopped, late or slow.

use crate::{LIMIT, autobatch, ended, file, is_available, is_long, mpirun, words};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time between the end of all processes and that of the launcher. That of Open MPI 4.1.4 sometimes waits forever, in
/// `PMIx_server_finalize`.
const LAUNCHER: Duration = Duration::from_secs(10);

/// The options of a run that fails: the optimiser and the division of its states.
const MODES: [&str; 3] = ["--optimizer sgd", "--optimizer adam", "--optimizer adam --divide-states"];

/// Starts a run on three processes that resumes from its own checkpoint, if there is one, and writes it after every epoch. The
/// timeouts are those of a silent process and of the start.
fn running(save: &Path, mode: &str, extent: &str, timeouts: [&str; 2]) -> Child {
    let run = words(&format!("treelstm --hidden 12 --batch 4 {extent} {mode}"));
    let mut command = mpirun();
    command.envs(["AUTOBATCH_RANK_TIMEOUT", "AUTOBATCH_START_TIMEOUT"].into_iter().zip(timeouts));
    command.args(["-n", "3", autobatch(), "train"]).args(run).arg("--save").arg(save);
    if save.exists() {
        command.arg("--resume").arg(save);
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a long run and waits until it has written its checkpoint.
fn long_run(save: &Path, mode: &str, timeout: &str) -> Child {
    let _ = std::fs::remove_file(save);
    let mut child = running(save, mode, "--count 16 --epochs 100000", [timeout, "60"]);
    let start = Instant::now();
    while !save.exists() {
        if child.try_wait().unwrap().is_some() {
            let said = child.wait_with_output().unwrap();
            panic!("the run ended before its first checkpoint: {}", String::from_utf8_lossy(&said.stderr));
        }
        assert!(start.elapsed() < Duration::from_secs(120), "the run writes no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// The processes that a launcher started and that have not ended, by their numbers in `/proc`. A launcher that waits for itself
/// does not collect those that have.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let has_ended = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The state follows the name, which is in parentheses.
        stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']) || rest.is_empty())
    };
    text.split_whitespace().filter_map(|id| id.parse().ok()).filter(|id| !has_ended(id)).collect()
}

fn signal(name: &str, id: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
    assert!(status.success(), "no signal reaches process {id}");
}

/// Waits until a launcher has started all processes and returns their numbers; `None` if it ended before.
fn ranks(child: &mut Child) -> Option<Vec<u32>> {
    loop {
        let ranks = children(child.id());
        if ranks.len() == 3 {
            return Some(ranks);
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_process_ends_all_and_leaves_a_whole_checkpoint() {
    if !is_available() || !Path::new("/proc/self/task").exists() {
        return;
    }
    let path = file("killed.safetensors");
    for mode in MODES {
        for round in 0..if is_long() { 100 } else { 1 } {
            let mut child = long_run(&path, mode, "20");
            std::thread::sleep(Duration::from_millis(round * 37 % 400));
            let ranks = ranks(&mut child).expect("the run is long");
            signal("KILL", ranks[round as usize % 3]);
            ended(child, "a killed process");
            let mut eval = Command::new(autobatch());
            eval.args(["eval", "treelstm", "--count", "16", "--weights"]).arg(&path);
            let output = eval.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{mode}, round {round}: {said}");
        }
    }
}

#[test]
fn a_run_whose_processes_are_stopped_ends_with_the_bits_of_an_undisturbed_one() {
    if !is_available() || !Path::new("/proc/self/task").exists() {
        return;
    }
    for (number, mode) in MODES.into_iter().enumerate() {
        let (whole, path) = (
            file(&format!("undisturbed-{number}.safetensors")),
            file(&format!("stopped-{number}.safetensors")),
        );
        // A long run is not complete before it was stopped a hundred times.
        let extent = if is_long() { "--count 800 --epochs 600" } else { "--count 16 --epochs 60" };
        let mut undisturbed = running(&whole, mode, extent, ["20", "60"]);
        assert!(undisturbed.wait().unwrap().success());
        // A process is stopped at the start, in a step, while rank 0 writes, or at the end.
        let mut stops = 0;
        for round in 0_u64.. {
            let is_stopped = round < if is_long() { 100 } else { 2 };
            let mut child = running(&path, mode, extent, ["1", if is_stopped { "3" } else { "60" }]);
            let Some(ranks) = ranks(&mut child) else { break };
            let mut stopped = None;
            if is_stopped {
                let longest = if is_long() { 1500 } else { 500 };
                std::thread::sleep(Duration::from_millis(round * 277 % longest));
                let rank = ranks[round as usize % 3];
                let sent = Command::new("kill").args(["-STOP", &rank.to_string()]).status();
                stopped = sent.unwrap().success().then_some(rank);
                stops += usize::from(stopped.is_some());
            }
            let (start, mut alive) = (Instant::now(), Instant::now());
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status;
                }
                if !children(child.id()).is_empty() {
                    alive = Instant::now();
                } else if alive.elapsed() > LAUNCHER {
                    // All processes have ended, and the launcher waits for itself.
                    let _ = child.kill();
                }
                if let Some(last) = stopped.filter(|&rank| children(child.id()) == [rank]) {
                    // The others have ended, so it was stopped behind the end of the run, where only the launcher waits for it.
                    stopped = None;
                    let _ = Command::new("kill").args(["-CONT", &last.to_string()]).status();
                }
                assert!(start.elapsed() < 3 * LIMIT, "{mode}, round {round}: the processes hang");
                std::thread::sleep(Duration::from_millis(10));
            };
            if status.success() {
                break;
            }
        }
        assert!(stops > 0, "{mode}: no process was stopped");
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole).unwrap(), "{mode}: other bits");
    }
}

#[test]
fn a_stopped_process_ends_all_with_one_message() {
    if !is_available() || !Path::new("/proc/self/task").exists() {
        return;
    }
    let mut child = long_run(&file("stopped.safetensors"), MODES[1], "2");
    let ranks = ranks(&mut child).expect("the run is long");
    signal("STOP", ranks[1]);
    let said = ended(child, "a stopped process");
    let message = "rank 1 gave no sign of life to rank 0 for 2 s; all ranks end now";
    assert_eq!(said.matches(message).count(), 1, "{said}");
    assert_eq!(said.matches("sign of life").count(), 1, "{said}");
}

#[test]
fn a_process_that_does_not_connect_ends_all_and_one_that_connects_late_does_not() {
    if !is_available() {
        return;
    }
    let start = |sleep: &str, timeout: &str| {
        let run = words("names --count 8 --hidden 4 --epochs 1").join(" ");
        let late = format!("sleep {sleep}; exec {} train {run}", autobatch());
        let mut command = mpirun();
        command.env("AUTOBATCH_START_TIMEOUT", timeout).env("AUTOBATCH_RANK_TIMEOUT", "1");
        command.args(["-n", "1", autobatch(), "train"]).args(words("names --count 8 --hidden 4 --epochs 1"));
        command.args([":", "-n", "1", "sh", "-c", &late]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let said = ended(start("300", "2"), "a process that does not connect");
    assert!(said.contains("the ranks were not connected after 2 s"), "{said}");
    let late = start("3", "60").wait_with_output().unwrap();
    assert!(late.status.success(), "{}", String::from_utf8_lossy(&late.stderr));
}

#[test]
fn a_slow_process_is_waited_for() {
    if !is_available() || !is_long() {
        return;
    }
    // Rank 1 has two of three shards, so rank 0 waits for a third of each step: several seconds, with a limit of one.
    let run = words("treelstm --hidden 400 --count 192 --batch 192 --shards 3 --epochs 1");
    let mut command = mpirun();
    command.env("AUTOBATCH_RANK_TIMEOUT", "1").args(["-n", "2", autobatch(), "train"]).args(run);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
