// Compares the inspector's page with the command line: plans, reasons, errors, and the page itself in a browser.
//
//     node inspector/tests/page.mjs [--pairs 40]
//
// `inspector.wasm` is built from the crates, so it must be built again when they change what the page says or reads:
//
//     rustup target add wasm32-unknown-unknown
//     RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$HOME/.cargo=cargo" \
//     cargo build --release --target wasm32-unknown-unknown --manifest-path inspector/wasm/Cargo.toml
//     cp inspector/wasm/target/wasm32-unknown-unknown/release/autobatch_inspector_wasm.wasm inspector/page/inspector.wasm
//
// Needs `cargo build -p autobatch-cli`. The browser part needs playwright-core (npm) and a Chromium, whose path
// AUTOBATCH_CHROMIUM names; without them it says that it was skipped, or fails if AUTOBATCH_REQUIRE_BROWSER is 1.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const program = process.env.AUTOBATCH || join(root, "target/debug/autobatch");
const pairs = Number(process.argv[process.argv.indexOf("--pairs") + 1]) || 40;
const folder = mkdtempSync(join(tmpdir(), "inspector-"));
const environment = { ...process.env };
delete environment.AUTOBATCH_COSTS;
delete environment.AUTOBATCH_POLICY;
const run = (...words) => execFileSync(program, words, { encoding: "utf8", env: environment, maxBuffer: 1 << 28 });
const fails = (...words) => spawnSync(program, words, { encoding: "utf8", env: environment }).stderr;

/** The engine of the page, without the page. */
async function newEngine() {
  const wasm = readFileSync(join(root, "inspector/page/inspector.wasm"));
  const { instance } = await WebAssembly.instantiate(wasm, {});
  const engine = instance.exports;
  const call = (name, bytes, ...more) => {
    const start = engine.reserve(bytes.length);
    new Uint8Array(engine.memory.buffer, start, bytes.length).set(bytes);
    const length = engine[name](...more);
    return JSON.parse(Buffer.from(engine.memory.buffer, engine.address(), length).toString("utf8"));
  };
  return {
    open: (name, bytes) => call("open", Buffer.concat([Buffer.from(name), bytes]), Buffer.byteLength(name)),
    ask: (question) => call("ask", Buffer.from(JSON.stringify(question))),
  };
}

/** Reproducible numbers below a bound. */
function random(seed) {
  let state = BigInt(seed);
  return (bound) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(bound));
  };
}

const MODELS = ["treelstm", "parser", "lattice", "tagger", "sentiment"];
const graphs = MODELS.map((model) => {
  const path = join(folder, `${model}.abg`);
  run("emit", model, "--instances", "6", "-o", path);
  return { model, path, name: `${model}.abg`, bytes: readFileSync(path) };
});
const POLICIES = ["auto", "none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8"];

async function plansAreEqual() {
  const engine = await newEngine();
  const corpus = join(root, "tests/files/graphs");
  const files = readdirSync(corpus).filter((name) => name.endsWith(".graph"));
  assert(files.length >= 3, "the corpus is there");
  const all = [...graphs, ...files.map((name) => ({ path: join(corpus, name), name, bytes: readFileSync(join(corpus, name)) }))];
  let compared = 0;
  for (const { path, name, bytes } of all) {
    assert.deepEqual(engine.open(name, bytes).ok, { opened: "graph" }, name);
    for (const policy of POLICIES) {
      for (const mode of ["infer", "train"]) {
        const answer = engine.ask({ ask: "plan", policy, mode });
        const out = join(folder, "native.plan");
        if (answer.error) {
          const refused = fails("plan", path, "--policy", policy, "--mode", mode, "-o", out);
          assert(refused.includes(answer.error), `${name} ${policy}: ${answer.error} / ${refused}`);
          continue;
        }
        run("plan", path, "--policy", policy, "--mode", mode, "-o", out);
        assert.equal(engine.ask({ ask: "plan-text" }).ok.text, readFileSync(out, "utf8"), `${name} ${policy} ${mode}`);
        compared += 1;
      }
    }
  }
  assert(compared > 100, `${compared} plans`);
  console.log(`${compared} plans are equal`);
}

async function reasonsAreEqual() {
  const engine = await newEngine();
  const draw = random(7);
  let compared = 0;
  for (const { path, name, bytes } of graphs) {
    engine.open(name, bytes);
    for (const policy of POLICIES) {
      engine.ask({ ask: "plan", policy, mode: "infer" });
      const { nodes } = engine.ask({ ask: "view" }).ok;
      const values = nodes.value.filter((value) => value >= 0);
      for (let pair = 0; pair < Math.ceil(pairs / POLICIES.length); pair += 1) {
        const [a, b] = [0, 1].map(() => `%${values[draw(values.length)]}`);
        const answer = engine.ask({ ask: "why", a, b });
        const expected = run("explain", path, "--policy", policy, "--why", a, b);
        assert.equal(answer.ok?.text, expected, `${name} ${policy} ${a} ${b}: ${answer.error}`);
        compared += 1;
      }
    }
  }
  console.log(`${compared} reasons are equal`);
}

async function errorsAreEqual() {
  const engine = await newEngine();
  const whole = readFileSync(join(root, "cli/tests/files/order.graph"));
  const hostile = {
    "cut.graph": whole.subarray(0, whole.length / 2),
    "cut.abg": graphs[0].bytes.subarray(0, 1000),
    "empty.graph": Buffer.alloc(0),
    "noise.bin": Buffer.from([...Array(999).keys()].map((n) => (n * 37) & 255)),
    "list.json": Buffer.from("[1, 2]"),
    "deep.json": Buffer.from("[".repeat(100000)),
  };
  for (const [name, bytes] of Object.entries(hostile)) {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    const found = engine.open(name, bytes);
    assert(found.error, name);
    // The command line names the path and may quote the line; the page knows the name alone.
    const expected = fails("show", path).replaceAll(path, name).replace(/^error: /, "");
    assert(expected.startsWith(found.error.split("\n")[0].replace(/^error: /, "")), `${name}: ${found.error} / ${expected}`);
  }
  assert(engine.ask({ ask: "view" }).error.includes("no graph is open"));
  console.log(`${Object.keys(hostile).length} errors are equal`);
}

async function browse() {
  const chromium = process.env.AUTOBATCH_CHROMIUM || "/usr/bin/chromium-headless-shell";
  const skip = (reason) => {
    assert(process.env.AUTOBATCH_REQUIRE_BROWSER !== "1", reason);
    console.log(`skipped: ${reason}, so no browser opened the page`);
  };
  let playwright;
  try {
    playwright = createRequire(join(process.cwd(), "x.js"))("playwright-core");
  } catch {
    return skip("playwright-core is not installed");
  }
  if (!existsSync(chromium)) return skip("there is no Chromium");
  const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1400, height: 850 } });
  const broken = [];
  page.on("pageerror", (error) => broken.push(error.message));
  page.on("request", (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || broken.push(request.url()));
  const ready = () => page.waitForFunction(() => document.documentElement.dataset.ready === "true");
  for (const { model, path } of graphs) {
    const html = join(folder, `${model}.html`);
    run("inspect", path, "-o", html);
    const { batches } = JSON.parse(run("plan", path, "--json"));
    await page.goto(`file://${html}`);
    await ready();
    assert((await page.textContent("#summary")).includes(` in ${batches} batches`), model);
    // Scrub.
    await page.fill("#wave", "0");
    assert((await page.textContent("#wave-text")).startsWith("wave 0, "));
    assert.notEqual(await page.locator("tr.later").count(), 0, `${model}: later steps are pale`);
    // Select by the address, and ask why.
    const steps = await page.locator("tr[data-step]").count();
    assert(steps >= batches, `${model}: ${steps} steps`);
    await page.goto("about:blank");
    await page.goto(`file://${html}#a=%250&b=%251&policy=depth`);
    await ready();
    const expected = run("explain", path, "--policy", "depth", "--why", "%0", "%1");
    assert.equal(await page.textContent("#answer"), expected, model);
    // Replan and compare.
    await page.selectOption("#policy", "none");
    await page.click("button[type=submit]");
    assert((await page.textContent("#summary")).includes("policy none"));
    await page.click("#compare");
    const rows = await page.locator("#compared tbody tr").allTextContents();
    const depth = JSON.parse(run("plan", path, "--policy", "depth", "--json")).batches;
    assert(rows.some((row) => row.startsWith(`depth${depth.toLocaleString("en")}`)), rows.join("\n"));
    // Find, choose a step with the keyboard, click a node.
    await page.fill("#find", "instance 0");
    assert.match(await page.textContent("#answer"), /^[\d,]+ nodes found$/);
    await page.focus("tr[data-step='0']");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("tr.chosen").count(), 1);
    await page.focus("#graph");
    await page.keyboard.press("ArrowLeft");
  }
  const html = join(folder, "empty.html");
  run("inspect", "--empty", "-o", html);
  await page.goto(`file://${html}`);
  await page.setInputFiles("#file", graphs[0].path);
  await page.waitForFunction(() => document.getElementById("summary").textContent.includes("batches"));
  // A plan of a file stays through a comparison, and an engine that stopped runs again with it.
  const stored = join(folder, "stored.plan");
  run("plan", graphs[0].path, "--policy", "none", "-o", stored);
  await page.setInputFiles("#file", [graphs[0].path, stored]);
  await page.waitForFunction(() => document.getElementById("summary").textContent.includes("plan of a file"));
  const shown = await page.textContent("#summary");
  const text = readFileSync(stored, "utf8");
  await page.click("#compare");
  assert.equal(await page.textContent("#summary"), shown);
  assert.equal(await page.evaluate(() => ask({ ask: "plan-text" }).text), text, "the engine has the plan of the picture");
  const stopped = await page.evaluate(() => {
    engine = { ...engine, ask: () => { throw new WebAssembly.RuntimeError("unreachable"); } };
    attempt(() => ask({ ask: "view" }));
    return document.getElementById("alert").textContent;
  });
  assert(stopped.includes("it runs again"), stopped);
  assert.equal(await page.evaluate(() => ask({ ask: "plan-text" }).text), text);
  const markup = join(folder, "markup.graph");
  writeFileSync(markup, 'autobatch graph 2\nmodule "<img src=x onerror=window.hit=1></script><script>window.hit=1</script>"\ngraph\n  %0 = input f32[1] (#[1.0])\n  %1 = tanh(%0)\noutput "</script>" %1\n');
  run("inspect", markup, "-o", html);
  await page.goto("about:blank");
  await page.goto(`file://${html}`);
  await ready();
  assert.equal(await page.evaluate(() => window.hit), undefined, "text of a file is no code");
  assert((await page.textContent("#title")).includes("<img src=x"));
  // A large graph: the time of a frame.
  const large = join(folder, "large.abg");
  run("emit", "treelstm", "--instances", "2500", "-o", large);
  run("inspect", large, "-o", html);
  await page.goto("about:blank");
  const started = Date.now();
  await page.goto(`file://${html}`);
  await ready();
  const opened = Date.now() - started;
  const [nodes, frame] = await page.evaluate(() => {
    draw();
    return [state.view.nodes.sig.length, state.frame];
  });
  console.log(`${nodes.toLocaleString("en")} nodes: open after ${opened} ms, a frame takes ${frame.toFixed(0)} ms`);
  assert.deepEqual(broken, [], "errors of the page, or requests");
  await browser.close();
  console.log(`${graphs.length + 2} pages opened in a browser`);
}

try {
  try {
    await plansAreEqual();
    await reasonsAreEqual();
    await errorsAreEqual();
  } catch (error) {
    console.error("inspector.wasm answers otherwise than the command line. If it is stale, build it:");
    console.error(readFileSync(fileURLToPath(import.meta.url), "utf8").match(/(\/\/ {5}(rustup|RUSTFLAGS|cargo|cp).*\n)+/)[0]);
    throw error;
  }
  await browse();
} finally {
  rmSync(folder, { recursive: true });
}
