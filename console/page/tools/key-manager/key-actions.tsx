/** The actions that a key's state allows, each with its effect. */
import { useRef, useState } from "preact/hooks";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { type Task, useTask } from "../../task.ts";
import { type KeyAction, listActions } from "./actions.ts";

interface KeyActionsProps {
  readonly record: KeyRecord;
  readonly onDone: () => void;
}

export function KeyActions({ record, onDone }: KeyActionsProps) {
  const task = useTask();
  const [said, setSaid] = useState("");
  const outcome = useRef<HTMLParagraphElement>(null);
  const actions = listActions(record);
  const finish = (sentence: string): void => {
    setSaid(sentence);
    // The button may have been removed.
    outcome.current?.focus();
  };
  const start = (action: KeyAction): void => {
    setSaid("");
    // Even after a refusal: another program may have changed the key.
    void task.run(action.run, finish).then(onDone);
  };
  return (
    <>
      <h3>Actions</h3>
      {record.damaged && <p>The stored key was modified outside the service. Restore a backup.</p>}
      {actions.length === 0 && !record.damaged && <p>A destroyed key cannot be used or changed.</p>}
      <ul class="rows actions">
        {actions.map((action) => (
          <ActionRow key={action.label} action={action} task={task} onStart={() => start(action)} />
        ))}
      </ul>
      <p class="outcome" role="status" ref={outcome} tabIndex={-1}>
        {said}
      </p>
      {task.failure && <FailureNote failure={task.failure} />}
    </>
  );
}

interface ActionRowProps {
  readonly action: KeyAction;
  readonly task: Task;
  readonly onStart: () => void;
}

function ActionRow({ action: { label, effect, warning, question }, task, onStart }: ActionRowProps) {
  const consequences = (
    <p>
      {effect} {warning && <strong class="bad">{warning}</strong>}
    </p>
  );
  if (question === undefined)
    return (
      <li>
        <ActionButton task={task} onClick={onStart}>
          {label}
        </ActionButton>
        {consequences}
      </li>
    );
  return (
    <li>
      <details class="final">
        <summary>{label}</summary>
        {consequences}
        <p>{question}</p>
        <ActionButton task={task} onClick={onStart}>
          Destroy it permanently
        </ActionButton>
      </details>
    </li>
  );
}
