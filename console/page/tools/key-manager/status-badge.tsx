/** The status of a key: a word, and a colour that says the same. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";

export function StatusBadge({ status, damaged }: Pick<KeyRecord, "status" | "damaged">) {
  const shown = damaged ? "DAMAGED" : status;
  return (
    <span class="badge" data-status={shown}>
      {shown}
    </span>
  );
}
