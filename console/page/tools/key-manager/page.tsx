/** The key manager: all keys in a table, and the selected one below with its actions. */

import { useEffect, useState } from "preact/hooks";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { formatAddress } from "../../address.ts";
import { followCall } from "../../calls.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { TextField } from "../../parts/fields.tsx";
import { Lead } from "../../parts/lead.tsx";
import { saveFile } from "../../save-file.ts";
import { useTask } from "../../task.ts";
import { formatNumber } from "../../values.ts";
import type { List } from "../lists.ts";
import { useChosen } from "../panel.tsx";
import { CreateForm } from "./create-form.tsx";
import { KeyPanel } from "./key-panel.tsx";
import { KeyTable } from "./key-table.tsx";
import { groupKeys, keyPageSize, loadKeys, searchKeys } from "./keys.ts";

export function Page() {
  const keyId = useChosen("key");
  const [search, setSearch] = useState("");
  const [list, setList] = useState<List<KeyRecord>>();
  const loading = useTask();
  const saving = useTask();
  const load = (count: number, known?: List<KeyRecord>): Promise<void> =>
    loading.run((caller) => loadKeys(caller, count, known), setList);
  const reload = (): void => void load(Math.max(keyPageSize, list?.items.length ?? 0));
  useEffect(reload, []);

  const found = searchKeys(list?.items ?? [], search);
  const isEmpty = list?.totalSize === 0;
  return (
    <div class="tool">
      <Lead title="Key manager">
        Your keys and their life cycle. A name stays the same when its key is rotated. The{" "}
        <a href="#/keys">managed keys story</a> explains a key's life cycle, and the{" "}
        <a href="#/keys/audit">audit log</a> records every use.
      </Lead>
      <CreateForm
        onCreated={(key) => {
          location.hash = formatAddress("keys/manage", { key: key.keyId });
          reload();
        }}
      />
      <div class="fields">
        <TextField label="Search name, ID, label, algorithm or status" value={search} onChange={setSearch} />
      </div>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {list && !isEmpty && <p role="status">{countKeys(found.length, list)}</p>}
      {isEmpty && (
        <p class="note">
          There are no keys yet. Open <strong>Create a key</strong> above, enter a name, and press{" "}
          <strong>Create</strong>.
        </p>
      )}
      {found.length > 0 && <KeyTable rows={groupKeys(found)} chosenId={keyId} />}
      {list && list.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => void load(list.items.length + keyPageSize, list)}>
          Load more keys
        </ActionButton>
      )}
      {list && !isEmpty && (
        <p class="act">
          <ActionButton
            task={saving}
            onClick={() => void saving.run(loadBill, (bill) => saveFile("keys.cdx.json", bill))}
          >
            Save a bill of materials
          </ActionButton>
          <span class="hint">All your keys and their algorithms, in CycloneDX 1.7</span>
        </p>
      )}
      {saving.failure && <FailureNote failure={saving.failure} />}
      {keyId !== "" && <KeyPanel key={keyId} keyId={keyId} onChange={reload} />}
    </div>
  );
}

/** Describes the keys for inventories of cryptography. */
async function loadBill(): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const { cbom } of followCall(KmsService.method.getCbom, {}))
    if (cbom) parts.push(Uint8Array.from(cbom.data));
  return new Blob(parts);
}

function countKeys(shown: number, { items, totalSize }: List<KeyRecord>): string {
  const covered =
    items.length < totalSize ? ` The search covers the first ${formatNumber(items.length)}.` : "";
  return `${formatNumber(shown)} of ${formatNumber(totalSize)} keys shown.${covered} All versions of a name share a row.`;
}
