/** Failures by HTTP status, with their reasons. */
import type { FailureRow } from "./failures.ts";

export function FailureTable({ rows }: { readonly rows: readonly FailureRow[] }) {
  return (
    <dl class="described">
      {rows.map(({ status, title, reasons }) => (
        <div key={status}>
          <dt>
            {status} <span class="hint">{title}</span>
          </dt>
          <dd class="words">
            {reasons.map((reason) => (
              <code key={reason}>{reason}</code>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
}
