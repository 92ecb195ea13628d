/** The chosen entry: all its fields, and whether its hash follows from them. */
import { useEffect, useState } from "preact/hooks";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { formatAddress } from "../../address.ts";
import type { CheckedEntry } from "../../audit.ts";
import { followCall } from "../../calls.ts";
import { reportBrowser } from "../../checks.ts";
import { Badge } from "../../parts/record-table.tsx";
import { checks, code, facts, hint } from "../../parts/show.tsx";
import { useTask } from "../../task.ts";
import { formatSecond } from "../../time.ts";
import { useAddress } from "../../use-address.ts";
import { formatNumber } from "../../values.ts";
import { Panel } from "../panel.tsx";
import { checkLink, splitDetails } from "./entries.ts";
import { linkKey } from "./entry-table.tsx";

export function EntryPanel({ entry }: { readonly entry: AuditEntry }) {
  const listed = useAddress().query.get("key") ?? "";
  const [link, setLink] = useState<CheckedEntry["link"]>();
  const checking = useTask();
  useEffect(() => void checking.run(() => check(entry), setLink), []);
  const { sequence, operation, outcome, keyId, user, clientAddress, requestId, details, entryHash } = entry;
  return (
    <Panel
      title={`Entry ${formatNumber(sequence)}`}
      hint={operation}
      back="All entries"
      href={formatAddress("keys/audit", { key: listed })}
      loading={checking}
    >
      {facts({
        Outcome: <Badge state={outcome} />,
        "Time (UTC)": formatSecond(entry.timestamp),
        ...(keyId !== "" && {
          Key: [linkKey(keyId), " · ", <a href={formatAddress("keys/audit", { key: keyId })}>Its entries</a>],
        }),
        Caller: user,
        "Client address": clientAddress || "none: the server itself",
        "Request ID": requestId === "" ? "none" : code(requestId),
        ...Object.fromEntries(splitDetails(details).map(([name, value]) => [name, linkKey(value)])),
        Hash: code(entryHash),
      })}
      {link === "anchor" &&
        hint("The entry before it is not visible to you, so your browser cannot check the hash.")}
      {(link === "holds" || link === "broken") &&
        checks(
          reportBrowser(
            `the hash, over these fields and the hash of entry ${sequence - 1}`,
            link === "holds",
          ),
        )}
    </Panel>
  );
}

async function check(entry: AuditEntry): Promise<CheckedEntry["link"]> {
  const ended = new AbortController();
  const request = { afterSequence: Math.max(0, entry.sequence - 2) };
  try {
    return await checkLink(entry, followCall(KmsService.method.watchAuditLog, request, ended.signal));
  } finally {
    ended.abort();
  }
}
