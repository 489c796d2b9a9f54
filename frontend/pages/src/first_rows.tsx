// The first of many: a long list shows a few, and more where somebody asks for it.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

const MORE = 100;
const AT_FIRST = 10;
/** Where rows are cards, each of which is as tall as several rows. */
const AT_FIRST_ON_A_PHONE = 5;
const PHONE = "(max-width: 40rem)";

/** Shows the first of `all` by what is given as a child; below them how many more there are, and a button for those. */
export function First<One>(props: { of: string; all: One[]; first?: number; children: (shown: One[]) => ComponentChildren }) {
  const [first] = useState(() => props.first ?? (window.matchMedia(PHONE).matches ? AT_FIRST_ON_A_PHONE : AT_FIRST));
  const [most, setMost] = useState(first);
  const more = props.all.length - most;
  return (
    <>
      {props.children(props.all.slice(0, most))}
      {props.all.length > first && (
        <p class="note more">
          {more > 0 ? `and ${more.toLocaleString()} more. ` : `All ${props.all.length.toLocaleString()}. `}
          <button type="button" class="quiet" aria-label={`${more > 0 ? "Show more" : "Show fewer"}: ${props.of}`} onClick={() => setMost(more > 0 ? most + MORE : first)}>
            {more > 0 ? "Show more" : "Show fewer"}
          </button>
        </p>
      )}
    </>
  );
}
