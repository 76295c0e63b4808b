// Light or dark: what the system says, until somebody chooses. Runs before the page is shown.

const KEY = "entail-theme";

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

const system = matchMedia("(prefers-color-scheme: dark)");

function apply(): void {
  const theme = stored() ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
}

// A page of the book has a heading of its own.
if (window.top !== window) document.documentElement.dataset.embedded = "";
apply();
system.addEventListener("change", apply);
document.addEventListener("DOMContentLoaded", () => {
  apply();
  document.getElementById("theme")?.addEventListener("click", () => {
    try {
      localStorage.setItem(KEY, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    } catch {
      // Without storage the choice is the system's.
    }
    apply();
  });
});
