/** The key manager: all keys in a table, and the selected one below with its actions. */
import { useEffect, useState } from "preact/hooks";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { formatAddress } from "../../address.ts";
import { followCall } from "../../calls.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { saveFile } from "../../save-file.ts";
import { useTask } from "../../task.ts";
import { useAddress } from "../../use-address.ts";
import { formatNumber } from "../../values.ts";
import { CreateForm } from "./create-form.tsx";
import { KeyFilterFields } from "./key-filters.tsx";
import { KeyPanel } from "./key-panel.tsx";
import { KeyTable } from "./key-table.tsx";
import { type KeyFilters, type KeyList, loadKeys, pageSize, searchKeys } from "./keys.ts";

const allKeys: KeyFilters = { status: "", algorithm: "", usage: "", label: "" };

export function Page() {
  const keyId = useAddress().query.get("key") ?? "";
  const [filters, setFilters] = useState(allKeys);
  const [search, setSearch] = useState("");
  const [list, setList] = useState<KeyList>();
  const loading = useTask();
  const load = (count: number, known?: KeyList): Promise<void> =>
    loading.run((caller) => loadKeys(caller, filters, count, known), setList);
  /** Counts key changes; each one reloads the table. */
  const [changes, setChanges] = useState(0);
  const reload = (): void => setChanges((before) => before + 1);
  useEffect(() => void load(pageSize), [filters]);
  useEffect(() => {
    if (changes > 0) void load(Math.max(pageSize, list?.keys.length ?? 0));
  }, [changes]);

  const found = searchKeys(list?.keys ?? [], search);
  const isEmpty = list?.totalSize === 0 && Object.values(filters).every((value) => value === "");
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Key manager</h1>
        <p>
          Your keys and their life cycle. A name stays the same when its key is rotated. The{" "}
          <a href="#/keys">managed keys story</a> explains a key's life cycle, and the{" "}
          <a href="#/keys/audit">audit log</a> records every use.
        </p>
      </header>
      <CreateForm
        onCreated={(key) => {
          location.hash = formatAddress("keys/manage", { key: key.keyId });
          reload();
        }}
      />
      <KeyFilterFields filters={filters} onFilter={setFilters} search={search} onSearch={setSearch} />
      {loading.failure && <FailureNote failure={loading.failure} />}
      {list && !isEmpty && <p role="status">{countKeys(found.length, list)}</p>}
      {isEmpty && (
        <p class="note">
          There are no keys yet. Open <strong>Create a key</strong> above, enter a name, and press{" "}
          <strong>Create</strong>.
        </p>
      )}
      {found.length > 0 && <KeyTable keys={found} chosenId={keyId} />}
      {list && list.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => void load(list.keys.length + pageSize, list)}>
          Load more keys
        </ActionButton>
      )}
      {list && !isEmpty && <BillOfMaterials />}
      {keyId !== "" && <KeyPanel key={keyId} keyId={keyId} onChange={reload} />}
    </div>
  );
}

/** Saves a description of the keys for inventories of cryptography. */
function BillOfMaterials() {
  const task = useTask();
  const save = (): void =>
    void task.run(
      async () => {
        const parts: Uint8Array<ArrayBuffer>[] = [];
        for await (const { cbom } of followCall(KmsService.method.getCbom, {}))
          if (cbom) parts.push(Uint8Array.from(cbom.data));
        return new Blob(parts);
      },
      (document) => saveFile("keys.cdx.json", document),
    );
  return (
    <p class="act">
      <ActionButton task={task} onClick={save}>
        Save a bill of materials
      </ActionButton>
      <span class="hint">All your keys and their algorithms, in CycloneDX 1.7</span>
      {task.failure && <FailureNote failure={task.failure} />}
    </p>
  );
}

function countKeys(shown: number, { keys, totalSize }: KeyList): string {
  const loaded = formatNumber(keys.length);
  const total = formatNumber(totalSize);
  if (keys.length < totalSize)
    return `${formatNumber(shown)} keys shown. The search covers the first ${loaded} of ${total}; load more below.`;
  return `${formatNumber(shown)} of ${total} ${totalSize === 1 ? "key" : "keys"} shown.`;
}
