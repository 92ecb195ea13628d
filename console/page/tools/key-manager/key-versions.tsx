/** All versions of a name. */
import { formatAddress } from "../../address.ts";
import { Scroller } from "../../parts/scroller.tsx";
import { formatMinute } from "../../time.ts";
import { describeVersion, type KeyDetails } from "./keys.ts";
import { StatusBadge } from "./status-badge.tsx";

export function KeyVersions({ key: chosen, versions }: KeyDetails) {
  if (versions.length === 0) return null;
  return (
    <>
      <h3>Versions of {chosen.name}</h3>
      <Scroller class="records" label="Versions">
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Status</th>
              <th scope="col">Created (UTC)</th>
              <th scope="col">ID</th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version) => (
              <tr key={version.keyId} data-chosen={version.keyId === chosen.keyId}>
                <th scope="row">
                  <a
                    href={formatAddress("keys/manage", { key: version.keyId })}
                    aria-current={version.keyId === chosen.keyId ? "true" : undefined}
                  >
                    {describeVersion(version)}
                  </a>
                </th>
                <td data-label="Status">
                  <StatusBadge {...version} />
                </td>
                <td data-label="Created (UTC)">{formatMinute(version.createdAt)}</td>
                <td data-label="ID">
                  <code>{version.keyId}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroller>
    </>
  );
}
