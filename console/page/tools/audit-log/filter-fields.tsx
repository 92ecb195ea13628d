/** Filter fields for the audit log. */
import type { FormState } from "../../form.ts";
import { Choice, Filter, ofTime, TextField } from "../../parts/fields.tsx";
import { type AuditFilters, operations, outcomes, ownPeriod, periods } from "./entries.ts";

interface AuditFilterProps {
  readonly form: FormState<keyof AuditFilters>;
  readonly onSearch: () => void;
  readonly onFollow: () => void;
  readonly isFollowing: boolean;
}

export function AuditFilterFields({ form, onSearch, onFollow, isFollowing }: AuditFilterProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSearch();
      }}
    >
      <div class="fields">
        <TextField label="Key ID or name" {...form.bind("key")} />
        <Filter label="Operation" options={operations} {...form.bind("operation")} />
        <Filter label="Outcome" options={outcomes} {...form.bind("outcome")} />
        <TextField label="Caller" {...form.bind("user")} />
        <Choice label="Period" options={periods} {...form.bind("period")} />
        {form.values.period === ownPeriod && (
          <>
            <TextField attributes={ofTime} label="From (UTC)" {...form.bind("from")} />
            <TextField attributes={ofTime} label="To (UTC)" {...form.bind("to")} />
          </>
        )}
      </div>
      <p class="act">
        <button type="submit" class="primary">
          Search
        </button>
        <button type="button" onClick={onFollow}>
          {isFollowing ? "Follow with these filters" : "Follow new entries"}
        </button>
      </p>
    </form>
  );
}
