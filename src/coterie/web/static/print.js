// The page that is printed: today's date by the browser, numbers by its language, and a button.
import { localNumbers } from "./numbers.js";
import { localTimes } from "./times.js";

document.getElementById("printed").dateTime = new Date().toISOString();
document.getElementById("printed").dataset.whole = "";
localTimes();
localNumbers();
document.getElementById("print-now").addEventListener("click", () => window.print());
