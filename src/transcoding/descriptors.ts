/** Walks the files that descriptors come from. */
import type { DescFile } from "@bufbuild/protobuf";

/** Lists files and everything they import, each once, imports first. */
export function collectFiles(roots: Iterable<DescFile>): DescFile[] {
  const files = new Set<DescFile>();
  const visit = (file: DescFile): void => {
    if (files.has(file)) return;
    for (const dependency of file.dependencies) visit(dependency);
    files.add(file);
  };
  for (const root of roots) visit(root);
  return [...files];
}
