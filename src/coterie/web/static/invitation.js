// An invitation's link has its secret behind the #, which browsers send to nobody: it goes into the login form.
const field = document.getElementById("token");

function take() {
  const secret = /^#(invite-[\w-]+)$/.exec(location.hash)?.[1];
  if (!secret) return;
  field.value = secret;
  field.autocomplete = "off";
  document.getElementById("invited").hidden = false;
  document.getElementById("typed").hidden = true;
  history.replaceState(null, "", location.pathname + location.search); // not in the history of the browser
  document.querySelector("form button").focus();
}

window.addEventListener("hashchange", take);
take();
