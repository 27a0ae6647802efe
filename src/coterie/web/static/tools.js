// What one does with a campaign beside measuring: here, the QR code of its address.
const button = document.getElementById("show-qr");
const place = document.getElementById("qr");
const id = document.getElementById("campaign").dataset.id;

button.addEventListener("click", async () => {
  place.hidden = !place.hidden;
  button.setAttribute("aria-expanded", String(!place.hidden));
  if (place.hidden) return;
  try {
    const answer = await fetch(`/campaigns/${id}/qr`, { credentials: "same-origin", redirect: "error", headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.status);
    place.innerHTML = await answer.text();
  } catch {
    place.innerHTML = '<p class="problem" role="alert">The server cannot be reached, or you are logged out. Try again.</p>';
  }
});
