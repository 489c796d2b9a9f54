// Where the keyboard goes on when what had the focus is gone: a cell has ended, a request is decided.
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** Leave the focus in the section, or on the page, of an element that goes away with it. */
export function useKeptFocus(of: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const element = of.current;
    const section = element?.closest<HTMLElement>("section");
    return () => {
      if (!element?.contains(document.activeElement)) return;
      queueMicrotask(() => {
        if (document.activeElement !== document.body) return; // what took its place has the focus
        const place = section?.isConnected ? section : document.getElementById("main");
        if (!place) return;
        place.tabIndex = -1;
        place.focus({ preventScroll: true });
      });
    };
  }, []);
}
