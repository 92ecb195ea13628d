/** Leads the reader from a diagram to a story step. */

/**
 * Scrolls a step into view and focuses its button.
 *
 * @param title the step's heading
 */
export function showStep(title: string): void {
  for (const step of document.querySelectorAll("li.step")) {
    if (step.querySelector("h2")?.textContent !== title) continue;
    step.scrollIntoView({ block: "center" });
    step.querySelector<HTMLElement>(".act button")?.focus({ preventScroll: true });
    return;
  }
}
