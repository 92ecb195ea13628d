/** Records as a table; on a phone, as one card each. */
import type { ComponentChildren } from "preact";
import { Scroller } from "./scroller.tsx";

export interface Column<T> {
  readonly title: string;
  /** Whether long values wrap. */
  readonly wraps?: boolean;
  readonly isNumber?: boolean;
  /** Whether a narrow table leaves it out, because the record's own view has it. */
  readonly isMinor?: boolean;
  shows(row: T): ComponentChildren;
}

interface RecordTableProps<T> {
  readonly label: string;
  /** The first column identifies the record. */
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  identify(row: T): string | number;
  isChosen?(row: T): boolean;
}

export function RecordTable<T>({ label, columns, rows, identify, isChosen }: RecordTableProps<T>) {
  return (
    <Scroller class="records" label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, isNumber, isMinor }) => (
              <th key={title} scope="col" data-minor={isMinor} class={isNumber ? "number" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={identify(row)} data-chosen={isChosen?.(row)}>
              {columns.map(({ title, wraps, isNumber, isMinor, shows }, at) =>
                at === 0 ? (
                  <th key={title} scope="row" class={wraps ? "wraps" : undefined}>
                    {shows(row)}
                  </th>
                ) : (
                  <td
                    key={title}
                    data-minor={isMinor}
                    class={isNumber ? "number" : wraps ? "wraps" : undefined}
                  >
                    {shows(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

/** A state: a word, and for some states a colour that repeats it. */
export function Badge({ state }: { readonly state: string }) {
  if (state === "") return <span class="hint">–</span>;
  return (
    <span class="badge" data-status={state}>
      {state}
    </span>
  );
}
