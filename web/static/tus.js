// A client of the tus protocol 1.0.0: a file is uploaded in parts and can be continued
// where it stopped, also after a reload of the page.

const partBytes = 16 << 20;
const attempts = 6; // of a part
const repeatable = [0, 409, 423, 502, 503, 504]; // the connection is lost, or the server still waits for the rest of the last attempt
const ended = [403, 404, 410, 422]; // uploads that cannot be continued

// Failure is a refused request; status 0 is a lost connection. The kind is that of the
// problem in the body.
export class Failure extends Error {
  constructor(status, body = "") {
    super(`status ${status}`);
    this.status = status;
    this.kind = body.startsWith("{") ? JSON.parse(body).kind : "";
  }
}

// send makes a request that tells how many bytes of its body have been sent.
export function send(method, url, { headers = {}, body = null, progress, signal } = {}) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    if (progress) request.upload.onprogress = (e) => progress(e.loaded);
    const abort = () => request.abort();
    request.onload = () => resolve(request);
    request.onerror = () => reject(new Failure(0));
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onloadend = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort);
    request.send(body);
  });
}

// pause waits, unless it is aborted.
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    }, { once: true });
  });
}

// Uploads that have begun are remembered by what the file is and where it goes.
const prefix = "weir-upload ";
const keyOf = (endpoint, path, file) => prefix + JSON.stringify([endpoint, path, file.size, file.lastModified]);

function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Without storage the upload cannot be continued after a reload.
  }
}

// unfinished lists the uploads to an endpoint that can be continued with their file.
export function unfinished(endpoint) {
  return Object.keys(localStorage).filter((key) => key.startsWith(prefix)).map((key) => {
    const [at, path, size] = JSON.parse(key.slice(prefix.length));
    return { key, endpoint: at, path, size, url: JSON.parse(localStorage.getItem(key)).url };
  }).filter((u) => u.endpoint === endpoint);
}

// begun reports whether the upload of a file can be continued.
export const begun = (endpoint, path, file) => localStorage.getItem(keyOf(endpoint, path, file)) !== null;

// discard ends an upload.
export async function discard({ key, url }) {
  localStorage.removeItem(key);
  await send("DELETE", url, { headers: version });
}

const version = { "Tus-Resumable": "1.0.0" };

// offsetOf is where an upload continues; null: it does not exist any more.
export async function offsetOf(url, signal) {
  const response = await send("HEAD", url, { headers: version, signal });
  if (response.status === 404 || response.status === 410) return null;
  if (response.status !== 200) throw new Failure(response.status, response.responseText);
  return Number(response.getResponseHeader("Upload-Offset"));
}

// isThere reports whether a file of that size is at a path.
async function isThere(endpoint, path, file) {
  const response = await send("GET", endpoint.replace(/uploads$/, "stat") + "?path=" + path);
  return response.status === 200 && JSON.parse(response.responseText).size === file.size;
}

async function begin(endpoint, path, file, signal) {
  // The metadata are bytes; the path is percent-encoded.
  const bytes = path.replace(/%([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  const headers = { ...version, "Upload-Length": file.size, "Upload-Metadata": "path " + btoa(bytes) };
  const response = await send("POST", endpoint, { headers, signal });
  if (response.status !== 201) throw new Failure(response.status, response.responseText);
  return new URL(response.getResponseHeader("Location"), location.href).pathname;
}

// sendPart sends the next part and returns the new offset.
async function sendPart(url, file, offset, progress, signal) {
  const headers = { ...version, "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" };
  const body = file.slice(offset, offset + partBytes);
  const response = await send("PATCH", url, { headers, body, progress: (n) => progress(offset + n), signal });
  if (response.status !== 204) throw new Failure(response.status, response.responseText);
  return Number(response.getResponseHeader("Upload-Offset"));
}

// upload uploads a file, or continues its upload. An abort by the signal is a pause.
export async function upload(file, path, { endpoint, progress, signal }) {
  const key = keyOf(endpoint, path, file);
  let url = JSON.parse(localStorage.getItem(key))?.url;
  let offset = url ? await offsetOf(url, signal) : null;
  if (offset === null) {
    url = await begin(endpoint, path, file, signal);
    offset = 0;
    remember(key, { url });
  }
  for (let failed = 0; offset < file.size;) {
    progress(offset);
    try {
      if (failed) {
        await pause(500 << failed, signal);
        const now = await offsetOf(url, signal);
        // The server had all, and has put the file at its place: as it was asked, or before its answer was lost.
        if (now >= file.size || now === null && offset + partBytes >= file.size && await isThere(endpoint, path, file)) break;
        offset = now ?? offset;
      }
      offset = await sendPart(url, file, offset, progress, signal);
      failed = 0;
    } catch (e) {
      if (!repeatable.includes(e.status) || ++failed >= attempts) {
        if (ended.includes(e.status)) localStorage.removeItem(key);
        throw e;
      }
    }
  }
  localStorage.removeItem(key);
}
