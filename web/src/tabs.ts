// Tabs as the ARIA practices have them: arrows, Home and End move between them, and one is in the tab order.

import { byId } from "./dom.ts";

/** Makes the buttons of a tab list switch its panels. Returns a function that shows a tab by its name. */
export function tabs(id: string, shown: (name: string) => void = () => {}): (name: string) => void {
  const buttons = [...byId(id).querySelectorAll<HTMLButtonElement>("[role=tab]")];
  const nameOf = (button: HTMLButtonElement) => button.id.replace("tab-", "");
  const select = (button: HTMLButtonElement, focus: boolean) => {
    for (const other of buttons) {
      const isIt = other === button;
      other.setAttribute("aria-selected", String(isIt));
      other.tabIndex = isIt ? 0 : -1;
      byId(other.getAttribute("aria-controls") ?? "").hidden = !isIt;
    }
    if (focus) button.focus();
    shown(nameOf(button));
  };
  for (const [i, button] of buttons.entries()) {
    button.addEventListener("click", () => select(button, false));
    button.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: buttons.length - 1 }[event.key];
      const target = to === undefined ? undefined : buttons[(to + buttons.length) % buttons.length];
      if (!target) return;
      event.preventDefault();
      select(target, true);
    });
  }
  return (name) => {
    const button = buttons.find((b) => nameOf(b) === name);
    if (button) select(button, false);
  };
}
