/** Creates a key. */
import { useRef } from "preact/hooks";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { useForm } from "../../form.ts";
import { Choice, ofNumber, TextField } from "../../parts/fields.tsx";
import { TaskForm } from "../../parts/task-form.tsx";
import { useTask } from "../../task.ts";
import { createNewKey, findKind, usages } from "./keys.ts";

export function CreateForm({ onCreated }: { readonly onCreated: (key: KeyRecord) => void }) {
  const form = useForm({ name: "", alias: "", labels: "", rotationDays: "", usage: "SIGN", algorithm: "" });
  const { algorithms, meaning } = findKind(form.values.usage);
  // A new usage may not have the chosen algorithm.
  const algorithm = algorithms.find((known) => known === form.values.algorithm) ?? algorithms[0] ?? "";
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
        onSubmit={() =>
          void task.run((caller) => createNewKey(caller, { ...form.values, algorithm }), finish)
        }
      >
        <div class="fields">
          <TextField label="Name" {...form.bind("name")} />
          <TextField label="Alias (optional)" {...form.bind("alias")} />
          <Choice label="Usage" options={usages} {...form.bind("usage")} />
          <Choice label="Algorithm" options={algorithms} {...form.bind("algorithm")} value={algorithm} />
          <TextField label="Labels (team=payments, stage=live)" {...form.bind("labels")} />
          <TextField
            attributes={{ ...ofNumber, min: 1 }}
            label="Rotate every … days (empty: never)"
            {...form.bind("rotationDays")}
          />
        </div>
        <p class="hint">{meaning}</p>
      </TaskForm>
    </details>
  );
}
