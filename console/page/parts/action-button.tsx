/** A task's button; while the task runs, it does nothing. */
import type { ComponentChildren } from "preact";
import type { Task } from "../task.ts";

interface ActionButtonProps {
  readonly task: Task;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
}

export function ActionButton({ task, onClick, children }: ActionButtonProps) {
  return (
    <button
      type="button"
      // Disabling the button would lose the focus.
      aria-disabled={task.isRunning}
      onClick={() => {
        if (!task.isRunning) onClick();
      }}
    >
      {children}
    </button>
  );
}
