/** Places a diagram above a story's steps, or beside them on wide screens. */
import type { ComponentChildren } from "preact";
import { useUniqueId } from "../../unique-id.ts";

interface SceneProps {
  readonly title: string;
  /** The legend: "attacks" for diagrams with an attacker. */
  readonly legend?: "attacks" | undefined;
  readonly children: ComponentChildren;
}

export function Scene({ title, legend, children }: SceneProps) {
  const id = useUniqueId();
  return (
    <li class="scene">
      <section aria-labelledby={id}>
        <div class="scene-head">
          <h2 id={id}>{title}</h2>
          {legend === "attacks" && (
            <p class="legend" aria-hidden="true">
              <span class="arrow" data-direction="right" /> message
              <span class="row" data-attack="true" data-verdict="bad">
                <span class="arrow" data-direction="right" />
              </span>{" "}
              attack, refused
            </p>
          )}
        </div>
        {children}
      </section>
    </li>
  );
}
