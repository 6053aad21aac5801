// What makes pages live. Everything here hangs on data attributes and adds to
// pages that work without it.
"use strict";

// Events: <body data-topics="pool workspace:5"> listens to those topics and
// tells the page with a DOM event; htmx then refetches what changed. A page
// that nobody sees does not listen: browsers allow few connections to a site.
function listen() {
  const topics = (document.body.dataset.topics || "").split(" ").filter(Boolean);
  if (!topics.length) return;
  // With the mark the server tells what has changed since the page was read,
  // whenever the connection begins.
  const query = new URLSearchParams(topics.map((t) => ["topic", t]));
  query.set("since", document.body.dataset.since || "");
  let source = null;
  let due = 0;
  let poll = 0;
  const every = () => 1000 * (document.getElementById("main").dataset.every || 0); // until the content ends it
  const refetch = () => {
    clearTimeout(due);
    due = 0;
    restart();
    document.body.dispatchEvent(new CustomEvent("weir:change"));
  };
  // Some pages also show what changes without an event.
  const restart = () => {
    clearTimeout(poll);
    if (every() && source) poll = setTimeout(refetch, every());
  };
  // Where many pages follow a topic, the server tells over how many ms to spread
  // their requests. Each page has its own moment in every such period.
  const phase = Math.random();
  let jitter = 0;
  const delay = () => {
    const soonest = 250; // a burst of events is one change
    const period = jitter || 1;
    const late = (performance.now() + soonest - phase * period) % period;
    return soonest + (period - late) % period;
  };
  const changed = () => {
    due ||= setTimeout(refetch, delay());
    jitter = 0;
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource("/events?" + query);
    source.addEventListener("message", changed);
    source.addEventListener("change", changed);
    source.addEventListener("jitter", (e) => { jitter = Number(e.data); });
    restart();
  };
  const close = () => {
    source?.close();
    source = null;
    restart();
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

// Times: the server writes UTC, the reader sees them in the time zone of the account or else of
// the browser, which may not know the former.
const timeZone = (() => {
  try {
    return new Intl.DateTimeFormat("sv", { timeZone: document.documentElement.dataset.timeZone || undefined }).resolvedOptions().timeZone;
  } catch {
    return Intl.DateTimeFormat().resolvedOptions().timeZone;
  }
})();

// suggestZones offers the names of time zones where one is typed.
function suggestZones() {
  const input = document.querySelector("main input[name=time_zone]:not([type=hidden])");
  if (!input || !Intl.supportedValuesOf) return;
  const list = document.createElement("datalist");
  list.id = "time-zones";
  list.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name)));
  input.after(list);
  input.setAttribute("list", list.id);
}

const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const formats = {
  moment: { year: "numeric", month: "2-digit", day: "2-digit", ...time },
  clock: { ...time, second: "2-digit" },
};

// duration is a length of time, as the server writes it.
function duration(milliseconds) {
  const [ofSeconds, ofMinutes, ofHours, ofBoth, ofDays] = document.documentElement.dataset.spans.split("|");
  const fill = (format, ...numbers) => numbers.reduce((text, n) => text.replace("%d", n), format);
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (minutes < 1) return fill(ofSeconds, seconds);
  if (hours < 1) return fill(ofMinutes, minutes);
  if (hours >= 48) return fill(ofDays, Math.floor(hours / 24));
  return minutes % 60 ? fill(ofBoth, hours, minutes % 60) : fill(ofHours, hours);
}

// localTimes writes the times in a part of the page.
function localTimes(root = document) {
  const title = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "full", timeStyle: "long", timeZone });
  // Swedish writes dates as 2026-03-12, which nobody misreads.
  const text = Object.fromEntries(Object.entries(formats).map(([name, format]) => [name, new Intl.DateTimeFormat("sv", { ...format, timeZone })]));
  for (const t of root.querySelectorAll("time[data-time]")) {
    const at = new Date(t.dateTime);
    if (isNaN(at)) continue;
    const length = { countdown: at - Date.now(), since: Date.now() - at }[t.dataset.time];
    const soon = length < 60000 && t.dataset.soon;
    const now = length === undefined ? text[t.dataset.time].format(at) : soon || t.dataset.format.replace("%s", duration(length));
    if (t.textContent !== now) t.textContent = now; // the same text again would end a selection
    t.title = title.format(at);
  }
}

// Buttons that need scripts are hidden without them.
function showButtons() {
  const kinds = ["button[data-select-all]", ...(navigator.clipboard ? ["button[data-copy]"] : [])];
  for (const b of document.querySelectorAll(kinds)) b.hidden = false;
}

// Copying: <button data-copy="#secret" data-copied="Copied" hidden>

async function copy(button) {
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent.trim());
  button.textContent = button.dataset.copied;
}

// Dialogs: <a data-dialog href="…/delete"> leads to a page that asks; with
// scripts that page opens here as a dialog.
async function openDialog(link) {
  const response = await fetch(link.href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const content = page.querySelector("main .narrow");
  if (!response.ok || response.redirected || !content) {
    location.href = link.href;
    return;
  }
  const dialog = document.createElement("dialog");
  const title = content.querySelector("h1");
  title.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", title.id);
  dialog.append(document.adoptNode(content));
  dialog.querySelector("a.btn")?.addEventListener("click", (e) => { e.preventDefault(); dialog.close(); });
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("click", (e) => {
  const button = e.target.closest?.("button[data-copy]");
  if (button) copy(button);
  const link = e.target.closest?.("a[data-dialog]");
  if (link && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
    e.preventDefault();
    openDialog(link);
  }
});

// Selecting: <button data-select-all hidden> selects all boxes of its form, or none if all are.
addEventListener("click", (e) => {
  const button = e.target.closest?.("button[data-select-all]");
  if (!button) return;
  const boxes = [...button.form.elements].filter((box) => box.type === "checkbox");
  const on = boxes.some((box) => !box.checked);
  for (const box of boxes) box.checked = on;
});

// The shortcut of the search. It has a modifier, as WCAG 2.1.4 wants it for those who type by voice.
const mac = /Mac|iPhone|iPad/.test(navigator.platform);

function showShortcut() {
  const key = document.querySelector(".find kbd");
  if (!key) return;
  key.textContent = mac ? "⌘K" : "Ctrl K";
  key.hidden = false;
}

addEventListener("keydown", (e) => {
  if (e.key?.toLowerCase() !== "k" || !(mac ? e.metaKey : e.ctrlKey) || e.shiftKey || e.altKey) return;
  const input = document.querySelector(".find input");
  if (!input) return;
  e.preventDefault();
  if (!input.checkVisibility()) document.getElementById("menu").showPopover();
  input.focus();
  input.select();
});

// Charts: the amounts of the step under the pointer, and a line there.
function showValues(svg, x) {
  const steps = JSON.parse(svg.dataset.values), from = Number(svg.dataset.from), length = (Number(svg.dataset.to) - from) / steps.length;
  const i = Math.max(0, Math.min(steps.length - 1, Math.floor(x * steps.length)));
  const moment = new Intl.DateTimeFormat("sv", { ...formats.moment, timeZone }).format(from + i * length);
  const values = svg.parentElement.querySelector(".chart-values");
  values.textContent = moment + "\n" + (steps[i] || "–");
  values.hidden = false;
  values.classList.toggle("left", x > 0.5);
  svg.querySelector(".under").setAttribute("d", `M${(600 * (i + 0.5)) / steps.length} 0V100`);
}

function hideValues(svg) {
  svg.parentElement.querySelector(".chart-values").hidden = true;
  svg.querySelector(".under").setAttribute("d", "");
}

for (const name of ["pointermove", "pointerdown"]) {
  addEventListener(name, (e) => {
    const over = e.target.closest?.("svg[data-values]");
    for (const values of document.querySelectorAll(".chart-values:not([hidden])")) {
      const svg = values.parentElement.querySelector("svg");
      if (svg !== over) hideValues(svg);
    }
    pointed = over && { id: over.parentElement.getAttribute("aria-labelledby"), x: e.clientX };
    showPointed();
  });
}

// showPointed shows the amounts under the pointer, again after the page was read again.
let pointed = null;
function showPointed() {
  const svg = pointed && document.querySelector(`.chart[aria-labelledby="${pointed.id}"] svg`);
  if (!svg) return;
  const box = svg.getBoundingClientRect();
  showValues(svg, (pointed.x - box.left) / box.width);
}

// A response that came from elsewhere, such as the sign-in page after the
// session ended, is no new state of this page.
document.addEventListener("htmx:before:response", (e) => {
  if (e.detail.ctx.response.raw.redirected) {
    e.preventDefault();
    location.reload();
  }
});
document.addEventListener("htmx:after:swap", () => { localTimes(); showButtons(); showPointed(); });

document.addEventListener("DOMContentLoaded", () => {
  localTimes();
  const zone = document.querySelector("input[data-time-zone]");
  if (zone) zone.value ||= timeZone;
  suggestZones();
  setInterval(localTimes, 5000); // countdowns and durations go on
  showButtons();
  showShortcut();
  document.querySelector("[data-focus]")?.focus();
  listen();
});
