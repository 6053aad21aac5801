// Ceremonies of passkeys: a form with data-passkey has the browser create a passkey or sign
// in with one, and is sent with the result. It is hidden where browsers have none.

// optionsOf reads what the server prepared: in the form, or, because a page to sign in can
// stay open for long, when it is needed.
async function optionsOf(form) {
  const { options, ceremony } = form.elements;
  if (options) return JSON.parse(options.value);
  const response = await fetch(form.action + "/ceremony", { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(response.status);
  const prepared = await response.json();
  ceremony.value = prepared.ceremony;
  return prepared.options;
}

async function credentialOf(form) {
  const options = await optionsOf(form);
  if (form.dataset.passkey === "create") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
}

function textOf(form, error) {
  switch (error.name) {
    case "NotAllowedError": return form.dataset.tCanceled;
    case "InvalidStateError": return form.dataset.tExists;
    case "SecurityError": return form.dataset.tOrigin;
    default: return form.dataset.tFailed;
  }
}

function say(form, text) {
  const status = form.querySelector("p[role=alert]");
  status.textContent = text;
  status.hidden = !text;
}

async function run(event) {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button[type=submit]");
  button.disabled = true;
  say(form, "");
  try {
    const credential = await credentialOf(form);
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    say(form, textOf(form, error));
    button.disabled = false;
  }
}

const offered = globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON;
for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (offered) {
    form.hidden = false;
    form.addEventListener("submit", run);
  } else if (form.dataset.passkey === "create") {
    say(form, form.dataset.tUnsupported);
    form.querySelector("button[type=submit]").disabled = true;
  }
}
