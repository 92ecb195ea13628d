import { refuse } from "../../src/errors.ts";
import type { ServedLog } from "./logs.ts";
import { measureTile, parseTilePath } from "./tile-paths.ts";

/**
 * Reads the tile of a path. A path has one form, and its tile is covered by the newest checkpoint. A partial tile may
 * have any width up to the width in that checkpoint's tree.
 *
 * @throws TILE_NOT_FOUND
 */
export async function getTile(log: ServedLog, path: string): Promise<Uint8Array> {
  // Clients that are generated from an OpenAPI description encode the slashes of a path parameter.
  const tile = parseTilePath(path.replaceAll("%2F", "/"));
  if (tile === undefined)
    throw refuse(
      "TILE_NOT_FOUND",
      `"${path}" is not the path of a tile, such as 0/000.p/17 or entries/x001/234`,
    );
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
