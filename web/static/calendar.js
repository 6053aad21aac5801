// The calendar in the reader's time zone, and dragging over the slots of a GPU. Each slot
// is a link to the form; the span of several has the cores that all of them have.
const here = new URL(location.href);
if (!here.searchParams.has("time_zone") && !document.documentElement.dataset.timeZone) {
  here.searchParams.set("time_zone", timeZone); // of live.js
  location.replace(here);
}

let from = null;
let to = null;

// span is the links from one slot to another of the same GPU, as far as there is no gap.
function span() {
  const cells = [...from.closest("tr").querySelectorAll("td")];
  const [a, b] = [cells.indexOf(from.parentElement), cells.indexOf(to.parentElement)];
  const step = a <= b ? 1 : -1;
  const list = [];
  for (let i = a; i !== b + step && cells[i].firstElementChild?.matches("a"); i += step) list.push(cells[i].firstElementChild);
  return step > 0 ? list : list.reverse();
}

function mark() {
  for (const a of document.querySelectorAll(".calendar a.chosen")) a.classList.remove("chosen");
  if (from) for (const a of span()) a.classList.add("chosen");
}

const slotAt = (e) => e.target.closest?.(".calendar td a[data-cores]"); // not a reservation

addEventListener("pointerdown", (e) => {
  from = to = e.button === 0 && e.pointerType !== "touch" ? slotAt(e) : null;
});
addEventListener("pointerover", (e) => {
  const slot = slotAt(e);
  if (!from || !slot || slot.closest("tr") !== from.closest("tr")) return;
  to = slot;
  mark();
});
addEventListener("pointerup", () => {
  const list = from && from !== to ? span() : [];
  from = to = null;
  if (list.length < 2) return mark();
  const address = new URL(list[0].href);
  if (address.searchParams.has("from")) address.searchParams.set("until", list.at(-1).dataset.until);
  address.searchParams.set("cores", Math.min(...list.map((a) => a.dataset.cores)));
  address.searchParams.set("duration_minutes", list.reduce((sum, a) => sum + Number(a.dataset.minutes), 0));
  location.assign(address);
});
addEventListener("dragstart", (e) => { if (slotAt(e)) e.preventDefault(); });
