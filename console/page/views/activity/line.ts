/** The geometry of a line over time. */

/** The picture, in its own units; it is stretched to the width that there is. */
export const width = 600;
export const height = 160;

type Values = readonly (number | undefined)[];

/** The newest value is at the right edge. A gap begins a new line. */
export function drawLine(values: Values, count: number, max: number): string {
  const shown = values.slice(-count);
  return shown
    .map((value, at) => {
      if (value === undefined) return "";
      const command = shown[at - 1] === undefined ? "M" : "L";
      return command + placePoint(value, count - shown.length + at, count, max);
    })
    .join("");
}

/** Points between two gaps, where a line has no length. Round ends make a dot of each. */
export function drawDots(values: Values, count: number, max: number): string {
  const shown = values.slice(-count);
  return shown
    .map((value, at) => {
      const isAlone = shown[at - 1] === undefined && shown[at + 1] === undefined;
      return value === undefined || !isAlone
        ? ""
        : `M${placePoint(value, count - shown.length + at, count, max)}h0`;
    })
    .join("");
}

function placePoint(value: number, at: number, count: number, max: number): string {
  const x = (at * width) / (count - 1);
  const y = height - 4 - (value / max) * (height - 8);
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

/** The next of 1, 2, 5, 10, 20, 50 and so on, so that the scale seldom changes. */
export function roundUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => value <= step * power) ?? 10);
}
