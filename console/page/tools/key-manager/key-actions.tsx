/** The actions that a key's state allows, each with its effect. */
import { useEffect, useRef, useState } from "preact/hooks";
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
      <ul class="actions">
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

function ActionRow({ action: { label, effect, question }, task, onStart }: ActionRowProps) {
  const [isAsked, setAsked] = useState(false);
  return (
    <li data-final={question !== undefined}>
      <ActionButton task={task} onClick={question === undefined ? onStart : () => setAsked(true)}>
        {label}
      </ActionButton>
      <span>{effect}</span>
      {isAsked && (
        <Confirmation
          question={question ?? ""}
          onAnswer={(isConfirmed) => {
            setAsked(false);
            if (isConfirmed) onStart();
          }}
        />
      )}
    </li>
  );
}

interface ConfirmationProps {
  readonly question: string;
  readonly onAnswer: (isConfirmed: boolean) => void;
}

function Confirmation({ question, onAnswer }: ConfirmationProps) {
  const cancel = useRef<HTMLButtonElement>(null);
  useEffect(() => cancel.current?.focus(), []);
  return (
    <fieldset class="note bad" aria-label={question}>
      <p>{question}</p>
      <button type="button" ref={cancel} onClick={() => onAnswer(false)}>
        Cancel
      </button>{" "}
      <button type="button" onClick={() => onAnswer(true)}>
        Destroy it permanently
      </button>
    </fieldset>
  );
}
