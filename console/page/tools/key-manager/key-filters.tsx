/** Fields to find keys: a search in the browser, and server-side filters. */
import { useState } from "preact/hooks";
import { Filter, TextField } from "../../parts/fields.tsx";
import { narrow, useMedia } from "../../use-media.ts";
import { algorithms, type KeyFilters, statuses, usages } from "./keys.ts";

interface KeyFilterProps {
  readonly filters: KeyFilters;
  readonly onFilter: (filters: KeyFilters) => void;
  readonly search: string;
  readonly onSearch: (search: string) => void;
}

export function KeyFilterFields({ filters, onFilter, search, onSearch }: KeyFilterProps) {
  // A label filter applies only when the reader submits it.
  const [label, setLabel] = useState(filters.label);
  const bind = (name: keyof KeyFilters) => ({
    value: filters[name],
    onChange: (value: string) => onFilter({ ...filters, [name]: value }),
  });
  const isNarrow = useMedia(narrow);
  const set = Object.values(filters).filter((value) => value !== "").length;
  const fields = (
    <>
      <Filter label="Status" options={statuses} {...bind("status")} />
      <Filter label="Algorithm" options={algorithms} {...bind("algorithm")} />
      <Filter label="Usage" options={usages} {...bind("usage")} />
      <TextField label="Label (team=payments)" value={label} onChange={setLabel} />
      <button type="submit">Filter by label</button>
    </>
  );
  return (
    <form
      class="fields"
      onSubmit={(event) => {
        event.preventDefault();
        onFilter({ ...filters, label: label.trim() });
      }}
    >
      <TextField label="Search name, ID or label" value={search} onChange={onSearch} />
      {isNarrow ? (
        // Folded, because they would fill a phone's screen.
        <details class="filters">
          <summary>Filters{set > 0 && `, ${set} set`}</summary>
          <div class="fields">{fields}</div>
        </details>
      ) : (
        fields
      )}
    </form>
  );
}
