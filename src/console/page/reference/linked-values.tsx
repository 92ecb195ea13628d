/** Says which values of an example are from earlier answers, and which call has the others. */
import type { ApiDocument } from "./document.ts";
import { findSource, type LinkedField } from "./earlier-answers.ts";

interface LinkedValuesProps {
  readonly api: ApiDocument;
  readonly fields: readonly LinkedField[];
}

export function LinkedValues({ api, fields }: LinkedValuesProps) {
  const known = fields.filter(({ value }) => value !== undefined);
  const missing = fields.filter(({ value }) => value === undefined);
  return (
    <>
      {known.length > 0 && (
        <p class="hint">From your earlier calls: {known.map(({ field }) => field).join(", ")}.</p>
      )}
      {missing.map((one) => (
        <MissingValue key={one.field} api={api} field={one} />
      ))}
    </>
  );
}

function MissingValue({ api, field }: { readonly api: ApiDocument; readonly field: LinkedField }) {
  const source = findSource(api, field);
  // The server may not serve the call that answers with it.
  if (source === undefined) return null;
  return (
    <p class="hint">
      <code>{field.field}</code> is only a sample. Make the call{" "}
      <a href={`#/${source.operationId}`}>{source.name}</a>
      {source.summary !== undefined && ` (example “${source.summary}”)`} first, and this page uses its answer.
    </p>
  );
}
