/** The selected key: details, actions, public key, versions and grants. */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatAddress } from "../../address.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Badge } from "../../parts/record-table.tsx";
import { facts } from "../../parts/show.tsx";
import { useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { shortenId } from "../key-id.ts";
import { KeyActions } from "./key-actions.tsx";
import { KeyGrants } from "./key-grants.tsx";
import { KeyLink, Labels } from "./key-table.tsx";
import { KeyVersions } from "./key-versions.tsx";
import { describeAlias, describeVersion, type KeyDetails, loadDetails, nameKey, nameStatus } from "./keys.ts";

interface KeyPanelProps {
  readonly keyId: string;
  /** Called when keys have changed, so that the table reloads. */
  readonly onChange: () => void;
}

export function KeyPanel({ keyId, onChange }: KeyPanelProps) {
  const [details, setDetails] = useState<KeyDetails>();
  const loading = useTask();
  const heading = useRef<HTMLHeadingElement>(null);
  const load = (): Promise<void> => loading.run((caller) => loadDetails(caller, keyId), setDetails);
  useEffect(() => void load(), []);
  const isShown = details !== undefined;
  useEffect(() => {
    if (isShown) heading.current?.focus();
  }, [isShown]);

  return (
    <section class="panel" aria-labelledby="chosen-key">
      <h2 id="chosen-key" ref={heading} tabIndex={-1}>
        {details ? nameKey(details.key) : shortenId(keyId)}{" "}
        {details && <span class="hint">{describeVersion(details.key)}</span>}
      </h2>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {details && (
        <>
          <KeyFacts {...details} />
          <KeyActions
            record={details.key}
            onDone={() => {
              void load();
              onChange();
            }}
          />
          {details.key.publicKey && (
            <Bytes label="Public key" value={details.key.publicKey} publicKeyOf={details.key.algorithm} />
          )}
          <KeyVersions {...details} />
          <KeyGrants {...details} />
        </>
      )}
      <p>
        <a href={formatAddress("keys/audit", { key: details?.handle ?? keyId })}>Audit log of this key</a>
      </p>
      <p>
        <a href={formatAddress("keys/manage", {})}>Close this key</a>
      </p>
    </section>
  );
}

function KeyFacts({ key, versions, handle }: KeyDetails) {
  const { keyId, alias, algorithm, usage, origin, createdAt, labels, draft } = key;
  const { destroyAt, nextRotationAt, rotationPeriodSeconds, replacedBy } = key;
  return facts({
    Status: <Badge state={nameStatus(key)} />,
    ID: (
      <>
        <code>{keyId}</code> <CopyButton text={keyId} what="ID" />
      </>
    ),
    ...(versions.length > 0 && {
      "Name in calls": <code>{key.isPrimary ? handle : `${handle}/${key.version}`}</code>,
    }),
    ...(describeAlias(alias) !== "" && { Alias: alias }),
    "Algorithm and usage": `${algorithm}, ${usage}`,
    ...(draft !== undefined && { Standard: draft }),
    Origin: origin,
    "Created (UTC)": formatMinute(createdAt),
    ...(rotationPeriodSeconds !== undefined && {
      "Next rotation (UTC)": `${formatMinute(nextRotationAt)}, every ${rotationPeriodSeconds / 86_400} days`,
    }),
    ...(destroyAt && { "Destruction (UTC)": formatMinute(destroyAt) }),
    ...(replacedBy && { "Replaced by": <KeyLink keyId={replacedBy} text={replacedBy} /> }),
    Labels: <Labels labels={labels} />,
  });
}
