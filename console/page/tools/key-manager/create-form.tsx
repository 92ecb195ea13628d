/** Creates a key. */
import { useRef } from "preact/hooks";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { useForm } from "../../form.ts";
import { Choice, ofNumber, TextField } from "../../parts/fields.tsx";
import { TaskForm } from "../../parts/task-form.tsx";
import { useTask } from "../../task.ts";
import { algorithms, createNewKey } from "./keys.ts";

export function CreateForm({ onCreated }: { readonly onCreated: (key: KeyRecord) => void }) {
  const form = useForm({ name: "", alias: "", algorithm: "ML-DSA-65", labels: "", rotationDays: "" });
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
        A name is yours permanently and stays the same when the key is rotated. Programs sign with{" "}
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
          <Choice label="Algorithm for the new key" options={algorithms} {...form.bind("algorithm")} />
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
