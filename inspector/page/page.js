"use strict";
// The inspector's page. Rust answers every question (inspector/src/page); this script draws and selects.
// Text from files reaches the document through textContent alone.

const POLICIES = ["auto", "none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8", "beam:64"];
// Distinguishable for colour-blind readers; further kinds repeat the colours with another shape.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#6a51a3"];
// A larger graph is drawn only on request.
const MOST_DRAWN = 300000;
const MOST_EDGES = 6000;

const byId = (id) => document.getElementById(id);
const state = { view: null, places: null, chosen: [null, null], named: [null, null], wave: 0, step: null, found: null, zoom: null, policy: null, mode: "infer", files: [] };
let engine = null;
let compiled = null;

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** Calls a function of the engine with bytes in its buffer; throws its refusal. An engine that stopped is started again. */
function call(name, bytes, ...more) {
  try {
    return callOnce(name, bytes, ...more);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    engine = new WebAssembly.Instance(compiled, {}).exports;
    for (const [file, content] of state.files) callOnce("open", ...opening(file, content));
    if (state.policy) callOnce("ask", new TextEncoder().encode(JSON.stringify({ ask: "plan", policy: state.policy, mode: state.mode })));
    throw new Error(`the engine stopped at this question (${error.message}); it runs again with the plan that you see`);
  }
}

function callOnce(name, bytes, ...more) {
  const start = engine.reserve(bytes.length);
  new Uint8Array(engine.memory.buffer, start, bytes.length).set(bytes);
  const length = engine[name](...more);
  const answer = new Uint8Array(engine.memory.buffer, engine.address(), length);
  const found = JSON.parse(new TextDecoder().decode(answer));
  if (found.error !== undefined) {
    throw new Error(found.help ? `${found.error}\n= help: ${found.help}` : found.error);
  }
  return found.ok;
}

const ask = (question) => call("ask", new TextEncoder().encode(JSON.stringify(question)));

/** The bytes of a name and of a file, and the length of the name. */
function opening(name, bytes) {
  const head = new TextEncoder().encode(name);
  const all = new Uint8Array(head.length + bytes.length);
  all.set(head);
  all.set(bytes, head.length);
  return [all, head.length];
}

function openFile(name, bytes) {
  const answer = call("open", ...opening(name, bytes));
  // A graph closes its predecessor with its plan.
  state.files = answer.opened === "graph" ? [[name, bytes]] : [...state.files.slice(0, 1), [name, bytes]];
  return answer;
}

/** Makes the plan that the picture shows that of the engine again. */
function reopen() {
  if (state.policy) ask({ ask: "plan", policy: state.policy, mode: state.mode });
  else state.files.forEach(([name, bytes]) => call("open", ...opening(name, bytes)));
}

function report(error) {
  byId("alert").hidden = !error;
  byId("alert").textContent = error ? error.message : "";
}

function attempt(action) {
  try {
    report(null);
    action();
  } catch (error) {
    report(error);
  }
}

/** Plans by a policy and shows the result. */
function plan(policy) {
  const mode = byId("mode").value;
  ask({ ask: "plan", policy, mode });
  Object.assign(state, { policy, mode });
  show();
}

function show() {
  state.view = ask({ ask: "view" });
  const { module, summary, nodes, steps } = state.view;
  byId("title").textContent = module || "autobatch inspector";
  const by = state.policy ? `policy ${state.policy}` : "plan of a file";
  byId("summary").textContent =
    `${nodes.sig.length.toLocaleString("en")} nodes in ${summary.batches} batches, bound ${summary.bound}; ` +
    `${summary.gathered.toLocaleString("en")} of ${(summary.gathered + summary.direct).toLocaleString("en")} operand rows gathered, ` +
    `${summary.copied.toLocaleString("en")} rows copied, ${size(summary.bytes)} of slabs; ${by}`;
  const last = Math.max(summary.waves - 1, 0);
  state.wave = state.kept ? Math.min(state.wave, last) : last;
  byId("wave").max = last;
  state.step = null;
  arrange();
  listSteps(steps);
  setWave(state.wave);
  explain();
}

const size = (bytes) => (bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);

/** Places every node: a column by step or by depth, and a row in the band of its instance. */
function arrange() {
  const { nodes, steps } = state.view;
  const count = nodes.sig.length;
  const column = new Int32Array(count);
  if (byId("arrange").value === "depth") {
    for (let node = 0; node < count; node += 1) {
      for (const operand of nodes.operands[node]) column[node] = Math.max(column[node], column[operand] + 1);
    }
    // A node without operands stands next to its first reader.
    const first = new Int32Array(count).fill(-1);
    for (let node = 0; node < count; node += 1) {
      for (const operand of nodes.operands[node]) {
        if (first[operand] < 0 || column[node] < first[operand]) first[operand] = column[node];
      }
    }
    for (let node = 0; node < count; node += 1) {
      if (!nodes.operands[node].length && first[node] > 0) column[node] = first[node] - 1;
    }
  } else {
    const columns = [];
    let next = 1;
    steps.forEach((step, number) => {
      columns[number] = step.source ? 0 : next++;
    });
    for (let node = 0; node < count; node += 1) column[node] = nodes.step[node] < 0 ? -1 : columns[nodes.step[node]];
  }
  const heights = new Map();
  const used = new Map();
  const row = new Int32Array(count);
  for (let node = 0; node < count; node += 1) {
    if (column[node] < 0) continue;
    const key = nodes.instance[node] * 4194304 + column[node];
    row[node] = used.get(key) || 0;
    used.set(key, row[node] + 1);
    heights.set(nodes.instance[node], Math.max(heights.get(nodes.instance[node]) || 0, row[node] + 1));
  }
  const tops = new Map();
  let top = 0;
  for (const instance of [...heights.keys()].sort((a, b) => a - b)) {
    tops.set(instance, top);
    top += heights.get(instance) + 1;
  }
  const x = new Float32Array(count);
  const y = new Float32Array(count);
  let width = 1;
  for (let node = 0; node < count; node += 1) {
    x[node] = column[node];
    y[node] = column[node] < 0 ? -1 : tops.get(nodes.instance[node]) + row[node];
    width = Math.max(width, column[node] + 1);
  }
  state.places = { x, y, width, height: Math.max(top, 1), tops, heights };
  state.zoom = null;
  draw();
}

function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.max(width * ratio, 1);
  canvas.height = Math.max(height * ratio, 1);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function draw() {
  const { view, places } = state;
  if (!view || !places) return;
  const started = performance.now();
  const { pen, width, height } = fit(byId("graph"));
  const { nodes, steps } = view;
  const count = nodes.sig.length;
  if (count > MOST_DRAWN && !state.drawAll) {
    pen.fillStyle = ink("--ink");
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(`${count.toLocaleString("en")} nodes: press D to draw them all. Steps and answers are on the right.`, 20, 40);
    return;
  }
  if (!state.zoom) {
    const scale = [(width - 90) / places.width, (height - 20) / places.height];
    state.zoom = { x: 80, y: 10, sx: Math.min(scale[0], 60), sy: Math.min(scale[1], 24) };
  }
  const { zoom } = state;
  const at = (node) => [zoom.x + (places.x[node] + 0.5) * zoom.sx, zoom.y + (places.y[node] + 0.5) * zoom.sy];
  const dot = Math.max(1, Math.min(zoom.sx, zoom.sy) * 0.36);
  const seen = (node) => {
    if (places.y[node] < 0) return false;
    const [px, py] = at(node);
    return px > -20 && py > -20 && px < width + 20 && py < height + 20;
  };
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = ink("--soft");
  if (zoom.sy * 3 > 8) {
    for (const [instance, top] of places.tops) {
      const py = zoom.y + top * zoom.sy + 10;
      if (py > -10 && py < height + 10) pen.fillText(instance < 0 ? "common" : `instance ${instance}`, 4, py);
    }
  }
  const visible = [];
  for (let node = 0; node < count; node += 1) if (seen(node)) visible.push(node);
  if (visible.length <= MOST_EDGES) {
    pen.strokeStyle = ink("--line");
    // Many edges must not hide the nodes.
    pen.globalAlpha = visible.length > 800 ? 0.45 : 1;
    pen.beginPath();
    for (const node of visible) {
      const [px, py] = at(node);
      for (const operand of nodes.operands[node]) {
        if (places.y[operand] < 0) continue;
        const [ox, oy] = at(operand);
        pen.moveTo(ox, oy);
        pen.lineTo(px, py);
      }
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }
  const byKind = new Map();
  for (const node of visible) {
    const step = nodes.step[node];
    const kind = step < 0 ? -1 : steps[step].kind;
    const isDone = step >= 0 && steps[step].wave <= state.wave;
    const key = kind * 2 + (isDone ? 1 : 0);
    if (!byKind.has(key)) byKind.set(key, []);
    byKind.get(key).push(node);
  }
  for (const [key, members] of byKind) {
    const kind = Math.floor(key / 2);
    pen.globalAlpha = key % 2 ? 1 : 0.16;
    pen.fillStyle = kind < 0 ? ink("--soft") : COLOURS[kind % COLOURS.length];
    const isSquare = kind >= 0 && Math.floor(kind / COLOURS.length) % 2 === 1;
    pen.beginPath();
    for (const node of members) {
      const [px, py] = at(node);
      if (dot < 2.5 || isSquare) pen.rect(px - dot, py - dot, 2 * dot, 2 * dot);
      else {
        pen.moveTo(px + dot, py);
        pen.arc(px, py, dot, 0, 7);
      }
    }
    pen.fill();
  }
  pen.globalAlpha = 1;
  const ring = (node, colour, grown) => {
    const [px, py] = at(node);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.strokeRect(px - dot - grown, py - dot - grown, 2 * (dot + grown), 2 * (dot + grown));
    pen.lineWidth = 1;
  };
  if (state.step !== null) for (const node of visible) if (nodes.step[node] === state.step) ring(node, ink("--soft"), 1);
  if (state.found) for (const node of visible) if (state.found.has(node)) ring(node, "#e69f00", 2);
  for (const node of state.chosen) if (node !== null && seen(node)) ring(node, ink("--mark"), 4);
  state.frame = performance.now() - started;
}

function drawMemory() {
  const { pen, width, height } = fit(byId("memory"));
  const { steps } = state.view;
  const most = steps.reduce((most, step) => Math.max(most, step.live), 1);
  const bar = (width - 90) / Math.max(steps.length, 1);
  steps.forEach((step, number) => {
    const high = (step.live / most) * (height - 18);
    pen.globalAlpha = step.wave <= state.wave ? 1 : 0.25;
    pen.fillStyle = COLOURS[step.kind % COLOURS.length];
    pen.fillRect(80 + number * bar, height - high, Math.max(bar - 0.5, 0.5), high);
  });
  pen.globalAlpha = 1;
  pen.fillStyle = ink("--soft");
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(`live rows, at most ${size(most)}`, 4, 12);
}

function cell(row, text, className) {
  const made = row.insertCell();
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(titles) {
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  for (const title of titles) {
    const heading = document.createElement("th");
    heading.scope = "col";
    heading.textContent = title;
    head.append(heading);
  }
  made.createTBody();
  return made;
}

function listSteps(steps) {
  const made = table(["step", "lanes", "wave", "operands", "products"]);
  steps.forEach((step, number) => {
    const row = made.tBodies[0].insertRow();
    row.tabIndex = 0;
    row.dataset.step = number;
    const first = cell(row, "");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = COLOURS[step.kind % COLOURS.length];
    first.append(swatch, `${number} ${step.name}${step.reverse ? " (reverse)" : ""}`);
    first.title = step.other;
    cell(row, step.rows.toLocaleString("en"));
    cell(row, step.wave);
    cell(row, step.reads, "left");
    cell(row, step.products);
  });
  made.addEventListener("click", (event) => chooseStep(event.target.closest("tr")));
  made.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (event.key === "Enter") chooseStep(row);
    const next = event.key === "ArrowDown" ? row.nextElementSibling : event.key === "ArrowUp" ? row.previousElementSibling : null;
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  byId("steps").replaceChildren(made);
}

function chooseStep(row) {
  if (!row || row.dataset.step === undefined) return;
  const step = Number(row.dataset.step);
  state.step = state.step === step ? null : step;
  for (const other of byId("steps").querySelectorAll("tr.chosen")) other.classList.remove("chosen");
  if (state.step !== null) row.classList.add("chosen");
  draw();
}

function setWave(wave) {
  state.wave = wave;
  byId("wave").value = wave;
  const { steps, summary } = state.view;
  const names = steps.filter((step) => step.wave === wave).map((step) => `${step.name} x${step.rows}`);
  byId("wave-text").textContent = `wave ${wave}, ${summary.waves} in all: ${names.slice(0, 4).join(", ")}${names.length > 4 ? " .." : ""}`;
  byId("steps").querySelectorAll("tr[data-step]").forEach((row) => {
    row.classList.toggle("later", steps[Number(row.dataset.step)].wave > wave);
  });
  draw();
  drawMemory();
  keep();
}

const valueOf = (node) => `%${state.view.nodes.value[node]}`;

/** A chosen value: the one that the address names, or the first result of the chosen node. */
const chosenValue = (place) => state.named[place] || valueOf(state.chosen[place]);

function describe(node) {
  const { nodes, steps } = state.view;
  const step = nodes.step[node];
  const lines = [
    `${nodes.value[node] < 0 ? `node ${node}` : valueOf(node)}  ${nodes.callees[nodes.sig[node]]}`,
    nodes.instance[node] < 0 ? "common to all instances" : `instance ${nodes.instance[node]}`,
    step < 0 ? "in no step" : `step ${step}, ${steps[step].name}, ${steps[step].rows} lanes, wave ${steps[step].wave}`,
  ];
  if (nodes.sites[nodes.site[node]]) lines.push(nodes.sites[nodes.site[node]]);
  const operands = nodes.operands[node].filter((operand) => nodes.value[operand] >= 0).map(valueOf);
  if (operands.length) lines.push(`reads ${operands.slice(0, 12).join(" ")}${operands.length > 12 ? " .." : ""}`);
  return lines.join("\n");
}

/** Writes about the selection; two values are a question. */
function explain() {
  const [a, b] = state.chosen;
  const { nodes } = state.view;
  if (a === null) return;
  let text = describe(a);
  if (b !== null && nodes.value[a] >= 0 && nodes.value[b] >= 0) {
    attempt(() => {
      text = ask({ ask: "why", a: chosenValue(0), b: chosenValue(1) }).text;
    });
  }
  byId("answer").textContent = text;
  draw();
  keep();
}

/** The address keeps the selection, the wave, the policy and the arrangement. */
function keep() {
  const parts = new URLSearchParams();
  const [a, b] = state.chosen;
  if (a !== null && state.view.nodes.value[a] >= 0) parts.set("a", chosenValue(0));
  if (b !== null && state.view.nodes.value[b] >= 0) parts.set("b", chosenValue(1));
  parts.set("wave", state.wave);
  if (state.policy) parts.set("policy", state.policy);
  parts.set("arrange", byId("arrange").value);
  history.replaceState(null, "", `#${parts}`);
}

function nodeOfValue(text) {
  const value = Number((text || "").replace("%", ""));
  const { value: first } = state.view.nodes;
  let found = null;
  // The results of a node are consecutive, and nodes stand in the order of their results.
  for (let node = 0; node < first.length && text; node += 1) if (first[node] >= 0 && first[node] <= value) found = node;
  return found;
}

function restore(parts) {
  state.kept = parts.has("wave");
  if (parts.has("arrange")) byId("arrange").value = parts.get("arrange");
  if (parts.has("wave")) state.wave = Number(parts.get("wave"));
}

function find(text) {
  const { nodes } = state.view;
  const wanted = text.trim().toLowerCase();
  state.found = null;
  if (wanted) {
    state.found = new Set();
    for (let node = 0; node < nodes.sig.length; node += 1) {
      const own = [
        nodes.value[node] < 0 ? "" : valueOf(node),
        `instance ${nodes.instance[node]}`,
      ];
      const within = [nodes.callees[nodes.sig[node]], nodes.sites[nodes.site[node]], nodes.step[node] < 0 ? "" : state.view.steps[nodes.step[node]].name];
      if (own.includes(wanted) || within.some((part) => part.toLowerCase().includes(wanted))) state.found.add(node);
    }
    byId("answer").textContent = `${state.found.size.toLocaleString("en")} nodes found`;
  }
  draw();
}

function compare() {
  const made = table(["policy", "batches", "bound", "gathered", "copied", "bytes"]);
  for (const policy of POLICIES) {
    const row = made.tBodies[0].insertRow();
    let found;
    try {
      found = ask({ ask: "plan", policy, mode: byId("mode").value });
    } catch (error) {
      cell(row, policy);
      cell(row, error.message.split("\n")[0]).colSpan = 5;
      continue;
    }
    row.tabIndex = 0;
    const numbers = [found.batches, found.bound, found.gathered, found.copied];
    cell(row, policy);
    for (const number of numbers) cell(row, number.toLocaleString("en"));
    cell(row, size(found.bytes));
    row.addEventListener("click", () => attempt(() => choosePolicy(policy)));
    row.addEventListener("keydown", (event) => event.key === "Enter" && attempt(() => choosePolicy(policy)));
  }
  const heading = document.createElement("h2");
  heading.textContent = "Policies on this graph";
  byId("compared").replaceChildren(heading, made);
  byId("compared").hidden = false;
  reopen();
}

function choosePolicy(policy) {
  byId("policy").value = policy;
  state.kept = false;
  plan(policy);
}

function nodeAt(event) {
  const { zoom, places, view } = state;
  if (!zoom) return null;
  const box = byId("graph").getBoundingClientRect();
  const x = (event.clientX - box.left - zoom.x) / zoom.sx - 0.5;
  const y = (event.clientY - box.top - zoom.y) / zoom.sy - 0.5;
  let best = null;
  let least = 0.75;
  for (let node = 0; node < view.nodes.sig.length; node += 1) {
    if (places.y[node] < 0) continue;
    const far = Math.max(Math.abs(places.x[node] - x), Math.abs(places.y[node] - y));
    if (far < least) [best, least] = [node, far];
  }
  return best;
}

function listen() {
  const canvas = byId("graph");
  let grabbed = null;
  canvas.addEventListener("pointerdown", (event) => {
    grabbed = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grabbed || !state.zoom) return;
    const [dx, dy] = [event.clientX - grabbed.x, event.clientY - grabbed.y];
    if (!grabbed.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    grabbed = { x: event.clientX, y: event.clientY, moved: true };
    state.zoom.x += dx;
    state.zoom.y += dy;
    requestAnimationFrame(draw);
  });
  canvas.addEventListener("pointerup", (event) => {
    const isClick = grabbed && !grabbed.moved;
    grabbed = null;
    if (!isClick || !state.view) return;
    const node = nodeAt(event);
    if (node === null) return;
    state.named = event.shiftKey ? [state.named[0], null] : [null, null];
    state.chosen = event.shiftKey && state.chosen[0] !== null ? [state.chosen[0], node] : [node, null];
    explain();
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!state.zoom) return;
      event.preventDefault();
      const factor = Math.exp(-event.deltaY / 400);
      const box = canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      state.zoom = {
        x: px - (px - state.zoom.x) * factor,
        y: py - (py - state.zoom.y) * factor,
        sx: state.zoom.sx * factor,
        sy: state.zoom.sy * factor,
      };
      requestAnimationFrame(draw);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (!state.view) return;
    const last = state.view.summary.waves - 1;
    const keys = {
      ArrowLeft: () => setWave(Math.max(state.wave - 1, 0)),
      ArrowRight: () => setWave(Math.min(state.wave + 1, last)),
      "+": () => zoomBy(1.25),
      "-": () => zoomBy(0.8),
      0: () => arrange(),
      d: () => {
        state.drawAll = true;
        draw();
      },
      Escape: () => {
        state.chosen = [null, null];
        draw();
      },
    };
    const action = keys[event.key] || keys[event.key.toLowerCase()];
    if (action) {
      event.preventDefault();
      action();
    }
  });
  const zoomBy = (factor) => {
    if (!state.zoom) return;
    state.zoom.sx *= factor;
    state.zoom.sy *= factor;
    draw();
  };
  byId("planning").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => choosePolicy(byId("policy").value));
  });
  byId("compare").addEventListener("click", () => attempt(compare));
  byId("arrange").addEventListener("change", () => attempt(() => state.view && (arrange(), keep())));
  byId("find").addEventListener("input", (event) => state.view && find(event.target.value));
  byId("wave").addEventListener("input", (event) => setWave(Number(event.target.value)));
  let playing = null;
  byId("play").addEventListener("click", () => {
    if (playing || !state.view) {
      clearInterval(playing);
      playing = null;
      return;
    }
    const last = state.view.summary.waves - 1;
    if (state.wave >= last) setWave(0);
    playing = setInterval(() => {
      if (state.wave >= last) {
        clearInterval(playing);
        playing = null;
      } else setWave(state.wave + 1);
    }, Math.max(60, Math.min(600, 12000 / (last + 1))));
  });
  const take = async (files) => {
    // A graph first: a plan must fit it.
    const sorted = [...files].sort((a, b) => Number(/\.(plan|abp)$/.test(a.name)) - Number(/\.(plan|abp)$/.test(b.name)));
    const read = await Promise.all(sorted.map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())]));
    attempt(() => openAll(read));
  };
  byId("file").addEventListener("change", (event) => take(event.target.files));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  window.addEventListener("resize", () => state.view && (draw(), drawMemory()));
}

/** Opens files; a graph without a plan is planned. */
function openAll(files) {
  let hasPlan = false;
  for (const [name, bytes] of files) {
    const { opened } = openFile(name, bytes);
    if (opened === "graph") {
      Object.assign(state, { chosen: [null, null], named: [null, null], policy: null, found: null, drawAll: false });
      hasPlan = false;
    } else hasPlan = true;
  }
  if (hasPlan) {
    state.policy = null;
    show();
  } else if (files.length) plan(byId("policy").value);
}

async function start() {
  const data = JSON.parse(byId("data").textContent);
  for (const policy of POLICIES) byId("policy").append(new Option(policy, policy));
  const { module, instance } = await WebAssembly.instantiate(bytesOf(data.wasm), {});
  [compiled, engine] = [module, instance.exports];
  listen();
  if (data.title) document.title = `${data.title} - autobatch inspector`;
  const parts = new URLSearchParams(location.hash.slice(1));
  restore(parts);
  if (parts.has("policy") && POLICIES.includes(parts.get("policy"))) byId("policy").value = parts.get("policy");
  const files = [data.graph, data.plan].filter(Boolean).map((file) => [file.name, bytesOf(file.base64)]);
  if (!files.length) {
    byId("answer").textContent = "Drop a graph (.graph, .abg, .json) here, with its plan if you have one.";
    return;
  }
  attempt(() => {
    openAll(files);
    if (data.plan && parts.has("policy")) choosePolicy(byId("policy").value);
    state.chosen = [nodeOfValue(parts.get("a")), nodeOfValue(parts.get("b"))];
    state.named = [parts.get("a"), parts.get("b")];
    explain();
  });
  document.documentElement.dataset.ready = "true";
}

start().catch(report);
