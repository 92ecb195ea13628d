/** Draws a value's first 8 bytes as 16 bars, so that equal values look equal and different ones do not. */
import { toHex } from "../../values.ts";

interface HashMarkProps {
  readonly bytes: Uint8Array;
  readonly isGood?: boolean;
}

export function HashMark({ bytes, isGood = true }: HashMarkProps) {
  return (
    <svg
      class={isGood ? "mark" : "mark bad"}
      viewBox="0 0 64 16"
      width="64"
      height="16"
      aria-hidden="true"
      focusable="false"
    >
      {Array.from(toHex(bytes.subarray(0, 8)), (digit, at) => {
        const height = Number.parseInt(digit, 16) + 1;
        // A value's digits keep their positions.
        return <rect key={`${at} ${digit}`} x={4 * at} y={16 - height} width="3" height={height} />;
      })}
    </svg>
  );
}
