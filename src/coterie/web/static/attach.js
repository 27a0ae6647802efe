// Files that go with a result: sent once the result is saved, which stays saved whatever becomes of them.
import { sendTable } from "./api.js";

export async function attach(base, measurement) {
  const field = document.getElementById("attachment");
  const place = document.getElementById("attachment-problem");
  if (!field) return;
  const files = [...field.files];
  field.value = "";
  place.hidden = true;
  const problems = [];
  for (const file of files) {
    const query = new URLSearchParams({ measurement, name: file.name.slice(-100) });
    try {
      await sendTable(`${base}/attachments?${query}`, file);
    } catch (error) {
      problems.push(`The result is saved, but ${file.name} was not attached: ${error.message}`);
    }
  }
  // After the last result the form is gone: then it is said where warnings stand.
  const seen = place.closest("section").hidden ? document.getElementById("doubt") : place;
  if (!problems.length || !seen) return;
  seen.textContent = problems.join(" ");
  seen.hidden = false;
}
