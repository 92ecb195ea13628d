import { refuse } from "../../src/errors.ts";
import type { ServedLog } from "./logs.ts";
import { measureTile, parseTilePath } from "./tile-paths.ts";

/**
 * Reads the tile at a path. A path has exactly one form, and the newest checkpoint must cover its tile. A
 * partial tile may have any width up to its width in that checkpoint's tree.
 *
 * @throws TILE_NOT_FOUND
 */
export async function getTile(log: ServedLog, path: string): Promise<Uint8Array> {
  const tile = parseTilePath(path);
  if (tile === undefined)
    throw refuse("TILE_NOT_FOUND", `"${path}" is not a tile path, such as 0/000.p/17 or entries/x001/234`);
  const published = await log.readPublishedSize();
  if (tile.width > measureTile(tile, published))
    throw refuse(
      "TILE_NOT_FOUND",
      `the newest checkpoint, of size ${published}, does not cover the tile ${path}`,
      {
        treeSize: String(published),
      },
    );
  return log.readTile(tile);
}
