//! The command on several processes of `mpirun`: equal bits, resumption, and failures of a process.
//!
//! The tests need the feature `mpi` and the program `mpirun`. Without them they say that they were skipped;
//! `AUTOBATCH_REQUIRE_MPI=1` makes that a failure. `AUTOBATCH_TEST=long` trains longer on more numbers of processes.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod failures;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time between the failure of a process and the end of all.
const LIMIT: Duration = Duration::from_secs(30);

/// Returns whether the tests can run, and says so if not.
#[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
fn is_available() -> bool {
    let feature = cfg!(feature = "mpi");
    let available = feature && Command::new("mpirun").arg("--version").output().is_ok();
    if !available {
        let reason = if feature { "mpirun is not installed" } else { "the feature mpi is off" };
        assert!(std::env::var_os("AUTOBATCH_REQUIRE_MPI").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
    }
    available
}

fn is_long() -> bool {
    std::env::var_os("AUTOBATCH_TEST").is_some_and(|tier| tier == "long")
}

/// The path of a temporary file that only this test uses.
fn file(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("autobatch-mpirun-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn autobatch() -> &'static str {
    env!("CARGO_BIN_EXE_autobatch")
}

/// `mpirun` for tests: as root, with more processes than cores.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")])
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .stdin(Stdio::null());
    command
}

/// The words of a training run.
fn words(run: &str) -> Vec<String> {
    run.split(' ').map(str::to_owned).chain(["--threads".to_owned(), "1".to_owned()]).collect()
}

/// Trains with a number of processes, or without a launcher if it is `None`.
fn train(ranks: Option<usize>, run: &str, save: &Path) -> Output {
    let mut command = match ranks {
        None => Command::new(autobatch()),
        Some(ranks) => {
            let mut command = mpirun();
            command.args(["-n", &ranks.to_string(), autobatch()]);
            command
        }
    };
    let output = command.arg("train").args(words(run)).arg("--save").arg(save).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{run} on {ranks:?} processes: {said}");
    output
}

#[test]
fn training_has_equal_bits_on_every_number_of_processes() {
    if !is_available() {
        return;
    }
    // 50 steps and 4 steps.
    let (count, numbers): (usize, &[usize]) = if is_long() { (200, &[1, 2, 3, 4]) } else { (16, &[2, 3]) };
    let models = ["treelstm --hidden 12", "tagger --hidden 10 --embedding 8", "names --hidden 12"];
    let optimisers: [(&str, &str); 3] = [("sgd", ""), ("adam", ""), ("adam", " --divide-states")];
    for (number, model) in models.into_iter().enumerate() {
        for (number, (optimiser, divided)) in
            optimisers.iter().enumerate().map(|(at, of)| (3 * number + at, of))
        {
            let run =
                format!("{model} --count {count} --batch 4 --epochs 1 --shards 8 --optimizer {optimiser}");
            let alone = file(&format!("{number}-alone.safetensors"));
            train(None, &run, &alone);
            let expected = std::fs::read(&alone).unwrap();
            for &ranks in numbers {
                let path = file(&format!("{number}-{ranks}.safetensors"));
                let output = train(Some(ranks), &format!("{run}{divided}"), &path);
                let text = String::from_utf8_lossy(&output.stdout);
                assert_eq!(text.matches("epoch   1").count(), 1, "rank 0 alone prints: {text}");
                assert!(std::fs::read(&path).unwrap() == expected, "{run}{divided} on {ranks} processes");
            }
        }
    }
}

#[test]
fn a_run_resumes_on_another_number_of_processes() {
    if !is_available() {
        return;
    }
    let run = "treelstm --hidden 12 --count 16 --batch 4";
    let (whole, first, rest) =
        (file("whole.safetensors"), file("first.safetensors"), file("rest.safetensors"));
    train(None, &format!("{run} --shards 8 --epochs 2"), &whole);
    train(Some(4), &format!("{run} --epochs 1 --divide-states"), &first);
    let resume = format!("{run} --epochs 2 --resume {}", first.display());
    train(Some(2), &resume, &rest);
    assert!(std::fs::read(&rest).unwrap() == std::fs::read(&whole).unwrap());
}

/// Waits for the end of all processes and returns their messages. Fails after the limit.
fn ended(mut child: Child, why: &str) -> String {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{why}: the processes run for {LIMIT:?} after the failure");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success(), "{why}: mpirun succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn processes_with_other_options_end_with_one_message() {
    if !is_available() {
        return;
    }
    let run = |lr: &str| words(&format!("treelstm --hidden 12 --count 16 --epochs 1 --lr {lr}"));
    let mut command = mpirun();
    command.args(["-n", "1", autobatch(), "train"]).args(run("0.1"));
    command.args([":", "-n", "1", autobatch(), "train"]).args(run("0.2"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = ended(child, "other options");
    assert_eq!(said.matches("rank 1 disagrees with rank 0 on the optimiser").count(), 1, "{said}");
}

#[test]
fn mapped_shards_are_whole_after_kills_and_equal_on_every_number_of_processes() {
    let weights = file("map.safetensors");
    train(None, "treelstm --hidden 12 --count 16 --batch 4 --epochs 1", &weights);
    let folder = file("trees");
    std::fs::create_dir_all(&folder).unwrap();
    let inputs: Vec<PathBuf> = (0..24)
        .map(|number| {
            let lines: String =
                (0..60).map(|line| format!("7\t( ( ( [MAX {} ) {} ) ] )\n", line % 7, number % 9)).collect();
            let path = folder.join(format!("{number:02}.tsv"));
            std::fs::write(&path, lines).unwrap();
            path
        })
        .collect();
    let map = |command: &mut Command, output: &Path| {
        command.args(["map", "treelstm", "--threads", "1", "--shard", "25", "--weights"]).arg(&weights);
        command.arg("--data").args(&inputs).arg("-o").arg(output);
    };
    let files = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let named = |path: PathBuf| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap());
        paths.into_iter().map(named).collect()
    };
    let whole = file("whole");
    let mut command = Command::new(autobatch());
    map(&mut command, &whole);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = files(&whole);
    assert_eq!(expected.len(), 3 * 24 + 1, "three shards for each input, and the manifest");
    let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
    let shards = expected.iter().filter(|(name, _)| name.extension().is_some_and(|end| end == "jsonl"));
    assert_eq!(shards.map(|(_, bytes)| lines(bytes)).collect::<Vec<_>>(), [25, 25, 10].repeat(24));
    // Killed at several moments, then complete.
    let killed = file("killed");
    for round in 0..10 {
        let mut command = Command::new(autobatch());
        map(&mut command, &killed);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(4 * round));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut command = if is_available() { mpirun() } else { Command::new(autobatch()) };
    if is_available() {
        command.args(["-n", "3", autobatch()]);
    }
    map(&mut command, &killed);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let is_whole = |(name, _): &(PathBuf, Vec<u8>)| !name.to_string_lossy().starts_with('.');
    assert!(files(&killed).into_iter().filter(is_whole).collect::<Vec<_>>() == expected);
    // Another run does not mix its shards with these.
    let mut command = Command::new(autobatch());
    command.args(["map", "treelstm", "--weights"]).arg(&weights).arg("--data").arg(&inputs[0]);
    let output = command.arg("-o").arg(&whole).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2)
            && said.contains("with other parameters, inputs, sizes or forms of shards"),
        "{said}"
    );
}

#[test]
fn all_processes_stand_on_one_time_line_and_beside_a_prediction() {
    if !is_available() {
        return;
    }
    let trace = file("trace.json");
    let run = "treelstm --count 24 --hidden 8 --epochs 1 --batch 8 --threads 1 --trace";
    let status = mpirun().args(["-n", "2", autobatch(), "train"]).args(run.split(' ')).arg(&trace).output();
    assert!(status.unwrap().status.success());
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for rank in 0..2 {
        let own = |name: &str| {
            let of = |event: &&serde_json::Value| {
                event["pid"] == rank && event["name"].as_str().is_some_and(|it| it.starts_with(name))
            };
            events.iter().filter(of).count()
        };
        assert_eq!((own("step "), own("exchange ")), (3, 3), "rank {rank}");
        assert!(own("gather ") >= 6, "a report and a message of tables for each step");
    }
    let run = "scale treelstm --count 24 --hidden 8 --batch 16 --rounds 2 --json";
    let printed = mpirun().args(["-n", "2", autobatch()]).args(run.split(' ')).output().unwrap();
    let printed: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(printed["measured_2_ranks_ms"].as_f64().is_some_and(|time| time > 0.0), "{printed}");
    assert_eq!(printed["network"]["origin"], "measured between two ranks");
    let three = mpirun().args(["-n", "3", autobatch(), "scale", "treelstm"]).output().unwrap();
    let said = String::from_utf8_lossy(&three.stderr);
    assert!(said.contains("scale measures on one rank or two, found 3"), "{said}");
}

#[test]
fn a_process_without_a_launcher_trains_alone_whether_it_asks_mpi_or_not() {
    if !is_available() {
        return;
    }
    let trained = |mpi: &str| {
        let save = file(&format!("alone-{mpi}.safetensors"));
        let output = Command::new(autobatch())
            .args(words("train names --count 8 --hidden 4 --epochs 1"))
            .arg("--save")
            .arg(&save)
            .env("AUTOBATCH_MPI", mpi)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(save).unwrap()
    };
    assert!(trained("on") == trained("off"), "the minibatches have other shards");
}

#[test]
fn a_command_without_mpi_refuses_several_processes() {
    if cfg!(feature = "mpi") {
        return;
    }
    let of_slurm =
        [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4"), ("PMIX_RANK", "0")];
    for launcher in [&[("OMPI_COMM_WORLD_SIZE", "4")][..], &[("PMI_SIZE", "4"), ("PMI_RANK", "2")], &of_slurm]
    {
        let output = Command::new(autobatch())
            .args(["train", "treelstm"])
            .envs(launcher.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{launcher:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        for words in ["the launcher started 4 processes", "built without MPI: build it with --features mpi"] {
            assert!(said.contains(words), "{said}");
        }
    }
}
