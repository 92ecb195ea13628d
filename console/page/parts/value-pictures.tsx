/** A story's values as pictures, one square a byte: pale until they exist, and marked where a byte is changed. */
import { BytePicture, Mark, PartsLegend } from "../home/byte-picture.tsx";
import { countBytes, type Part } from "../home/cells.ts";
import { formatNumber } from "../values.ts";

interface PicturedValue {
  readonly label: string;
  /** In order, with their sizes. */
  readonly parts: readonly Part[];
  /** Undefined until it exists. */
  readonly value: Uint8Array | undefined;
  /** The index of a changed byte. */
  readonly changed?: number | undefined;
}

/** Squares per row, as in the style sheet. */
const columns = 90;

export function ValuePictures({ values }: { readonly values: readonly PicturedValue[] }) {
  return (
    <div class="stage scale value-pictures">
      {values.map(({ label, parts, value, changed }) => (
        <figure key={label} class="new">
          <figcaption>
            <strong>{label}</strong> {formatNumber(countBytes(parts))} bytes
            {parts.length > 1 && <PartsLegend parts={parts} />}
          </figcaption>
          <BytePicture bytes={value} count={countBytes(parts)} parts={parts} columns={columns}>
            {changed !== undefined && <Mark at={changed} columns={columns} kind="flipped" />}
          </BytePicture>
        </figure>
      ))}
    </div>
  );
}
