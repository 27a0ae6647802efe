// Times in the reader's own zone.
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const brief = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function localTimes(root = document) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    element.textContent = "day" in element.dataset ? day.format(time) : "whole" in element.dataset ? full.format(time) : time.toDateString() === today ? brief.format(time) : full.format(time);
    element.title = full.format(time);
  }
}

localTimes();
