// Files and the note that go with a result: sent once it is saved, and it stays saved whatever becomes of them.
import { sendTable } from "./api.js";

const MEBI = 2 ** 20;

function whyNot(error, file) {
  if (!file.size) return "it is empty.";
  if (error.code === "wrong_type") return "it is no photo, PDF, text, Excel file or ZIP.";
  return error.message;
}

export async function attach(base, measurement) {
  const field = document.getElementById("attachment");
  const note = document.getElementById("note");
  const place = document.getElementById("attachment-problem");
  if (!field) return;
  const most = Number(field.dataset.most);
  const files = [...field.files];
  if (note.value.trim()) files.push(new File([note.value], "note.txt"));
  [field.value, note.value, place.hidden] = ["", "", true];
  const problems = [];
  const say = (file, why) => problems.push(`The result is saved, but ${file.name} was not attached: ${why}`);
  for (const file of files) {
    const query = new URLSearchParams({ measurement, name: file.name.slice(-100) });
    if (file.size > most) {
      say(file, `it has ${(file.size / MEBI).toFixed(1)} MB, and a file may have ${most / MEBI}.`);
      continue;
    }
    try {
      await sendTable(`${base}/attachments?${query}`, file);
    } catch (error) {
      say(file, whyNot(error, file));
    }
  }
  // After the last result the form is gone: then it is said where warnings stand.
  const seen = place.closest("section").hidden ? document.getElementById("doubt") : place;
  if (!problems.length || !seen) return;
  seen.textContent = problems.join(" ");
  seen.hidden = false;
}
