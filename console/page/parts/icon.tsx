/**
 * What pages look like, by their paths: a hue in degrees (CSS Color 4, oklch), and an icon as strokes on a 24-unit grid.
 * Icons repeat the adjacent text.
 */
const looks = {
  sign: [195, "M3 20.5h18M5 16l9.8-9.8a2.1 2.1 0 0 1 3 3L8 19l-4 1z"],
  "key-exchange": [255, "M4 8h15l-4-4M20 16H5l4 4"],
  tokens: [80, "M3 6.5h18v3.2a2.4 2.4 0 0 0 0 4.6v3.2H3v-3.2a2.4 2.4 0 0 0 0-4.6zM14 7v2M14 11v2M14 15v2"],
  keys: [305, "M12.9 11.1a5 5 0 1 0-2.1 2.1L13 15.5h2.5V18H18v2.5h3V18zM7.5 8h.01"],
  encryption: [340, "M6 11h12v9.5H6zM8.5 11V7.5a3.5 3.5 0 0 1 7 0V11"],
  devices: [150, "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4"],
  tunnel: [280, "M3 20v-7a9 9 0 0 1 18 0v7zM8 20v-7a4 4 0 0 1 8 0v7"],
  governance: [345, "M3 10l9-6 9 6zM6 10v7M10 10v7M14 10v7M18 10v7M3 20.5h18"],
  chain: [48, "M3 8.5h6v7H3zM15 8.5h6v7h-6zM9 12h6"],
  log: [118, "M9.5 3h5v4h-5zM3 17h5v4H3zM16 17h5v4h-5zM12 7v5M5.5 17v-5h13v5"],
  provenance: [15, "M12 14a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM9 13l-2 8 5-3 5 3-2-8"],
  contracts: [118, "M6 3h8l4 4v14H6zM14 3v4h4M10.5 11.5 8.5 14l2 2.5M13.5 11.5l2 2.5-2 2.5"],
  wallets: [225, "M19 9V5H5a2 2 0 0 0 0 4h15v10H5a2 2 0 0 1-2-2V7M16 14h.01"],
  handshake: [195, "M4 4v16M20 4v16M4 8h13l-3-3M20 15H7l3 3"],
  algorithms: [280, "M3 20h18M6 20v-5M11 20V9M16 20V4M20 20v-8"],
  "tokens/inspect": [
    80,
    "M3 6.5h18v3.2a2.4 2.4 0 0 0 0 4.6v3.2H3v-3.2a2.4 2.4 0 0 0 0-4.6zM14 7v2M14 11v2M14 15v2",
  ],
  activity: [150, "M2 12h5l3-8 4 16 3-8h5"],
  "keys/manage": [305, "M4 5h16M4 12h16M4 19h16M8 3v4M15 10v4M10 17v4"],
  "keys/audit": [305, "M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4"],
  inventory: [150, "M4 8l8-4 8 4v9l-8 4-8-4zM4 8l8 4 8-4M12 12v9"],
  "": [195, "M4 11l8-7 8 7v9h-5.5v-6h-5v6H4z"],
  "log-in": [195, "M14 4h5v16h-5M3 12h11M10 8l4 4-4 4"],
} as const;

/** A page of the console. */
export type PagePath = keyof typeof looks;

export function Icon({ path }: { readonly path: PagePath }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={looks[path][1]} />
    </svg>
  );
}

/** Colours an element and its content like a page. The style sheet derives the hue's shades for both themes. */
export function colour(path: PagePath | undefined) {
  return path === undefined ? {} : { "data-coloured": true, style: { "--hue": `${looks[path][0]}` } };
}
