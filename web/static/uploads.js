// Uploads to a directory: many files a few at a time, large ones in parts, with the
// progress of all of them and what failed.
import { Failure, begun, discard, offsetOf, send, unfinished, upload } from "./tus.js";

const atOnce = 4; // browsers open six connections to a site, and one listens to events
const largeBytes = 8 << 20; // files from which on parts can be resumed

const $ = (id) => document.getElementById(id);

// fill puts values into a sentence with {0}, {1}, …
export const fill = (text, ...values) => text.replace(/\{(\d)\}/g, (_, n) => values[n]);

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1000 && unit < 4; unit++) n /= 1024;
  return `${unit && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

// textOf is what a failure says to a person.
export function textOf(texts, error) {
  if (error.kind === "no_capacity") return texts.tQuota;
  if (error instanceof DOMException) return texts.tUnreadable; // of the browser, for a file on this computer
  switch (error.status) {
    case 0: return texts.tConnection;
    case 403: return texts.tForbidden;
    case 404: return texts.tMissing;
    case 409: return texts.tConflict;
    case 422: case 400: return texts.tInvalid;
    default: return texts.tError;
  }
}

// entriesOf lists what was dropped, whole folders with what is in them.
export async function entriesOf(transfer, count) {
  const roots = [...transfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
  const list = [];
  const walk = async (entry, above) => {
    const path = above + entry.name;
    if (entry.isFile) {
      const read = new Promise((ok, no) => entry.file(ok, no));
      list.push(await read.then((file) => ({ path, file }), (unreadable) => ({ path, unreadable })));
      if (list.length % 200 === 0) count(list.length);
      return;
    }
    list.push({ path });
    const reader = entry.createReader();
    for (;;) { // it reads about a hundred at a time
      const batch = await new Promise((ok, no) => reader.readEntries(ok, no)).catch((unreadable) => {
        list.push({ path, unreadable });
        return [];
      });
      if (!batch.length) return;
      for (const child of batch) await walk(child, path + "/");
    }
  };
  for (const root of roots) await walk(root, "");
  return list;
}

export class Uploads {
  constructor({ base, directory, texts, changed }) {
    Object.assign(this, { base, directory, texts, changed });
    this.items = []; // {file, path, target, state, sent, error}
    this.directories = new Map(); // to the promise of each
    this.abort = new AbortController();
    this.running = 0;
    this.next = 0;
    this.paused = false;
    $("transfer-pause").addEventListener("click", () => this.pause());
    $("transfer-resume").addEventListener("click", () => this.resume());
    $("transfer-retry").addEventListener("click", () => this.retry());
    $("transfer-cancel").addEventListener("click", () => this.cancel());
    addEventListener("beforeunload", (e) => { if (this.running && !this.paused) e.preventDefault(); });
    this.showUnfinished();
  }

  get endpoint() { return this.base + "/uploads"; }

  // add uploads files, {path, file} relative to the directory; {path} alone is a folder, and
  // with unreadable something that the browser could not read.
  add(list) {
    if (!this.running && !this.paused && this.items.every((i) => i.state !== "failed")) {
      this.items = [];
      this.next = 0;
      this.choice = null;
    }
    for (const { path, file, unreadable } of list) {
      const target = this.directory + "/" + path.split("/").map(encodeURIComponent).join("/");
      this.items.push({ file, unreadable, path, target, state: "waiting", sent: 0 });
    }
    this.start();
  }

  start() {
    while (!this.paused && this.running < atOnce && this.next < this.items.length) {
      this.running++;
      this.work().finally(() => {
        this.running--;
        this.show();
        if (!this.running) this.changed();
      });
    }
    this.show();
  }

  async work() {
    while (!this.paused && this.next < this.items.length) {
      const item = this.items[this.next++];
      if (item.state !== "waiting") continue;
      item.state = "running";
      try {
        await this.store(item);
        if (item.state === "running") item.state = "done";
        item.sent = item.file?.size || 0;
      } catch (e) {
        item.state = e.name === "AbortError" ? "waiting" : "failed";
        item.error = e;
      }
      this.show();
    }
  }

  async store(item) {
    const above = item.target.slice(0, item.target.lastIndexOf("/"));
    if (item.unreadable) throw item.unreadable;
    if (!item.file) return this.makeDirectory(item.target);
    if (above !== this.directory) await this.makeDirectory(above);
    if (await this.put(item, true)) return;
    switch (await this.decide(item)) {
      case "replace":
        await this.put(item, false);
        break;
      case "keep":
        await this.putBeside(item);
        break;
      default:
        item.state = "skipped";
    }
  }

  // put stores a file; with create, it returns false if there is one already.
  async put(item, create) {
    const { file, target } = item;
    const progress = (n) => { item.sent = n; this.show(); };
    if (file.size > largeBytes) {
      if (create && !begun(this.endpoint, target, file) && await this.exists(target)) return false;
      await upload(file, target, { endpoint: this.endpoint, progress, signal: this.abort.signal });
      return true;
    }
    const headers = create ? { "If-None-Match": "*" } : {};
    const response = await send("PUT", `${this.base}/content?path=${target}`, { headers, body: file, progress });
    if (create && response.status === 412) return false;
    if (response.status !== 200) throw new Failure(response.status, response.responseText);
    return true;
  }

  // putBeside stores a file under the first free name: "a (2).txt".
  async putBeside(item) {
    const [, stem, ext] = item.target.match(/^(.*?)(\.[^./]*)?$/);
    for (let n = 2; ; n++) {
      item.target = `${stem}%20(${n})${ext || ""}`;
      if (await this.put(item, true)) return;
    }
  }

  async exists(path) {
    const response = await send("GET", `${this.base}/stat?path=${path}`);
    if (response.status !== 200 && response.status !== 404) throw new Failure(response.status, response.responseText);
    return response.status === 200;
  }

  // makeDirectory creates a directory and those above it, each once.
  makeDirectory(path) {
    if (!this.directories.has(path)) this.directories.set(path, this.createDirectory(path));
    return this.directories.get(path);
  }

  async createDirectory(path) {
    const above = path.slice(0, path.lastIndexOf("/"));
    if (above !== this.directory) await this.makeDirectory(above);
    const response = await send("POST", this.base + "/directories", { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ path }) });
    if (response.status === 201) return;
    const there = response.status === 409 && await send("GET", `${this.base}/stat?path=${path}`);
    if (!there || there.status !== 200 || JSON.parse(there.responseText).kind !== "directory") {
      this.directories.delete(path);
      throw new Failure(response.status, response.responseText);
    }
  }

  // decide is what happens to a file that exists: by the form, or by the person.
  async decide(item) {
    const chosen = this.choice || $("f-conflict").value;
    if (chosen !== "ask") return chosen;
    this.asking = (this.asking || Promise.resolve()).then(() => this.choice || this.ask(item));
    return this.asking;
  }

  ask(item) {
    const dialog = $("conflict");
    $("h-conflict").textContent = fill(this.texts.tExists, item.path);
    $("conflict-all").checked = false;
    dialog.returnValue = "skip"; // also by Escape
    dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
      if ($("conflict-all").checked) this.choice = dialog.returnValue;
      resolve(dialog.returnValue);
    }, { once: true }));
  }

  pause() {
    this.paused = true;
    this.abort.abort();
    this.abort = new AbortController();
    this.show();
  }

  resume() {
    this.paused = false;
    this.next = 0;
    this.start();
  }

  retry() {
    for (const item of this.items) if (item.state === "failed") item.state = "waiting";
    this.resume();
  }

  cancel() {
    this.pause();
    const dropped = new Set(this.items.filter((i) => i.state !== "done").map((i) => i.target));
    this.items = this.items.filter((i) => i.state === "done");
    this.next = this.items.length;
    this.paused = false;
    for (const u of unfinished(this.endpoint)) if (dropped.has(u.path)) discard(u);
    this.show();
    this.changed();
  }

  // show draws the progress, at most once a frame.
  show() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const files = this.items.filter((i) => i.file);
    const failed = this.items.filter((i) => i.state === "failed");
    const ended = files.filter((i) => i.state === "done" || i.state === "skipped");
    const sent = files.reduce((sum, i) => sum + Math.min(i.sent, i.file.size), 0);
    const total = files.reduce((sum, i) => sum + i.file.size, 0);
    const open = this.running > 0 || this.paused;
    $("transfers").hidden = this.items.length === 0;
    const words = open ? [fill(this.texts.tProgress, ended.length, files.length, bytes(sent), bytes(total))]
      : [fill(this.texts.tDone, files.filter((i) => i.state === "done").length)];
    if (failed.length) words.push(fill(this.texts.tFailed, failed.length));
    $("transfer-words").textContent = words.join(" · ");
    $("transfer-bar").value = total ? sent / total : ended.length / (files.length || 1);
    $("transfer-pause").hidden = !open || this.paused;
    $("transfer-resume").hidden = !this.paused;
    $("transfer-cancel").hidden = !open;
    $("transfer-retry").hidden = open || !failed.length;
    this.drawFailed(failed.slice(0, 100));
  }

  drawFailed(failed) {
    const text = failed.map((i) => `${i.path}: ${textOf(this.texts, i.error)}`);
    const list = $("transfer-failed");
    if (list.dataset.shown === text.join("\n")) return;
    list.dataset.shown = text.join("\n");
    list.replaceChildren(...text.map((t) => Object.assign(document.createElement("li"), { textContent: t })));
  }

  // showUnfinished lists uploads of before a reload: the browser has lost their files.
  async showUnfinished() {
    const list = $("unfinished");
    for (const u of unfinished(this.endpoint)) {
      const offset = await offsetOf(u.url).catch(() => 0);
      if (offset === null) {
        localStorage.removeItem(u.key);
        continue;
      }
      const row = $("unfinished-row").content.cloneNode(true).firstElementChild;
      row.querySelector("span").textContent = fill(this.texts.tInterrupt, decodeURI(u.path), `${bytes(offset)} / ${bytes(u.size)}`);
      row.querySelector("button").addEventListener("click", () => { row.remove(); discard(u); });
      list.append(row);
      list.hidden = false;
    }
  }
}
