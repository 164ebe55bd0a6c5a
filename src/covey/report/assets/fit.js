// The slider of a fit's report: it moves the cursor in the plot of the path, and the table shows the model there.
// The page is complete without it; the values of the fitted model are already written in.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("path-data").textContent);
  const $ = (selector) => document.querySelector(selector);
  const slider = $("#time");
  const readout = $("#readout");
  const table = $("#group-table");
  const body = table.tBodies[0];
  const rows = [...body.rows]; // as written: group i of the data is row i
  const order = rows.map((_, i) => i);
  const hidden = rows.map((row) => row.hidden);
  const lines = new Map([...document.querySelectorAll("[data-line]")].map((line) => [Number(line.dataset.line), line]));
  const dots = [...document.querySelectorAll("[data-dot]")];
  const cursor = $(".cursor");
  const last = data.x.length - 1;
  const series = decode(data.series);
  let frame = last;

  function decode(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new (data.bytes === 8 ? Float64Array : Float32Array)(bytes.buffer);
  }

  // A group's numbers lie frame after frame from its first one on: four facts (strength, norm, how many coefficients
  // are positive, how many negative), then the coefficients of the columns that are listed, one for each output.
  const facts = 4;
  const { outputs, effect } = data;
  const groups = [];
  let offset = 0;
  for (const [first, size, columns] of data.groups) {
    const listed = columns * outputs;
    groups.push({ first, size, listed, offset });
    offset += (data.x.length - first) * (facts + listed);
  }

  function at(group, t) {
    if (t < group.first) return null;
    const start = group.offset + (t - group.first) * (facts + group.listed);
    const [strength, norm, plus, minus] = series.subarray(start, start + facts);
    return { strength, norm, plus, minus, coefs: series.subarray(start + facts, start + facts + group.listed) };
  }

  // The same digits as the page was written with.
  function shown(value, digits) {
    const size = Math.abs(value);
    if (size === 0 || !Number.isFinite(size)) return String(value);
    const exponent = Math.floor(Math.log10(size));
    const plain = exponent >= -4 && exponent < 6;
    const text = plain
      ? size.toFixed(Math.max(0, digits - 1 - exponent))
      : size.toExponential(digits - 1).replace("e+", "e");
    return (value < 0 ? "\u2212" : "") + text;
  }

  // Only what differs is written: the browser lays out again what is touched.
  function put(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  function signs({ plus, minus }) {
    return [plus ? `+${plus}` : "", minus ? `\u2212${minus}` : ""].filter(Boolean).join(" ");
  }

  // What the exponential of a coefficient means has a name, such as an odds ratio.
  function ratio(value) {
    return shown(Math.exp(Math.max(-700, Math.min(700, value))), 4);
  }

  function single(value) {
    return effect ? `${shown(value, 4)} (${effect} ${ratio(value)})` : shown(value, 4);
  }

  function fillCoefficients(row, coefs) {
    const cells = row.querySelectorAll(".coefs tbody tr");
    if (outputs > 1) {
      coefs.forEach((value, i) => {
        const cell = cells[Math.floor(i / outputs)].cells[1 + (i % outputs)];
        put(cell, effect ? ratio(value) : shown(value, 4));
      });
      return;
    }
    const largest = coefs.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    coefs.forEach((value, j) => {
      put(cells[j].cells[1], shown(value, 4));
      if (effect) put(cells[j].cells[2], ratio(value));
      const bar = cells[j].lastElementChild.firstChild;
      bar.className = value < 0 ? "minus" : "plus";
      bar.style.width = `${((50 * Math.abs(value)) / largest).toFixed(1)}%`;
    });
  }

  function fillRow(row, group, now, strongest) {
    const [, , strength, norm] = row.cells;
    const sign = row.querySelector(":scope > .signs"); // tables of terms have no coefficients
    put(strength.firstChild, shown(now.strength, 3));
    strength.lastChild.style.transform = `scaleX(${(now.strength / strongest).toFixed(3)})`;
    put(norm, shown(now.norm, 3));
    if (!sign) return;
    const details = sign.querySelector("details");
    if (details) {
      put(details.firstChild, signs(now));
      if (details.open) fillCoefficients(row, now.coefs);
    } else {
      put(sign, group.listed ? single(now.coefs[0]) : signs(now));
    }
  }

  function fillTable() {
    const values = groups.map((group) => at(group, frame));
    const strengths = values.map((now) => now?.strength ?? 0);
    const strongest = strengths.reduce((most, value) => Math.max(most, value), 0) || 1;
    const wanted = [...order].sort((a, b) => strengths[b] - strengths[a] || a - b);
    const moved = wanted.findIndex((i, place) => i !== order[place]);
    if (moved >= 0) {
      order.splice(0, order.length, ...wanted);
      body.append(...order.slice(moved).map((i) => rows[i]));
    }
    const limit = table.classList.contains("all") ? Infinity : data.limit;
    order.forEach((i, place) => {
      const row = rows[i];
      const asleep = strengths[i] === 0;
      if (hidden[i] !== asleep) row.hidden = hidden[i] = asleep;
      if (asleep || place >= limit) return;
      put(row.firstElementChild, String(place + 1));
      fillRow(row, groups[i], values[i], strongest);
    });
    const awake = strengths.filter((value) => value > 0).length;
    $("#no-group").hidden = awake > 0;
    const more = $("#more");
    more.hidden = awake <= data.limit;
    more.textContent = limit === Infinity ? `Show the strongest ${data.limit} only` : `Show all ${awake} ${data.noun}s`;
    return strengths;
  }

  function show(next) {
    frame = Math.max(0, Math.min(last, next));
    const left = `${100 * data.x[frame]}%`;
    slider.value = String(1000 * data.x[frame]);
    cursor.style.left = left;
    const strengths = fillTable();
    for (const dot of dots) {
      const strength = strengths[Number(dot.dataset.dot)];
      dot.hidden = strength === 0;
      dot.style.left = left;
      dot.style.top = `${100 * (1 - strength / data.top)}%`;
    }
    readout.textContent = data.readouts[frame];
    slider.setAttribute("aria-valuetext", data.readouts[frame]);
    for (const button of document.querySelectorAll("[data-frame]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.frame) === frame));
    }
  }

  function nearest(x) {
    let best = 0;
    data.x.forEach((place, i) => {
      if (Math.abs(place - x) < Math.abs(data.x[best] - x)) best = i;
    });
    return best;
  }

  slider.addEventListener("input", () => show(nearest(Number(slider.value) / 1000)));
  slider.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    const ends = { Home: 0, End: last };
    if (event.key in moves) show(frame + moves[event.key]);
    else if (event.key in ends) show(ends[event.key]);
    else return;
    event.preventDefault();
  });
  for (const button of document.querySelectorAll("[data-frame]")) {
    button.addEventListener("click", () => show(Number(button.dataset.frame)));
  }
  const area = $("#path-plot .area");
  const follow = (event) => {
    const box = area.getBoundingClientRect();
    show(nearest((event.clientX - box.left) / box.width));
  };
  area.addEventListener("pointerdown", (event) => {
    area.setPointerCapture(event.pointerId);
    follow(event);
  });
  area.addEventListener("pointermove", (event) => event.buttons && follow(event));
  // The table as a file: what is shown, every number in full. Text that a spreadsheet would run gets an apostrophe.
  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const formula = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(value);
    const number = value.trim() !== "" && Number.isFinite(Number(value));
    const text = formula && !number ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function asCsv() {
    const heads = [data.noun, "strength", "norm", "columns", "woke_up", "folds", "positive", "negative"];
    const lines = order
      .map((i) => [data.fixed[i], at(groups[i], frame)])
      .filter(([, now]) => now?.strength > 0)
      .map(([[name, size, woke, folds], now]) =>
        [name, now.strength, now.norm, size, woke, folds, now.plus, now.minus].map(cell).join(","));
    return [heads.join(","), ...lines, ""].join("\r\n");
  }

  function save(name, text) {
    const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  $("#save").addEventListener("click", () => save(`${data.noun}s-of-the-model.csv`, asCsv()));
  $("#save-groups")?.addEventListener("click", () => {
    const lines = data.columns.flatMap(([group, ...columns]) => columns.map((name) => `${cell(name)},${cell(group)}`));
    save("groups-as-they-were.csv", ["column,group", ...lines, ""].join("\r\n"));
  });
  $("#more").addEventListener("click", () => {
    table.classList.toggle("all");
    fillTable();
  });
  rows.forEach((row, i) => {
    const light = () => lines.forEach((path, line) => path.classList.toggle("lit", line === i));
    row.addEventListener("pointerenter", light);
    row.addEventListener("focusin", light);
    row.querySelector("details")?.addEventListener("toggle", (event) => {
      const now = at(groups[i], frame);
      if (event.target.open && now) fillCoefficients(row, now.coefs);
    });
  });
  for (const leave of ["pointerleave", "focusout"]) {
    table.addEventListener(leave, () => lines.forEach((path) => path.classList.remove("lit")));
  }
  // Everything that is shown goes to paper: the rows below the fold are brought up to date first.
  addEventListener("beforeprint", () => {
    table.classList.add("all");
    fillTable();
    rows.forEach((row, i) => {
      if (!row.hidden && row.querySelector(".coefs")) fillCoefficients(row, at(groups[i], frame).coefs);
    });
  });

  document.documentElement.classList.add("js");
  show(last);
})();
