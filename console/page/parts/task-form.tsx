/** A form that starts a task and shows why it failed. */
import type { ComponentChildren } from "preact";
import type { Task } from "../task.ts";
import { FailureNote } from "./failure-note.tsx";

interface TaskFormProps {
  readonly task: Task;
  /** The button's label. */
  readonly action: string;
  readonly onSubmit: () => void;
  /** The form's fields. */
  readonly children: ComponentChildren;
}

export function TaskForm({ task, action, onSubmit, children }: TaskFormProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!task.isRunning) onSubmit();
      }}
    >
      {children}
      <button type="submit" class="primary" aria-disabled={task.isRunning}>
        {action}
      </button>
      {task.failure && <FailureNote failure={task.failure} />}
    </form>
  );
}
