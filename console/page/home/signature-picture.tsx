/** The signature as a picture in which the reader flips bits with pointer or keyboard. */
import { useEffect, useState } from "preact/hooks";
import { formatNumber } from "../values.ts";
import { BytePicture, findPointed, Mark } from "./byte-picture.tsx";
import { countBytes, nameByte, signatureParts } from "./cells.ts";

const count = countBytes(signatureParts);

interface SignaturePictureProps {
  readonly bytes: Uint8Array | undefined;
  readonly columns: number;
  readonly flipped: ReadonlySet<number>;
  /** Where a broken signature's red spreads from. */
  readonly brokenAt: number | undefined;
  readonly onFlip: (index: number) => void;
}

export function SignaturePicture({ bytes, columns, flipped, brokenAt, onFlip }: SignaturePictureProps) {
  const [pointed, setPointed] = useState<number>();
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen([...flipped].at(-1) ?? 0), [flipped]);
  const flip = (index: number | undefined): void => {
    if (index !== undefined && bytes !== undefined) onFlip(index);
  };
  const press = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = { ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key];
    if (step !== undefined) setChosen(Math.min(count - 1, Math.max(0, chosen + step)));
    else if (event.key === "Enter" || event.key === " ") flip(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="grip">
        <input
          type="range"
          class="unseen"
          aria-label="Byte of the signature; Enter flips its lowest bit"
          min={0}
          max={count - 1}
          value={chosen}
          aria-valuetext={describe(chosen, bytes, flipped)}
          onInput={(event) => setChosen(Number(event.currentTarget.value))}
          onKeyDown={press}
        />
        {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the range input handles keys */}
        <div
          class="area"
          onClick={(event) => flip(findPointed(event, columns, count))}
          onPointerMove={(event) => setPointed(findPointed(event, columns, count))}
          onPointerLeave={() => setPointed(undefined)}
        >
          <BytePicture
            bytes={bytes}
            count={count}
            parts={signatureParts}
            columns={columns}
            brokenAt={brokenAt}
          >
            {[...flipped].map((at) => (
              <Mark key={at} at={at} columns={columns} kind="flipped" />
            ))}
            <Mark
              at={pointed ?? chosen}
              columns={columns}
              kind={pointed === undefined ? "chosen" : "pointed"}
            />
          </BytePicture>
        </div>
      </div>
      <p class="byte hint" aria-hidden="true">
        {describe(pointed ?? chosen, bytes, flipped)}
      </p>
    </>
  );
}

/**
 * "Byte 1,234 (of 0 to 3,308): 0x3f, part of the response". Bytes count from 0, as everywhere in the console.
 */
function describe(index: number, bytes: Uint8Array | undefined, flipped: ReadonlySet<number>): string {
  const value = bytes === undefined ? "" : `: 0x${(bytes[index] ?? 0).toString(16).padStart(2, "0")}`;
  const part = `part of ${nameByte(index, signatureParts)}`;
  const change = flipped.has(index) ? ", with a flipped bit" : "";
  return `Byte ${formatNumber(index)} (of 0 to ${formatNumber(count - 1)})${value}, ${part}${change}`;
}
