/** The audit log as it grows, newest entries first. */
import type { CheckedEntry } from "../../audit.ts";
import { StreamControls } from "../../parts/stream-controls.tsx";
import type { StreamState } from "../../stream.ts";
import { formatNumber } from "../../values.ts";

const links = { anchor: "not checked", holds: "checked by your browser", broken: "chain broken" };

export function AuditChain({ chain }: { readonly chain: StreamState<CheckedEntry> }) {
  const { items, status } = chain;
  if (status === "closed" && items.length === 0) return null;
  const checked = items.filter(({ link }) => link === "holds").length;
  const broken = items.filter(({ link }) => link === "broken").length;
  return (
    <section class="chain" aria-labelledby="chain">
      <h2 id="chain">The audit chain, live</h2>
      {/* Entries may arrive faster than a screen reader speaks. */}
      <p role={status === "open" ? undefined : "status"}>
        {status !== "failed" || items.length > 0
          ? `The newest ${formatNumber(items.length)} entries. Your browser checked ${formatNumber(checked)} of their hashes and finds ${formatNumber(broken)} broken links.`
          : "The stream is not available."}
      </p>
      {items.some(({ link }) => link === "anchor") && (
        <p class="hint">
          A hash covers the entry before it, so it is not checked if that entry is not shown.
        </p>
      )}
      <StreamControls stream={chain} />
      <ol>
        {items.toReversed().map(({ entry, link }) => (
          <li key={entry.sequence} data-link={link}>
            <span class="number">{formatNumber(entry.sequence)}</span>
            <span>
              <strong>{entry.operation}</strong> {entry.outcome === "OK" ? "" : entry.outcome.toLowerCase()}
              <span class="hint">{entry.details}</span>
            </span>
            <span>
              <code>{entry.entryHash.slice(0, 8)}…</code> <span class="hint">{links[link]}</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
