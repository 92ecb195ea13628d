/** The geometry of a line over time. */

/** The picture in its own units, stretched to the available width. */
export const width = 600;
export const height = 160;

type Values = readonly (number | undefined)[];

/** The newest value is at the right edge. A gap starts a new line. */
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

/** Single points between two gaps, where a line has no length. Round caps turn each into a dot. */
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

/** The next of 1, 2, 5, 10, 20, 50 and so on, so that the scale rarely changes. */
export function roundUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => value <= step * power) ?? 10);
}
