/** The geometry of a line over time. */

/** The picture, in its own units; it is stretched to the width that there is. */
export const width = 600;
export const height = 160;

/** The newest value is at the right edge. A gap begins a new line. */
export function drawLine(values: readonly (number | undefined)[], count: number, max: number): string {
  let command = "M";
  const shown = values.slice(-count);
  return shown
    .map((value, at) => {
      if (value === undefined) {
        command = "M";
        return "";
      }
      const x = ((count - shown.length + at) * width) / (count - 1);
      const y = height - 4 - (value / max) * (height - 8);
      const drawn = `${command}${x.toFixed(1)} ${y.toFixed(1)}`;
      command = "L";
      return drawn;
    })
    .join("");
}

/** The next of 1, 2, 5, 10, 20, 50 and so on, so that the scale seldom changes. */
export function roundUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => value <= step * power) ?? 10);
}
