// Numbers as people type them, with a decimal point or comma, and as the browser's language writes them.

const format = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 15, useGrouping: false });

// The decimal mark of the browser's language.
export const MARK = format.formatToParts(1.5).find((part) => part.type === "decimal")?.value === "," ? "," : ".";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const THOUSANDS = { ",": /^[+-]?[1-9]\d{0,2}(,\d{3})+$/, ".": /^[+-]?[1-9]\d{0,2}(\.\d{3})+$/ };

function finite(plain) {
  return NUMBER.test(plain) && Number.isFinite(Number(plain)) ? Number(plain) : null;
}

// What a text means: its value, null if it is no number; and the other value that it may have, if it is not clear.
function understand(text) {
  const plain = text.trim().replace("\u2212", "-").replace(/(\d)[\u00a0\u202f'](?=\d{3}(\D|$))/g, "$1");
  const marks = [...plain].filter((mark) => mark === "," || mark === ".");
  if (!marks.length) return { value: finite(plain) };
  const last = marks[marks.length - 1];
  if (new Set(marks).size === 2) {
    // 1.234,5: the last mark is the decimal one, if all before it stand between thousands.
    const [whole, rest] = [plain.slice(0, plain.lastIndexOf(last)), plain.slice(plain.lastIndexOf(last) + 1)];
    const other = last === "," ? "." : ",";
    return { value: THOUSANDS[other].test(whole) ? finite(`${whole.replaceAll(other, "")}.${rest}`) : null };
  }
  const thousands = THOUSANDS[last].test(plain) ? finite(plain.replaceAll(last, "")) : null;
  if (marks.length > 1) return { value: thousands };
  const decimal = finite(plain.replace(",", "."));
  // 1,234 in a language with decimal points, 1.234 in one with decimal commas: either of two.
  if (thousands !== null && last !== MARK) return { value: null, either: [decimal, thousands] };
  return { value: decimal };
}

// One number; null if it is none, or not clear.
export function toNumber(text) {
  return understand(text).value;
}

// Why a text is not taken for a number, as the beginning of a sentence.
export function whyNot(text) {
  const { either } = understand(text);
  const shown = `“${text.trim()}”`;
  if (!either) return `${shown} is not a number`;
  const [decimal, thousands] = either.map(localNumber);
  return `${shown} may be ${decimal} or ${thousands}: type one of these`;
}

// What was understood, where that is worth a word: 6,8 = 6.8.
export function understood(text) {
  const { value } = understand(text);
  return value !== null && /[,\u00a0\u202f']/.test(text) ? `${text.trim()} = ${value}` : "";
}

// Several numbers with blanks or semicolons between them, or commas, if these are no decimal marks.
export function toNumbers(text, count) {
  const whole = text.trim();
  let parts = whole.split(/[\s;]+/).filter(Boolean);
  const unclear = parts.length === 1 && /^[^,.]*\d,\d[^,.]*$/.test(whole); // 0,5: one number, or two?
  if (parts.length !== count && !(unclear && MARK === ",")) {
    if (unclear && count === 2) return [{ text: whole, value: null, problem: `“${whole}” may be one number or two: put a blank or a semicolon between two, or write ${whole.replace(",", ".")}` }];
    if (!unclear) parts = whole.split(/[\s;,]+/).filter(Boolean);
  }
  return parts.map((part) => ({ text: part, value: toNumber(part) }));
}

// A number as the browser's language writes it, with all of its digits.
export function localNumber(value) {
  return value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6) ? String(value) : format.format(value);
}

export function listNumbers(values) {
  return values.map(localNumber).join(MARK === "," ? "; " : ", ");
}

// A minus sign before a number, not a hyphen.
const minus = (text) => text.replace(/^-/, "\u2212");

// Numbers that the server wrote, <data value>, as the browser's language writes them.
export function localNumbers(root = document) {
  for (const element of root.querySelectorAll("data[value]")) {
    const value = Number(element.value);
    const decimals = Number(element.dataset.decimals ?? NaN);
    if (decimals >= 0) {
      element.textContent = minus(new Intl.NumberFormat(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative" }).format(value));
      continue;
    }
    const digits = Number(element.dataset.digits);
    if (!Number.isFinite(value)) continue;
    const large = Math.abs(value) >= 10 ** digits;
    const tiny = value !== 0 && Math.abs(value) < 1e-4;
    element.textContent = minus(tiny
      ? value.toPrecision(digits).replace(".", MARK)
      : new Intl.NumberFormat(undefined, large ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits }).format(value));
  }
}

// Below the fields, what was understood of them as they are typed.
export function explainFields(fields, place) {
  const say = () => {
    const notes = fields().filter((field) => field.tagName === "INPUT").map((field) => understood(field.value)).filter(Boolean);
    place.textContent = notes.join(" · ");
    place.hidden = !notes.length;
  };
  place.closest("form").addEventListener("input", say);
  return say;
}
