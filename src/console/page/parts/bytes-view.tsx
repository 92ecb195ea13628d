/** Shows bytes: their name, their number, the first of them, and all of them on demand. */
import { type Change, formatBytes, formatNumber, toHex, toHexGroups } from "../values.ts";
import { CopyButton } from "./copy-button.tsx";
import { Scroller } from "./scroller.tsx";

interface BytesProps {
  readonly label: string;
  readonly value: Uint8Array;
}

/** So many bytes are shown without being asked for. */
const previewBytes = 32;

export function Bytes({ label, value }: BytesProps) {
  const rest = value.length - previewBytes;
  return (
    <div class="bytes">
      <p class="bar">
        <strong>{label}</strong> <span class="size">{formatBytes(value.length)}</span>
        <CopyButton text={toHex(value)} what={`${label} as hexadecimal`} />
      </p>
      <p class="hex">
        {toHexGroups(value.subarray(0, previewBytes))}
        {rest > 0 && " …"}
      </p>
      {rest > 0 && (
        <details>
          <summary>
            {formatNumber(rest)} more<span class="unseen"> bytes of {label}</span>
          </summary>
          <Scroller class="hex all" label={`The rest of ${label}`}>
            {toHexGroups(value.subarray(previewBytes))}
          </Scroller>
        </details>
      )}
    </div>
  );
}

/** Shows one changed byte among its neighbours. */
export function ByteChange({ before, after, index }: Change) {
  const start = Math.max(0, index - 6);
  const end = Math.min(before.length, index + 7);
  const hex = (bytes: Uint8Array, from: number, to: number): string =>
    Array.from(bytes.subarray(from, to), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return (
    <p class="hex change">
      {start > 0 && "… "}
      {hex(before, start, index)} <del>{hex(before, index, index + 1)}</del>{" "}
      <ins>{hex(after, index, index + 1)}</ins> {hex(before, index + 1, end)}
      {end < before.length && " …"}
    </p>
  );
}
