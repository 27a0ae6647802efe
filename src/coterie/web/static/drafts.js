// What is typed into a form outlives a refresh and the way back: it is kept in this tab until it is sent.

// The fields of a form that people fill in.
function fieldsOf(form) {
  return [...form.elements].filter((field) => ["INPUT", "SELECT", "TEXTAREA"].includes(field.tagName) && field.type !== "file");
}

// Keep what is typed into the form under a name. `restore` fills it in again, `forget` ends it.
export function keepTyped(form, name) {
  const ticked = (field) => field.type === "radio" || field.type === "checkbox";
  const keep = () => {
    try {
      sessionStorage.setItem(name, JSON.stringify(fieldsOf(form).map((field) => (ticked(field) ? field.checked : field.value))));
    } catch { /* private windows may keep nothing */ }
  };
  const kept = () => {
    try {
      return JSON.parse(sessionStorage.getItem(name) ?? "null");
    } catch {
      return null;
    }
  };
  const restore = (values = kept()) => {
    const fields = fieldsOf(form);
    if (values?.length !== fields.length) return;
    fields.forEach((field, i) => { field[ticked(field) ? "checked" : "value"] = values[i]; });
    keep();
  };
  const forget = () => {
    try {
      sessionStorage.removeItem(name);
    } catch { /* as above */ }
  };
  form.addEventListener("input", keep);
  form.addEventListener("change", keep);
  return { kept, restore, forget };
}
