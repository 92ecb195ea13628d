/** Moves the reader from a diagram to a step of the story. */

/** Brings a step into view, and moves the focus to its button. @param title the heading of the step */
export function showStep(title: string): void {
  for (const step of document.querySelectorAll("li.step")) {
    if (step.querySelector("h2")?.textContent !== title) continue;
    step.scrollIntoView({ block: "center" });
    step.querySelector<HTMLElement>(".act button")?.focus({ preventScroll: true });
    return;
  }
}
