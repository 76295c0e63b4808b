// Begins to load the module before the page itself is read: both take about as long.

declare global {
  interface Window {
    /** The worker of the page, until its client takes it. */
    early?: Worker;
  }
}

window.early = new Worker("worker.js");

export {};
