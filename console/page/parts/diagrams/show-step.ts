/** Leads the reader to a story step. */

/**
 * Scrolls a step into view and focuses its button, or its heading if that is all it shows.
 *
 * @param title the step's heading
 */
export function showStep(title: string): void {
  const step = scrollToStep(title);
  step?.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  step?.querySelector<HTMLElement>(".act button")?.focus({ preventScroll: true });
}

/** Scrolls a step into view, and leaves the focus where it is. */
export function scrollToStep(title: string): Element | undefined {
  const steps = [...document.querySelectorAll("li.step")];
  const step = steps.find((one) => one.querySelector("h2")?.textContent === title);
  step?.scrollIntoView({ block: "nearest" });
  return step;
}
