/** A table of the fields in answers, one section per answer. */
import { Scroller } from "../../parts/scroller.tsx";
import { formatNumber } from "../../values.ts";
import type { FoundField } from "./answers.ts";

interface FieldTableProps {
  readonly answers: readonly { readonly name: string; readonly fields: readonly FoundField[] }[];
}

export function FieldTable({ answers }: FieldTableProps) {
  return (
    <Scroller class="scroll" label="Fields of the answers">
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">What it is</th>
            <th scope="col" class="number">
              Bytes
            </th>
          </tr>
        </thead>
        {answers.map(({ name, fields }) => (
          <tbody key={name}>
            <tr>
              <th scope="rowgroup" colSpan={3}>
                {name}
              </th>
            </tr>
            {fields.map((field) => (
              <tr key={field.name}>
                <td>
                  <code>{field.name}</code>
                </td>
                <td class="wraps">{field.is ?? "not known to be public"}</td>
                <td class="number">{field.bytes === undefined ? "" : formatNumber(field.bytes)}</td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </Scroller>
  );
}
