/** The chosen key: details, actions, versions, grants and public key. */
import { useEffect, useState } from "preact/hooks";
import { formatAddress } from "../../address.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Badge } from "../../parts/record-table.tsx";
import { facts } from "../../parts/show.tsx";
import { useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { shortenId } from "../../values.ts";
import { Panel } from "../panel.tsx";
import { KeyActions } from "./key-actions.tsx";
import { KeyGrants } from "./key-grants.tsx";
import { KeyLink } from "./key-table.tsx";
import {
  describeAlias,
  describeVersion,
  formatLabels,
  type KeyDetails,
  loadDetails,
  nameKey,
  nameStatus,
} from "./keys.ts";

interface KeyPanelProps {
  readonly keyId: string;
  /** Called when keys have changed, so that the table reloads. */
  readonly onChange: () => void;
}

export function KeyPanel({ keyId, onChange }: KeyPanelProps) {
  const [details, setDetails] = useState<KeyDetails>();
  const loading = useTask();
  const load = (): Promise<void> => loading.run((caller) => loadDetails(caller, keyId), setDetails);
  useEffect(() => void load(), []);
  const key = details?.key;
  return (
    <Panel
      title={key ? nameKey(key) : shortenId(keyId)}
      hint={key && describeVersion(key)}
      back="All keys"
      href={formatAddress("keys/manage", {})}
      loading={loading}
    >
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
          <KeyVersions {...details} />
          <KeyGrants {...details} />
          {key?.publicKey && <Bytes label="Public key" value={key.publicKey} publicKeyOf={key.algorithm} />}
        </>
      )}
    </Panel>
  );
}

function KeyFacts({ key, versions, handle }: KeyDetails) {
  const { keyId, alias, algorithm, usage, origin, createdAt, labels, draft, owner } = key;
  const { destroyAt, nextRotationAt, rotationPeriodSeconds, replacedBy } = key;
  const isNamed = versions.length > 0;
  const showEntries = (of: string, text: string) => (
    <a href={formatAddress("keys/audit", { key: of })}>{text}</a>
  );
  return facts({
    Status: <Badge state={nameStatus(key)} />,
    ID: copied(keyId, "ID"),
    ...(owner && { Owner: owner }),
    ...(isNamed && { "Name in calls": copied(key.isPrimary ? handle : `${handle}/${key.version}`, "name") }),
    ...(describeAlias(key) !== "" && { Alias: alias }),
    Algorithm: `${algorithm}, ${usage}, ${origin}`,
    ...(draft !== undefined && { Standard: draft }),
    "Created (UTC)": formatMinute(createdAt),
    ...(rotationPeriodSeconds !== undefined && {
      "Next rotation (UTC)": `${formatMinute(nextRotationAt)}, every ${rotationPeriodSeconds / 86_400} days`,
    }),
    ...(destroyAt && { "Destruction (UTC)": formatMinute(destroyAt) }),
    ...(replacedBy && { "Replaced by": <KeyLink keyId={replacedBy} text={shortenId(replacedBy)} /> }),
    Labels: formatLabels(labels) || "none",
    "Audit log": (
      <>
        {showEntries(keyId, isNamed ? "This version" : "Entries of this key")}
        {isNamed && <> · {showEntries(handle, "All versions")}</>}
      </>
    ),
  });
}

function copied(text: string, what: string) {
  return (
    <>
      <code>{text}</code> <CopyButton text={text} what={what} />
    </>
  );
}

function KeyVersions({ key, versions }: KeyDetails) {
  if (versions.length < 2) return null;
  return (
    <>
      <h3>Versions of {key.name}</h3>
      <ul class="rows" aria-label="Versions">
        {versions.toReversed().map((version) => (
          <li key={version.keyId}>
            <KeyLink
              keyId={version.keyId}
              isChosen={version.keyId === key.keyId}
              text={describeVersion(version)}
            />
            <Badge state={nameStatus(version)} />
            <span class="hint">{formatMinute(version.createdAt)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
