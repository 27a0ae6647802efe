// Times in the reader's own zone.
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const brief = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

// 5 minutes ago, 3 hours ago; a day from tomorrow on.
function sayAgo(time) {
  const minutes = Math.round((time - Date.now()) / 60000);
  if (minutes < -24 * 60) return day.format(time);
  return minutes > -60 ? ago.format(Math.min(0, minutes), "minute") : ago.format(Math.round(minutes / 60), "hour");
}

// How a time is written: `data-day`, `data-whole`, `data-ago`, `data-exact` (with seconds); today's without the day.
function words(time, how, today) {
  if ("day" in how) return day.format(time);
  if ("ago" in how) return sayAgo(time);
  if ("whole" in how) return full.format(time);
  const same = time.toDateString() === today;
  if ("exact" in how) return (same ? seconds : exact).format(time);
  return (same ? brief : full).format(time);
}

export function localTimes(root = document) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    element.textContent = words(time, element.dataset, today);
    element.title = exact.format(time);
  }
}

localTimes();
