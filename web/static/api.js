// The index of the API: an operation opens when its link is followed, and the search leaves
// those whose words, method or path contain what is typed.
function openTarget() {
  const operation = document.getElementById(location.hash.slice(1));
  if (!operation?.matches("details.operation")) return;
  operation.open = true; // which closes the one before
  operation.scrollIntoView();
}

addEventListener("hashchange", openTarget);
openTarget();

const search = document.getElementById("api-search");
search.parentElement.hidden = false;
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  let found = false;
  for (const group of document.querySelectorAll(".api-index > [data-api-group]")) {
    for (const item of group.querySelectorAll("li")) {
      const text = (item.dataset.text + " " + item.textContent).toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    group.hidden = !group.querySelector("li:not([hidden])");
    found ||= !group.hidden;
  }
  document.querySelector("[data-api-none]").hidden = found;
});
