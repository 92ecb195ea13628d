/** Shows bytes: name, length and the first few, with all of them on demand. */
import { type ByteFormat, chooseFormat, listFormats, writeBytes } from "../byte-formats.ts";
import { createPreference } from "../preference.ts";
import { type Change, formatBytes } from "../values.ts";
import { CopyButton } from "./copy-button.tsx";
import { Scroller } from "./scroller.tsx";

interface BytesProps {
  readonly label: string;
  readonly value: Uint8Array;
  /** A public key's algorithm, for its PEM form: "ML-DSA-65". */
  readonly publicKeyOf?: string | undefined;
}

const preferredFormat = createPreference<ByteFormat>("qsp-byte-format", ["hex", "base64", "PEM"]);

export function Bytes({ label, value, publicKeyOf }: BytesProps) {
  const [preferred, setPreferred] = preferredFormat.use();
  const formats = listFormats(value, publicKeyOf);
  const format = chooseFormat(preferred, formats);
  const { whole, start, rest, restSize } = writeBytes(value, format, publicKeyOf);
  return (
    <div class="bytes" data-format={format}>
      <p class="bar">
        <strong>{label}</strong> <span class="size">{formatBytes(value.length)}</span>
        <span class="copy-as">
          <select
            aria-label={`Format of ${label}`}
            value={format}
            onChange={({ currentTarget }) =>
              setPreferred(formats.find((name) => name === currentTarget.value) ?? "hex")
            }
          >
            {formats.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <CopyButton text={whole} what={`${label} as ${format}`} />
        </span>
      </p>
      <p class="hex">
        {start}
        {rest !== "" && " …"}
      </p>
      {rest !== "" && (
        <details>
          <summary>
            {restSize}
            <span class="unseen"> of {label}</span>
          </summary>
          <Scroller class="hex all" label={`The rest of ${label}`}>
            {rest}
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
