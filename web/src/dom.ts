// Elements made without markup, so that no text can become an element.

type Child = Node | string | null | undefined | false;
type Props = { class?: string; on?: Record<string, (event: Event) => void>; [attribute: string]: unknown };

/** Makes an element. Attributes with the value `false` or `undefined` are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [type, listener] of Object.entries(value as Props["on"] & object)) {
        element.addEventListener(type, listener);
      }
    } else if (value !== undefined && value !== false && value !== null) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** The element of the page with an id. */
export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** "1 error", "2 errors". */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : nouns}`;
}
