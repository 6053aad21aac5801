// The list of a directory as a grid: selection, keyboard, rename in place, cut, copy and
// paste, drag and drop. The page works without it.
import { Failure } from "./tus.js";
import { Uploads, entriesOf, fill, textOf } from "./uploads.js";

const $ = (id) => document.getElementById(id);
const manager = $("file-manager");
const texts = manager.dataset;
const longest = 7000; // of an address, which proxies bound
const base = `/api/v1/projects/${texts.project}/files`;
const directory = texts.path;
const writable = "writable" in texts;
const dragged = "application/x-weir-files";

const rows = () => [...manager.querySelectorAll(".files tbody tr")];
const boxOf = (row) => row.querySelector("input[type=checkbox]");
const nameOf = (row) => row.querySelector(".name > a, .name > span").textContent;
const isSelected = (row) => boxOf(row)?.checked || false;
const selection = () => rows().filter(isSelected);
const isFixed = (row) => "fixed" in row.dataset;
let anchor = null; // where a range begins

function say(text, kind = "ok") {
  $("file-status").className = "flash " + kind;
  $("file-status").textContent = text;
}

async function request(method, operation, body) {
  const options = { method, headers: body ? { "Content-Type": "application/json" } : {}, body: body && JSON.stringify(body) };
  const response = await fetch(base + operation, options).catch(() => ({ status: 0 }));
  if (!response.ok) throw new Failure(response.status, await response.text?.());
}

// each runs an operation for several files, says how many succeeded and what failed.
async function each(list, text, operation) {
  let done = 0;
  const failed = [];
  for (const item of list) {
    try {
      await operation(item);
      done++;
    } catch (e) {
      failed.push(`${decodeURI(item).split("/").pop()}: ${textOf(texts, e)}`);
    }
  }
  say([done && fill(text, done), ...failed].filter(Boolean).join(" · "), failed.length ? "bad" : "ok");
  await refresh();
}

// Selection. The check boxes are its truth, so that the forms work as without scripts.
function select(row, on) {
  const box = boxOf(row);
  if (box) box.checked = on;
  row.setAttribute("aria-selected", String(isSelected(row)));
}

function selectOnly(row) {
  for (const other of rows()) select(other, other === row);
  anchor = row;
  tellSelection();
}

function selectRange(row) {
  const list = rows();
  if (!list.includes(anchor)) anchor = row;
  const [from, to] = [list.indexOf(anchor), list.indexOf(row)].sort((a, b) => a - b);
  list.forEach((other, i) => select(other, i >= from && i <= to));
  tellSelection();
}

const archive = (list) => "/archive?" + list.map((row) => "item=" + encodeURIComponent(row.dataset.path)).join("&");

function tellSelection() {
  const list = selection();
  if ($("file-selected")) $("file-selected").textContent = list.length ? fill(texts.tSelected, list.length) : "";
  const fits = { any: list.length > 0, some: list.length > 0 && archive(list).length < longest, change: list.length > 0 && !list.some(isFixed), one: list.length === 1 && !list.some(isFixed) };
  for (const b of manager.querySelectorAll("[data-needs]")) b.disabled = !fits[b.dataset.needs];
}

// A row is one stop of the tab key, and the arrows lead to the others.
function stopAt(row) {
  for (const other of manager.querySelectorAll(".files tr[tabindex='0']")) other.tabIndex = -1;
  if (row) row.tabIndex = 0;
}

function focusRow(row) {
  if (!row) return;
  stopAt(row);
  row.focus();
  row.scrollIntoView({ block: "nearest" });
}

function prepare(list) {
  for (const row of list) {
    row.tabIndex = -1;
    row.draggable = true;
    row.setAttribute("aria-selected", String(isSelected(row)));
    for (const inner of row.querySelectorAll("a, input")) inner.tabIndex = -1;
  }
}

function open(row) {
  row.querySelector(".name a")?.click();
}

const keys = {
  ArrowDown: (row, e) => step(row.nextElementSibling, e),
  ArrowUp: (row, e) => step(row.previousElementSibling, e),
  Home: (row, e) => step(rows()[0], e),
  End: (row, e) => step(rows().at(-1), e),
  Enter: open,
  F2: (row) => rename(row),
  Delete: (row) => { if (!selection().length) selectOnly(row); remove(); },
  Escape: () => { for (const row of rows()) select(row, false); tellSelection(); },
  " ": (row) => { select(row, !isSelected(row)); anchor = row; tellSelection(); },
};
const controlKeys = {
  a: () => { for (const row of rows()) select(row, true); tellSelection(); },
  c: (row) => keep("copy", row),
  x: (row) => keep("cut", row),
};

function step(row, e) {
  if (!row) return;
  if (!e.shiftKey) anchor = null;
  else anchor ||= e.target;
  focusRow(row);
  if (e.shiftKey) selectRange(row);
}

let typed = "";
let typedAt = 0;

function find(e) {
  typed = e.timeStamp - typedAt < 1000 ? typed + e.key : e.key;
  typedAt = e.timeStamp;
  focusRow(rows().find((row) => nameOf(row).toLowerCase().startsWith(typed.toLowerCase())));
}

addEventListener("keydown", (e) => {
  const control = e.ctrlKey || e.metaKey;
  if (control && e.key === "v" && !e.target.closest("input, textarea, select")) {
    e.preventDefault();
    paste();
    return;
  }
  const row = e.target.closest(".files tbody tr");
  if (!row || e.target !== row || e.altKey) return;
  const action = control ? controlKeys[e.key] : keys[e.key] || (e.key.length === 1 && (() => find(e)));
  if (!action) return;
  e.preventDefault();
  action(row, e);
});

manager.addEventListener("click", (e) => {
  const button = e.target.closest("button[data-do]");
  if (button && actions[button.dataset.do]) {
    e.preventDefault();
    actions[button.dataset.do]();
    return;
  }
  const row = e.target.closest(".files tbody tr");
  if (!row || e.target.closest("a, input.rename, label")) return;
  if (e.shiftKey) selectRange(row);
  else if (e.ctrlKey || e.metaKey) keys[" "](row);
  else selectOnly(row);
  focusRow(row);
});
manager.addEventListener("change", (e) => {
  const row = e.target.closest(".files tbody tr");
  if (row) select(row, e.target.checked);
  if (row) tellSelection();
});
manager.addEventListener("dblclick", (e) => {
  const row = e.target.closest(".files tbody tr");
  if (row && !e.target.closest("a, input")) open(row);
});

// What is done with files.
const actions = {
  rename: () => rename(selection()[0]),
  cut: () => keep("cut"),
  copy: () => keep("copy"),
  paste: () => paste(),
  download: async () => {
    let address = archive(selection());
    try {
      try {
        await request("HEAD", address); // fails if the rules do not allow it
      } catch (e) {
        if (e.status !== 409) throw e;
        address += "&format=tar"; // a ZIP archive has a bound
        await request("HEAD", address);
        say(texts.tTar);
      }
      Object.assign(document.createElement("a"), { href: base + address, download: "" }).click(); // which leaves the page and its navigation alone
    } catch (e) {
      say(textOf(texts, e), "bad");
    }
  },
  delete: () => remove(),
};

function rename(row) {
  if (!row || isFixed(row) || row.querySelector("input.rename")) return;
  const link = row.querySelector(".name > a, .name > span");
  const input = Object.assign(document.createElement("input"), { className: "rename", value: link.textContent });
  input.setAttribute("aria-label", fill(texts.tRename, link.textContent));
  let ended = false;
  const end = async (save) => {
    if (ended) return;
    ended = true;
    const name = input.value.trim();
    input.replaceWith(link);
    focusRow(row);
    if (!save || !name || name === link.textContent) {
      refresh();
      return;
    }
    if (name.includes("/")) { // it would be a place in another directory
      refresh();
      say(texts.tInvalid, "bad");
      return;
    }
    const from = row.dataset.path;
    const to = from.slice(0, from.lastIndexOf("/") + 1) + encodeURIComponent(name);
    await each([from], texts.tMoved, (path) => request("POST", "/moves", { from: path, to }));
    focusRow(rows().find((r) => nameOf(r) === name));
  };
  input.addEventListener("keydown", (e) => {
    e.stopPropagation();
    if (e.key === "Enter" || e.key === "Escape") {
      e.preventDefault();
      end(e.key === "Enter");
    }
  });
  input.addEventListener("blur", () => end(false));
  link.replaceWith(input);
  input.focus();
  const dot = input.value.lastIndexOf(".");
  input.setSelectionRange(0, dot > 0 && row.dataset.kind === "file" ? dot : input.value.length);
}

function remove() {
  const list = selection();
  if (!list.length || list.some(isFixed)) return;
  const next = list.at(-1).nextElementSibling?.dataset.path;
  each(list.map((row) => row.dataset.path), texts.tDeleted, (path) => request("DELETE", "?path=" + path))
    .then(() => focusRow(rows().find((row) => row.dataset.path === next) || rows().at(-1)));
}

// The clipboard is shared by the tabs of the portal.
const clipboard = "weir-clipboard " + texts.project;

function keep(operation, row) {
  if (row && !selection().length) selectOnly(row);
  const list = selection().filter((r) => operation === "copy" || !isFixed(r));
  if (!list.length) return;
  localStorage.setItem(clipboard, JSON.stringify({ operation, paths: list.map((r) => r.dataset.path) }));
  for (const r of rows()) r.classList.toggle("cut", operation === "cut" && list.includes(r));
  say(fill(texts.tClipboard, list.length));
  showTools();
}

async function paste() {
  const kept = JSON.parse(localStorage.getItem(clipboard));
  if (!kept || !writable) return;
  if (kept.operation === "cut") localStorage.removeItem(clipboard);
  await place(kept.paths, directory, kept.operation === "copy");
  showTools();
}

// place moves or copies files into a directory. A copy beside its original gets a number.
function place(paths, to, copy) {
  return each(paths, copy ? texts.tCopied : texts.tMoved, async (from) => {
    const name = from.slice(from.lastIndexOf("/") + 1);
    const [, stem, ext] = name.match(/^(.*?)(\.[^.]*)?$/);
    for (let n = 1; ; n++) {
      const target = `${to}/${n === 1 ? name : `${stem}%20(${n})${ext || ""}`}`;
      try {
        if (target !== from) return await request("POST", copy ? "/copies" : "/moves", { from, to: target });
        if (!copy) return;
      } catch (e) {
        if (e.status !== 409 || !copy || n > 99) throw e;
      }
    }
  });
}

function showTools() {
  for (const b of manager.querySelectorAll("button[data-do]")) b.hidden = b.dataset.do === "paste" && !(writable && localStorage.getItem(clipboard));
  tellSelection();
}

// Drag and drop: rows onto directories, and files of the desktop onto the page.
let over = null;

function mark(row) {
  over?.classList.remove("target");
  over = row;
  over?.classList.add("target");
}

const directoryAt = (target) => target.closest?.(".files tr[data-kind=directory]");

manager.addEventListener("dragstart", (e) => {
  const row = e.target.closest?.(".files tbody tr");
  if (!row) return;
  if (!isSelected(row)) selectOnly(row);
  e.dataTransfer.setData(dragged, JSON.stringify(selection().map((r) => r.dataset.path)));
  e.dataTransfer.effectAllowed = "copyMove";
});
addEventListener("dragover", (e) => {
  const types = e.dataTransfer.types;
  if (types.includes(dragged) && directoryAt(e.target)) {
    e.preventDefault();
    e.dataTransfer.dropEffect = e.ctrlKey ? "copy" : "move";
    mark(directoryAt(e.target));
  } else if (types.includes("Files")) {
    e.preventDefault();
    e.dataTransfer.dropEffect = writable ? "copy" : "none";
    document.body.classList.toggle("dropping", writable);
  }
});
for (const type of ["dragleave", "drop", "dragend"]) {
  addEventListener(type, (e) => {
    if (type === "dragleave" && e.relatedTarget) return;
    document.body.classList.remove("dropping");
    setTimeout(() => mark(null));
  });
}
addEventListener("drop", async (e) => {
  const target = directoryAt(e.target);
  const paths = e.dataTransfer.getData(dragged);
  if (paths && target) {
    e.preventDefault();
    place(JSON.parse(paths).filter((path) => path !== target.dataset.path), target.dataset.path, e.ctrlKey);
  } else if (e.dataTransfer.types.includes("Files")) {
    e.preventDefault();
    if (!writable) return;
    uploads.add(await entriesOf(e.dataTransfer, (n) => say(fill(texts.tReading, n))));
    say("");
  }
});

// The list follows the changes of others, and grows when its end comes into view.
async function pageOf(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) throw new Failure(response.status);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

const nextOf = (page) => page.querySelector("#file-form .pager a")?.getAttribute("href");
const rowsIn = (page) => [...page.querySelectorAll(".files tbody tr")].map((row) => document.adoptNode(row));

let reading = Promise.resolve();
let next = null; // the reading after the one under way, which may miss what changed since it began

// refresh reads the list anew, as far as it was read; rows that are the same stay.
function refresh() {
  next ||= reading = reading.then(() => {
    next = null;
    return readAgain().catch(() => {});
  });
  return next;
}

async function readAgain() {
  const known = rows();
  // After a refused form the page is at the form's address, which shows nothing.
  const address = new URL(location.pathname.endsWith("/files") ? location.href : texts.address, location.href);
  address.hash = "";
  if (known.length > 200) address.searchParams.set("limit", "1000");
  let page = await pageOf(address);
  const first = page;
  const list = rowsIn(page);
  while (nextOf(page) && list.length < known.length) {
    page = await pageOf(nextOf(page));
    list.push(...rowsIn(page));
  }
  if (manager.querySelector("input.rename")) return; // its end reads again
  $("storage").replaceWith(first.getElementById("storage"));
  if (!$("file-tree").contains(document.activeElement)) $("file-tree").replaceWith(first.getElementById("file-tree"));
  merge(first, list, known);
  setPager(page);
}

function merge(page, list, known) {
  const body = manager.querySelector(".files tbody");
  const next = page.querySelector(".files tbody");
  const focused = document.activeElement?.closest?.(".files tbody tr")?.dataset.path;
  const active = focused || manager.querySelector(".files tr[tabindex='0']")?.dataset.path;
  if (!body || !next) {
    const said = $("file-status").textContent;
    $("file-form").replaceWith(page.getElementById("file-form"));
    $("file-status").textContent = said;
  }
  const before = new Map(known.map((row) => [row.dataset.path, row]));
  const version = (row) => [row.dataset.etag, row.dataset.kind, row.cells[4].textContent, row.querySelector("time").dateTime, "fixed" in row.dataset].join();
  const merged = list.map((row) => {
    const old = before.get(row.dataset.path);
    if (old && version(old) === version(row)) return old;
    prepare([row]);
    if (old) select(row, isSelected(old));
    return row;
  });
  arrange(manager.querySelector(".files tbody"), merged);
  start();
  const now = new Map(rows().map((row) => [row.dataset.path, row]));
  const below = known.slice(Math.max(0, known.findIndex((row) => row.dataset.path === active)));
  const stays = below.find((row) => now.has(row.dataset.path)); // the row itself, or the next one that is left
  const at = stays ? now.get(stays.dataset.path) : rows().at(-1);
  if (focused) focusRow(at);
  else stopAt(at);
}

// arrange makes rows the content of a table. Those that are there already stay in the document: a click on one that
// has begun ends on it.
function arrange(table, list) {
  if (!table) return;
  const kept = new Set(list);
  for (const row of [...table.children]) if (!kept.has(row)) row.remove();
  list.forEach((row, i) => { if (table.children[i] !== row) table.insertBefore(row, table.children[i] ?? null); });
}

function setPager(page) {
  const pager = manager.querySelector("#file-form .pager");
  const next = page.querySelector("#file-form .pager");
  if (pager && next) pager.replaceWith(next);
  else if (next) $("file-form").append(next);
  else pager?.remove();
  watchEnd();
}

const end = new IntersectionObserver(async (entries) => {
  const link = entries.find((e) => e.isIntersecting)?.target;
  if (!link) return;
  end.disconnect();
  const address = new URL(link.href);
  address.searchParams.set("limit", "1000");
  const page = await pageOf(address).catch(() => null);
  if (!page) return;
  window.localTimes(page);
  const list = rowsIn(page);
  prepare(list);
  manager.querySelector(".files tbody").append(...list);
  setPager(page);
}, { rootMargin: "600px" });

function watchEnd() {
  end.disconnect();
  const link = manager.querySelector("#file-form .pager a");
  if (link) end.observe(link);
}

// start makes a grid of the table.
function start() {
  const table = manager.querySelector(".files");
  table?.setAttribute("role", "grid");
  table?.setAttribute("aria-multiselectable", "true");
  table?.closest(".table").removeAttribute("tabindex"); // the rows are
  prepare(rows().filter((row) => !row.draggable));
  if (rows().length && !manager.querySelector(".files tr[tabindex='0']")) rows()[0].tabIndex = 0;
  window.localTimes();
  showTools();
  watchEnd();
}

let uploads = null;
if (writable) {
  $("drop-hint").hidden = false;
  $("folder-field").hidden = false;
  const conflict = $("f-conflict");
  conflict.options[0].hidden = false;
  conflict.value = "ask";
  const form = $("f-files").form;
  form.querySelector("button[type=submit]").hidden = true;
  uploads = new Uploads({ base, directory, texts, changed: refresh });
  for (const input of [$("f-files"), $("f-folder")]) {
    input.addEventListener("change", () => {
      uploads.add([...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
      input.value = "";
    });
  }
}

// During uploads of one's own the list is read now and then.
let due = 0;
document.body.addEventListener("weir:change", () => {
  due ||= setTimeout(() => { due = 0; refresh(); }, uploads?.running ? 3000 : 0);
});
addEventListener("focus", () => { if (!document.body.dataset.topics) refresh(); });
start();
