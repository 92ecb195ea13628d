/** Creates a key. */
import { useRef } from "preact/hooks";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { useForm } from "../../form.ts";
import { Choice, ofNumber, TextField } from "../../parts/fields.tsx";
import { TaskForm } from "../../parts/task-form.tsx";
import { useTask } from "../../task.ts";
import { createNewKey, findKind, usages } from "./keys.ts";

const emptyKey = { name: "", alias: "", labels: "", rotationDays: "" };

/** A usage and its default algorithm. */
function kindOf(usage: string): { usage: string; algorithm: string } {
  return { usage, algorithm: findKind(usage).algorithms[0] ?? "" };
}

export function CreateForm({ onCreated }: { readonly onCreated: (key: KeyRecord) => void }) {
  const form = useForm({ ...emptyKey, ...kindOf("SIGN") });
  const task = useTask();
  const folded = useRef<HTMLDetailsElement>(null);
  const finish = (key: KeyRecord): void => {
    if (folded.current) folded.current.open = false;
    form.bind("name").onChange("");
    onCreated(key);
  };
  return (
    <details class="create" ref={folded}>
      <summary>Create a key</summary>
      <p class="text">
        A name is yours permanently and stays the same when the key is rotated. Programs use it as{" "}
        <code>name/…</code>. The server stores the secret key sealed, and no call returns it.
      </p>
      <TaskForm
        task={task}
        action="Create"
        onSubmit={() => void task.run((caller) => createNewKey(caller, form.values), finish)}
      >
        <div class="fields">
          <TextField label="Name" {...form.bind("name")} />
          <TextField label="Alias (optional)" {...form.bind("alias")} />
          <Choice
            label="Usage of the new key"
            options={usages}
            value={form.values.usage}
            onChange={(usage) => {
              const kind = kindOf(usage);
              form.bind("usage").onChange(kind.usage);
              form.bind("algorithm").onChange(kind.algorithm);
            }}
          />
          <Choice
            label="Algorithm for the new key"
            options={findKind(form.values.usage).algorithms}
            {...form.bind("algorithm")}
          />
          <TextField label="Labels (team=payments, stage=live)" {...form.bind("labels")} />
          <TextField
            attributes={ofNumber}
            label="Rotate every … days (empty: never)"
            {...form.bind("rotationDays")}
          />
        </div>
      </TaskForm>
    </details>
  );
}
