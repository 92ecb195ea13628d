/** Colours an element and its content. The style sheet derives the hue's shades for both themes. */
export function colour(hue: number | undefined) {
  return hue === undefined ? {} : { "data-coloured": true, style: { "--hue": `${hue}` } };
}
