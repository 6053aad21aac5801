// Says in an open tab of Jupyter why its workspace no longer answers. Jupyter itself only
// says that it is connecting. When a connection of the tab ends or a request is refused, and
// when somebody returns to the tab, this asks for the page that the workspace's address has
// now, and shows what that page says until it is Jupyter's again.
(() => {
  let notice, asking = false;

  async function ask() {
    if (asking) return;
    asking = true;
    try {
      const response = await fetch("/", { headers: { Accept: "text/html" }, cache: "no-store", redirect: "manual" });
      const page = response.ok || response.type === "opaqueredirect" ? null
        : new DOMParser().parseFromString(await response.text(), "text/html").querySelector("main[data-workspace-state]");
      show(page);
    } catch {
      // The network is gone: Jupyter says so, and asks again.
    } finally {
      asking = false;
    }
  }

  function show(page) {
    notice?.remove();
    notice = null;
    if (!page) return;
    notice = document.createElement("div");
    notice.id = "weir-notice";
    notice.setAttribute("role", "alert");
    notice.style.cssText = "position:fixed;z-index:10000;inset:0 0 auto 0;padding:12px 16px;display:flex;flex-wrap:wrap;gap:8px 16px;" +
      "align-items:center;font:14px/1.5 system-ui,sans-serif;color:#1f2328;background:#fff8c5;border-bottom:1px solid #d4a72c";
    const text = document.createElement("span");
    const title = document.createElement("b");
    title.textContent = page.querySelector("h1").textContent;
    text.append(title, " ", page.querySelector("p").textContent);
    notice.append(text);
    for (const a of page.querySelectorAll("a.btn")) {
      const link = document.createElement("a");
      link.href = a.href;
      link.target = "_blank"; // this tab may have changes that are not saved
      link.rel = "noopener";
      link.textContent = a.textContent;
      link.style.cssText = "color:#0550ae;text-decoration:underline";
      notice.append(link);
    }
    document.body.append(notice);
  }

  const Original = window.WebSocket;
  window.WebSocket = class extends Original {
    constructor(...args) {
      super(...args);
      this.addEventListener("close", ask);
      this.addEventListener("open", () => { if (notice) ask(); });
    }
  };
  const send = XMLHttpRequest.prototype.send;
  XMLHttpRequest.prototype.send = function (...args) {
    this.addEventListener("loadend", () => { if (notice || [409, 502, 503].includes(this.status)) ask(); });
    return send.apply(this, args);
  };
  addEventListener("online", ask);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") ask(); });
})();
