// Asking back before a value far from the earlier ones is saved.

// Whether the person says that the value is right; the dialog is in the page.
export function saysYes(question) {
  const dialog = document.getElementById("far-off");
  document.getElementById("far-off-question").textContent = question;
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}
