/** A form that starts a task and shows why it failed. */
import type { ComponentChildren } from "preact";
import { nameFields } from "../failure.ts";
import type { Task } from "../task.ts";
import { FailureNote } from "./failure-note.tsx";

interface TaskFormProps {
  readonly task: Task;
  /** The button's label. */
  readonly action: string;
  readonly onSubmit: () => void;
  /** The labels of fields whose API names are other words. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The form's fields. */
  readonly children: ComponentChildren;
}

export function TaskForm({ task, action, onSubmit, labels = {}, children }: TaskFormProps) {
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
      {task.failure && <FailureNote failure={nameFields(task.failure, labels)} />}
    </form>
  );
}
